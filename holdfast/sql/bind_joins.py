"""The joins of a query: which two inputs each joins, on what, and which of their columns is the result's key.

Joins are left-deep, in the order in which they are written; the sides of a condition may be written either way round.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from holdfast.catalog.objects import Stream
from holdfast.errors import BindError, NotSupported, Position, TypeMismatch
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import Binary, ColumnRef, Expression, Operator
from holdfast.runtime.plan.presence import given
from holdfast.runtime.plan.steps import JoinType
from holdfast.runtime.plan.windows import Duration, WindowInfo, WindowType
from holdfast.sql import statements as sql
from holdfast.sql.bound_query import BoundColumn, BoundInput, BoundJoin
from holdfast.sql.relation import BoundSource, Relation
from holdfast.sql.walk import column_refs
from holdfast.types import Column, SqlType

NO_KEY = "A row of the right table that no left row names would have no key: the key is that of the left table."
SYNTHETIC_KEY = "ROWKEY"
"""The key of a join whose condition has no plain column that could be it."""


def bind_joins(select: sql.Select, relation: Relation) -> BoundInput:
    """The input of a query. The key of each join is the first that could be it until `choose_keys` has seen more."""
    sources = relation.sources
    conditions = [_Condition(join, sources[:i], sources[i], relation) for i, join in enumerate(select.joins, start=1)]
    sides = [condition.sides() for condition in conditions]
    found: BoundInput = sources[0]
    for condition, keys in zip(conditions, sides, strict=True):
        found = condition.bind(found, *keys)
    return found


def join_key(found: BoundInput, relation: Relation) -> Column | None:
    """The synthetic key of a join, a column that no source has."""
    if not isinstance(found, BoundJoin) or found.foreign_key or viable_keys(found):
        return None
    return Column(found.key, relation.type_of(relation.over_rows(found.left_key)))


def choose_keys(found: BoundInput, projection: Sequence[BoundColumn], relation: Relation) -> BoundInput:
    """The input with the keys that the select list asks for: the first column of each condition that it has."""
    if isinstance(found, BoundSource):
        return found
    left, right = (choose_keys(side, projection, relation) for side in (found.left, found.right))
    selected = {column.expression for column in projection}
    key = next((k for k in viable_keys(found) if relation.over_rows(k) in selected), None)
    name = found.key if key is None or found.foreign_key else _name(relation.over_rows(key))
    return replace(found, left=left, right=right, key=name)


def input_keys(found: BoundInput, relation: Relation) -> list[Expression]:
    """The key columns of a query's input, as plans name them."""
    match found:
        case BoundSource():
            return [ColumnRef(relation.planned(found, column.name)) for column in found.object.schema.key]
        case BoundJoin(foreign_key=True):
            return input_keys(found.left, relation)
        case _:
            return [ColumnRef(found.key)]


def written_keys(found: BoundInput) -> list[Expression]:
    """The key columns of a query's input, as the query may write them."""
    match found:
        case BoundSource():
            return [ColumnRef(column.name, found.alias) for column in found.object.schema.key]
        case BoundJoin(foreign_key=True):
            return written_keys(found.left)
        case _:
            return [*viable_keys(found)[:1]]


def is_stream(found: BoundInput) -> bool:
    """Whether an input is a stream: a table only joins tables."""
    if isinstance(found, BoundSource):
        return isinstance(found.object, Stream)
    return is_stream(found.left) or is_stream(found.right)


def sources_of(found: BoundInput) -> Iterator[BoundSource]:
    if isinstance(found, BoundSource):
        yield found
    else:
        yield from sources_of(found.left)
        yield from sources_of(found.right)


def equal_to_key(found: BoundInput) -> set[Expression]:
    """The qualified expressions that have the value of the input's key in every row."""
    match found:
        case BoundSource(object=object_, alias=alias):
            key = object_.schema.key
            return {ColumnRef(key[0].name, alias)} if len(key) == 1 else set()
        case BoundJoin(foreign_key=True):
            return equal_to_key(found.left)
        case BoundJoin(kind=JoinType.OUTER):
            return set()
    both = {found.left_key, found.right_key}
    for side in (found.left, found.right):
        same = equal_to_key(side) if isinstance(side, BoundJoin) else set()
        if same & both:
            both |= same
    return both


def viable_keys(found: BoundInput) -> list[ColumnRef]:
    """The qualified columns that could be the key of a join, the left ones first."""
    if isinstance(found, BoundSource) or found.kind is JoinType.OUTER:
        return []
    if found.foreign_key:
        return viable_keys(found.left)
    every = [*viable_keys(found.left), found.left_key, *viable_keys(found.right), found.right_key]
    columns = [each for each in every if isinstance(each, ColumnRef)]
    same = equal_to_key(found)
    return [column for column in dict.fromkeys(columns) if column in same]


def _shape(window: WindowInfo | None) -> tuple[WindowType, Duration | None] | None:
    return None if window is None else (window.type, given(window.size))


def _windowed(window: WindowInfo | None) -> str:
    return "not windowed" if window is None else f"{window.type} windowed"


def _name(expression: Expression) -> str:
    assert isinstance(expression, ColumnRef)
    return expression.name


@dataclass(frozen=True, slots=True)
class _Condition:
    """One join as it is written, between what was joined before and a source."""

    written: sql.Join
    earlier: Sequence[BoundSource]
    right: BoundSource
    relation: Relation

    def bind(self, left: BoundInput, left_key: Expression, right_key: Expression) -> BoundJoin:
        self._check_types(left_key, right_key)
        foreign = self._check_inputs(left, left_key, right_key)
        join = BoundJoin(
            kind=self.written.kind,
            left=left,
            right=self.right,
            left_key=left_key,
            right_key=right_key,
            key="",
            within=self.written.within,
            foreign_key=foreign,
        )
        viable = viable_keys(join)
        if viable:
            return replace(join, key=_name(self.relation.over_rows(viable[0])))
        return replace(join, key=_name(input_keys(join, self.relation)[0]) if foreign else self._synthetic())

    @property
    def position(self) -> Position | None:
        return self.written.condition.position

    @property
    def text(self) -> str:
        return format_expression(self.written.condition)

    # ---- the condition

    def sides(self) -> tuple[Expression, Expression]:
        """The two sides of the condition, that of the new source last."""
        condition = self.written.condition
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
        """Whether the join is one on a foreign key; refuses what no join can do."""
        self._check_windows()
        streams = is_stream(left), is_stream(self.right)
        self._check_within(all(streams))
        if all(streams):
            return False
        right = self.right.object
        if not streams[0] and streams[1]:
            tables = " and ".join(source.object.name for source in self.earlier)
            raise NotSupported(
                f"the table {tables} cannot be joined with the stream {right.name}",
                hint=f"Write {right.name} first, and join the table to it.",
                position=self.written.relation.position,
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
        if left_key in equal_to_key(left):
            return False
        self._refuse(JoinType.RIGHT, JoinType.OUTER, what="on a foreign key", why=NO_KEY)
        if isinstance(left, BoundJoin):
            raise NotSupported(
                f"a join on a foreign key must be the first of several: {self.text}",
                hint="Keep the first join in a table, and join that.",
                position=self.position,
            )
        if right.window is not None:
            raise NotSupported("a join on a foreign key cannot read a windowed table", position=self.position)
        return True

    def _other_key(self) -> str:
        """How the table could be joined: by the column of its key, or with a key that one column is."""
        keys = self.right.object.schema.key
        if len(keys) == 1:
            return f"Write ON … = {self.right.alias}.{keys[0].name}."
        return "A join has one condition: a table with a key of one column can be joined."

    def _check_windows(self) -> None:
        """Windowed keys meet only keys of the same windows."""
        left, right = self.earlier[0].object, self.right.object
        if _shape(left.window) != _shape(right.window):
            raise NotSupported(
                f"{left.name} and {right.name} cannot be joined: their keys are not windowed in the same way",
                detail=f"{left.name} is {_windowed(left.window)}, {right.name} is {_windowed(right.window)}.",
                position=self.written.relation.position,
            )

    def _refuse(self, *kinds: JoinType, what: str, why: str | None = None) -> None:
        kind = self.written.kind
        if kind in kinds:
            written = "FULL OUTER" if kind is JoinType.OUTER else str(kind)
            raise NotSupported(
                f"a join {what} cannot be {written}",
                detail=why,
                hint="INNER and LEFT joins can be done.",
                position=self.written.position,
            )

    def _check_within(self, wanted: bool) -> None:
        if wanted and self.written.within is None:
            raise BindError(
                "a join of two streams needs WITHIN",
                detail="It says how far apart in time two rows may be; without it all rows would have to be kept.",
                hint=f"Write JOIN {self.right.object.name} WITHIN 1 HOUR ON …",
                position=self.written.position,
            )
        if not wanted and self.written.within is not None:
            raise BindError("WITHIN is for joins of two streams", hint="Leave it out.", position=self.written.position)

    def _synthetic(self) -> str:
        """A name for the key that no source has."""
        taken = {column.name for source in self.relation.sources for column in source.columns}
        name, number = SYNTHETIC_KEY, 0
        while name in taken:
            number += 1
            name = f"{SYNTHETIC_KEY}_{number}"
        return name
