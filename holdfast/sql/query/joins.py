"""The joins of a query: the inputs of each, its condition, and the column that is the result's key.

Joins are left-deep, in the order in which they are written; the sides of a condition may be in either order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from holdfast.catalog.objects import Stream
from holdfast.errors import BindError, NotSupported, Position, TypeMismatch
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import Binary, ColumnRef, Expression, Operator
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.steps import JoinType
from holdfast.runtime.plan.windows import Duration, WindowInfo, WindowType
from holdfast.sql.literals.duration import duration_text
from holdfast.sql.query.projection import BoundColumn
from holdfast.sql.query.relation import BoundSource, Relation
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.statements import Within
from holdfast.sql.syntax.walk import column_refs
from holdfast.types import Column, SqlType

NO_KEY = "The result has the key of the left table, so a row of the right table without a match would have no key."
SYNTHETIC_KEY = "ROWKEY"
"""The key of a join if no column of its condition can be the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundJoin:
    """Two inputs joined on `left_key = right_key`, which are qualified. `key` is the name of the result's key column.

    A `foreign_key` join keeps the key of its left input, and `key` is the name of its first column.
    """

    kind: JoinType
    left: "BoundInput"
    right: "BoundInput"
    left_key: Expression
    right_key: Expression
    key: str
    within: Within | None = None
    foreign_key: bool = False


BoundInput = BoundSource | BoundJoin


def bind_joins(select: sql.Select, relation: Relation) -> BoundInput:
    """The input of a query. The key of each join is the first viable one; `choose_keys` makes the final choice."""
    sources = relation.sources
    conditions = [_Condition(join, sources[:i], sources[i], relation) for i, join in enumerate(select.joins, start=1)]
    sides = [condition.sides() for condition in conditions]
    input_: BoundInput = sources[0]
    for condition, keys in zip(conditions, sides, strict=True):
        input_ = condition.bind(input_, *keys)
    return input_


def join_key(input_: BoundInput, relation: Relation) -> Column | None:
    """The synthetic key of a join, a column of no source; None if the join has another key."""
    if not isinstance(input_, BoundJoin) or input_.foreign_key or viable_keys(input_):
        return None
    return Column(input_.key, relation.type_of(relation.over_rows(input_.left_key)))


def choose_keys(input_: BoundInput, projection: Sequence[BoundColumn], relation: Relation) -> BoundInput:
    """The input with each join's key chosen by the select list: the first viable column that is selected."""
    if isinstance(input_, BoundSource):
        return input_
    left, right = (choose_keys(side, projection, relation) for side in (input_.left, input_.right))
    selected = {column.expression for column in projection}
    key = next((k for k in viable_keys(input_) if relation.over_rows(k) in selected), None)
    name = input_.key if key is None or input_.foreign_key else _name(relation.over_rows(key))
    return replace(input_, left=left, right=right, key=name)


def input_keys(input_: BoundInput, relation: Relation) -> list[Expression]:
    """The key columns of a query's input, as plans name them."""
    match input_:
        case BoundSource():
            return [ColumnRef(relation.planned(input_, column.name)) for column in input_.object.schema.key]
        case BoundJoin(foreign_key=True):
            return input_keys(input_.left, relation)
        case _:
            return [ColumnRef(input_.key)]


def written_keys(input_: BoundInput) -> list[Expression]:
    """The key columns of a query's input, as the query may write them."""
    match input_:
        case BoundSource():
            return [ColumnRef(column.name, input_.alias) for column in input_.object.schema.key]
        case BoundJoin(foreign_key=True):
            return written_keys(input_.left)
        case _:
            return [*viable_keys(input_)[:1]]


def is_stream(input_: BoundInput) -> bool:
    """Whether an input is a stream; a join is a table only if both sides are tables."""
    if isinstance(input_, BoundSource):
        return isinstance(input_.object, Stream)
    return is_stream(input_.left) or is_stream(input_.right)


def sources_of(input_: BoundInput) -> Iterator[BoundSource]:
    if isinstance(input_, BoundSource):
        yield input_
    else:
        yield from sources_of(input_.left)
        yield from sources_of(input_.right)


def equal_to_key(input_: BoundInput) -> set[Expression]:
    """The qualified expressions that are equal to the input's key in every row."""
    match input_:
        case BoundSource(object=object_, alias=alias):
            key = object_.schema.key
            return {ColumnRef(key[0].name, alias)} if len(key) == 1 else set()
        case BoundJoin(foreign_key=True):
            return equal_to_key(input_.left)
        case BoundJoin(kind=JoinType.OUTER):
            return set()
    both = {input_.left_key, input_.right_key}
    for side in (input_.left, input_.right):
        same = equal_to_key(side) if isinstance(side, BoundJoin) else set()
        if same & both:
            both |= same
    return both


def viable_keys(input_: BoundInput) -> list[ColumnRef]:
    """The qualified columns that can be the key of a join, those of the left side first."""
    if isinstance(input_, BoundSource) or input_.kind is JoinType.OUTER:
        return []
    if input_.foreign_key:
        return viable_keys(input_.left)
    every = [*viable_keys(input_.left), input_.left_key, *viable_keys(input_.right), input_.right_key]
    columns = [each for each in every if isinstance(each, ColumnRef)]
    same = equal_to_key(input_)
    return [column for column in dict.fromkeys(columns) if column in same]


def _shape(window: WindowInfo | None) -> tuple[bool, Duration | None] | None:
    """What the windows of two keys must have in common: sessions or not, and the size.

    TUMBLING and HOPPING windows of one size have the same form; keys match where their windows start together.
    """
    return None if window is None else (window.type is WindowType.SESSION, value_of(window.size))


def _windowed(window: WindowInfo | None) -> str:
    if window is None:
        return "not windowed"
    size = value_of(window.size)
    return f"{window.type} windowed" + ("" if size is None else f" with a size of {duration_text(size.millis)}")


def _name(expression: Expression) -> str:
    assert isinstance(expression, ColumnRef)
    return expression.name


@dataclass(frozen=True, slots=True)
class _Condition:
    """A JOIN clause, between the earlier sources and a new one on the right."""

    join: sql.Join
    earlier: Sequence[BoundSource]
    right: BoundSource
    relation: Relation

    def bind(self, left: BoundInput, left_key: Expression, right_key: Expression) -> BoundJoin:
        self._check_types(left_key, right_key)
        foreign = self._check_inputs(left, left_key, right_key)
        bound = BoundJoin(
            kind=self.join.kind,
            left=left,
            right=self.right,
            left_key=left_key,
            right_key=right_key,
            key="",
            within=self.join.within,
            foreign_key=foreign,
        )
        viable = viable_keys(bound)
        if viable:
            return replace(bound, key=_name(self.relation.over_rows(viable[0])))
        return replace(bound, key=_name(input_keys(bound, self.relation)[0]) if foreign else self._synthetic())

    @property
    def position(self) -> Position | None:
        return self.join.condition.position

    @property
    def text(self) -> str:
        return format_expression(self.join.condition)

    # ---- the condition

    def sides(self) -> tuple[Expression, Expression]:
        """The two sides of the condition; the side of the new source comes last."""
        condition = self.join.condition
        if not isinstance(condition, Binary) or condition.operator is not Operator.EQUAL:
            raise BindError(
                f"a join needs one condition of the form a = b, not {self.text}",
                hint="Put further conditions into WHERE.",
                position=self.position,
            )
        for ref in column_refs(condition):
            self.relation.check_qualifier(ref)
        first, second = self.relation.qualified(condition.left), self.relation.qualified(condition.right)
        if self._alias(first) == self.right.alias:
            first, second = second, first
        if self._alias(second) != self.right.alias or self._alias(first) == self.right.alias:
            raise self._wrong_sides()
        if self._alias(first) not in {source.alias for source in self.earlier}:
            raise self._wrong_sides()
        return first, second

    def _alias(self, side: Expression) -> str:
        aliases = {ref.qualifier for ref in column_refs(side)}
        if len(aliases) != 1:
            raise BindError(
                "each side of a join's condition must name columns of one relation: "
                f"{format_expression(side)} in {self.text}",
                hint="Put further conditions into WHERE.",
                position=side.position,
            )
        return str(aliases.pop())

    def _wrong_sides(self) -> BindError:
        known = ", ".join(source.alias for source in self.earlier)
        return BindError(
            f"the condition of the join with {self.right.alias} must compare it with an earlier relation: {self.text}",
            hint=f"Earlier relations are: {known}.",
            position=self.position,
        )

    def _type(self, key: Expression) -> SqlType:
        return self.relation.type_of(self.relation.over_rows(key))

    def _check_types(self, left_key: Expression, right_key: Expression) -> None:
        left, right = self._type(left_key), self._type(right_key)
        if left != right:
            raise TypeMismatch(
                f"a join needs the same type on both sides, not {left} = {right}",
                hint=f"Write CAST({format_expression(left_key)} AS {right}), for instance.",
                position=self.position,
            )

    # ---- the inputs

    def _check_inputs(self, left: BoundInput, left_key: Expression, right_key: Expression) -> bool:
        """Whether the join is a foreign-key join; refuses joins that are not supported.

        The key of a windowed table without its window is a foreign key.
        """
        streams = is_stream(left), is_stream(self.right)
        without_window = not any(streams) and self.earlier[0].object.window is not None
        foreign = without_window and self.right.object.window is None
        if not foreign:
            self._check_windows()
        self._check_within(all(streams))
        if all(streams):
            return False
        right = self.right.object
        if not streams[0] and streams[1]:
            tables = " and ".join(source.object.name for source in self.earlier)
            raise NotSupported(
                f"the table {tables} cannot be joined with the stream {right.name}",
                hint=f"Write {right.name} first, and join the table to it.",
                position=self.join.relation.position,
            )
        if right_key not in equal_to_key(self.right):
            keys = ", ".join(column.name for column in right.schema.key)
            raise BindError(
                f"a join with the table {right.name} must be on its primary key {keys}: {self.text}",
                hint=self._other_key(),
                position=self.position,
            )
        if streams[0]:
            self._refuse(JoinType.RIGHT, JoinType.OUTER, what="of a stream with a table")
            return False
        if left_key in equal_to_key(left) and not foreign:
            return False
        self._refuse(JoinType.RIGHT, JoinType.OUTER, what="on a foreign key", reason=NO_KEY)
        if isinstance(left, BoundJoin):
            raise NotSupported(
                f"a join on a foreign key must be the first of several: {self.text}",
                hint="Store the first join in a table, and join that.",
                position=self.position,
            )
        if right.window is not None:
            raise NotSupported(
                f"a join on a foreign key cannot have the windowed table {right.name} on its right",
                detail="Its key contains a window, which a foreign key does not have.",
                hint="Join the tables on their keys, or put a table without windows on the right.",
                position=self.position,
            )
        return True

    def _other_key(self) -> str:
        """A hint on which key the table can be joined."""
        keys = self.right.object.schema.key
        if len(keys) == 1:
            return f"Write ON … = {self.right.alias}.{keys[0].name}."
        return "A join has one condition, so it needs a table with a single key column."

    def _check_windows(self) -> None:
        """Refuse a join of keys that are windowed differently."""
        left, right = self.earlier[0].object, self.right.object
        if _shape(left.window) != _shape(right.window):
            raise NotSupported(
                f"{left.name} and {right.name} cannot be joined: their keys are windowed differently",
                detail=f"{left.name} is {_windowed(left.window)}, {right.name} is {_windowed(right.window)}.",
                position=self.join.relation.position,
            )

    def _refuse(self, *kinds: JoinType, what: str, reason: str | None = None) -> None:
        kind = self.join.kind
        if kind in kinds:
            kind_text = "FULL OUTER" if kind is JoinType.OUTER else str(kind)
            raise NotSupported(
                f"a join {what} cannot be {kind_text}",
                detail=reason,
                hint="Only INNER and LEFT joins are supported.",
                position=self.join.position,
            )

    def _check_within(self, required: bool) -> None:
        if required and self.join.within is None:
            raise BindError(
                "a join of two streams needs WITHIN",
                detail="It limits how far apart in time two rows may be; otherwise all rows would be retained.",
                hint=f"Write JOIN {self.right.object.name} WITHIN 1 HOUR ON …",
                position=self.join.position,
            )
        if not required and self.join.within is not None:
            raise BindError(
                "WITHIN is only allowed in joins of two streams", hint="Leave it out.", position=self.join.position
            )

    def _synthetic(self) -> str:
        """A name for the key that no source uses."""
        taken = {column.name for source in self.relation.sources for column in source.columns}
        name, number = SYNTHETIC_KEY, 0
        while name in taken:
            number += 1
            name = f"{SYNTHETIC_KEY}_{number}"
        return name
