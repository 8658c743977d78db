"""The rows of a stream or a table as the SELECT that gives them; it becomes a statement only where it is needed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from holdfast.errors import TopologyError, TypeMismatch, UnknownColumn
from holdfast.names import quote
from holdfast.runtime.compiler.inference import type_of
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import Binary, Call, ColumnRef, Expression, Operator
from holdfast.sql.query.relation import PSEUDO_COLUMNS, WINDOW_BOUNDS
from holdfast.sql.syntax.statements import ObjectKind
from holdfast.sql.syntax.walk import rewrite
from holdfast.streams.nodes import Columns, TopologyNode
from holdfast.streams.python_functions import PythonFunction, versioned
from holdfast.streams.serdes import BARE_JSON, JSON, KAFKA, KAFKA_TYPES, DeclaredFormat
from holdfast.streams.windows import KeyWindow
from holdfast.types import Scalar, SqlType, is_scalar

KEY, VALUE = "key", "value"
LEFT, RIGHT = "L", "R"
"""The aliases of the two sides of a join."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the rows, and the expression over the input that gives it."""

    name: str
    expression: Expression
    type: SqlType

    @property
    def item(self) -> str:
        """Its item in a select list."""
        text = format_expression(self.expression)
        return quote(self.name) if self.expression == ColumnRef(self.name) else f"{text} AS {quote(self.name)}"


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of an object."""

    node: TopologyNode

    @property
    def nodes(self) -> Sequence[TopologyNode]:
        return (self.node,)

    @property
    def text(self) -> str:
        return quote(self.node.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinInput:
    """Pairs of rows of two objects, which are called L and R. `within` is the window of a join of streams."""

    join_type: str
    left: TopologyNode
    right: TopologyNode
    left_key: Expression
    right_key: Expression
    within: str = ""

    @property
    def nodes(self) -> Sequence[TopologyNode]:
        return (self.left, self.right)

    @property
    def text(self) -> str:
        condition = f"{format_expression(self.left_key)} = {format_expression(self.right_key)}"
        sides = f"{quote(self.left.name)} AS {LEFT} {self.join_type} {quote(self.right.name)} AS {RIGHT}"
        return f"{sides}{self.within} ON {condition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyRows:
    """Rows of an input, filtered, projected and, if `partitioned`, with another key."""

    kind: ObjectKind
    input: Scan | JoinInput
    key: tuple[Field, ...]
    values: tuple[Field, ...]
    key_format: DeclaredFormat
    value_format: DeclaredFormat
    where: Expression | None = None
    partitioned: bool = False
    window: KeyWindow | None = None
    functions: tuple[PythonFunction, ...] = ()

    @classmethod
    def of(cls, node: TopologyNode) -> Self:
        """All rows of an object."""
        return cls(
            kind=node.kind,
            input=Scan(node),
            key=tuple(Field(name, ColumnRef(name), type_) for name, type_ in node.key),
            values=tuple(Field(name, ColumnRef(name), type_) for name, type_ in node.values),
            key_format=node.key_format,
            value_format=node.value_format,
            window=node.window,
        )

    @property
    def node(self) -> TopologyNode | None:
        """The object whose rows these are, unchanged; None for rows that are filtered, projected or joined."""
        if isinstance(self.input, JoinInput) or self.where is not None or self.partitioned:
            return None
        all_rows = TopologyRows.of(self.input.node)
        return self.input.node if (self.key, self.values) == (all_rows.key, all_rows.values) else None

    @property
    def is_single(self) -> bool:
        """Whether a value is that of one column, rather than a row."""
        return len(self.values) == 1 and not self.value_format.wraps

    # -- expressions

    def field(self, name: str) -> Field:
        """A column by its name, in any case unless two names differ only by it."""
        fields = {each.name: each for each in (*self.key, *self.values)}
        return fields[column_named(name, list(fields), relation=self.name)]

    @property
    def name(self) -> str:
        """The name in errors."""
        return " or ".join(node.name for node in self.input.nodes)

    def resolve(self, expression: Expression) -> Expression:
        """The expression over the input."""

        def change(node: Expression) -> Expression | None:
            if not isinstance(node, ColumnRef) or node.qualifier is not None:
                return None
            return node if self._is_pseudo(node.name) else self.field(node.name).expression

        return rewrite(expression, change)

    def type_of(self, expression: Expression) -> SqlType:
        """The type of an expression over the rows."""

        def change(node: Expression) -> Expression | None:
            if isinstance(node, ColumnRef) and node.qualifier is None and not self._is_pseudo(node.name):
                return ColumnRef(self.field(node.name).name)
            if isinstance(node, Call) and node.star:
                return Call(node.name, (ColumnRef("ROWTIME"),))
            return None

        return type_of(versioned(rewrite(expression, change), self.functions), self._scope)

    @property
    def _scope(self) -> Scope:
        columns = [ScopeColumn(each.name, each.type) for each in (*self.key, *self.values)]
        pseudo = [ScopeColumn(name, type_) for name, type_ in {**PSEUDO_COLUMNS, **WINDOW_BOUNDS}.items()]
        return Scope.of([*columns, *pseudo], relation=self.name)

    def _is_pseudo(self, name: str) -> bool:
        return name in PSEUDO_COLUMNS or name in WINDOW_BOUNDS

    def with_functions(self, *functions: PythonFunction) -> "TopologyRows":
        known = dict.fromkeys((*self.functions, *functions))
        return replace(self, functions=tuple(known))

    # -- other rows

    def filtered(self, condition: Expression) -> "TopologyRows":
        """The rows for which a condition is true."""
        type_ = self.type_of(condition)
        if type_ is not Scalar.BOOLEAN:
            raise TypeMismatch(f"a filter needs a condition, not {format_expression(condition)} ({type_})")
        resolved = self.resolve(condition)
        where = resolved if self.where is None else Binary(Operator.AND, self.where, resolved)
        return replace(self, where=where)

    def with_value(self, expression: Expression) -> "TopologyRows":
        """The rows with a single value."""
        value = Field(free_name(VALUE, self.key), self.resolve(expression), self.type_of(expression))
        return replace(self, values=(value,), value_format=single_format(value.type))

    def with_values(self, columns: Mapping[str, Expression]) -> "TopologyRows":
        """The rows with other value columns."""
        fields = tuple(Field(name, self.resolve(each), self.type_of(each)) for name, each in columns.items())
        self._check_names((*self.key, *fields))
        return replace(self, values=fields, value_format=row_format(self.value_format, fields))

    def with_key(self, columns: Sequence[tuple[str, Expression]]) -> "TopologyRows":
        """The rows with another key."""
        fields = self.key_fields(columns)
        values = as_key_copies(self.values, fields)
        return replace(self, key=fields, values=values, key_format=key_format(fields), partitioned=True)

    def key_fields(self, columns: Sequence[tuple[str, Expression]]) -> tuple[Field, ...]:
        """The columns of a key; those without a name are called `key`, unless a value is."""
        return tuple(
            Field(name or free_name(KEY, self.values), self.resolve(each), self.type_of(each)) for name, each in columns
        )

    def _check_names(self, fields: Iterable[Field]) -> None:
        names = [each.name for each in fields]
        for name in names:
            if names.count(name) > 1:
                raise TopologyError(
                    f'two columns of the rows are called "{name}"',
                    hint=f"Give one of them another name. The key is {', '.join(each.name for each in self.key)}.",
                )

    # -- SQL

    @property
    def columns(self) -> tuple[Columns, Columns]:
        """The names and types of the key and of the values."""
        key, values = (tuple((each.name, each.type) for each in side) for side in (self.key, self.values))
        return key, values

    @property
    def select(self) -> str:
        """The query that gives the rows."""
        parts = [f"SELECT {', '.join(each.item for each in (*self.key, *self.values))} FROM {self.input.text}"]
        parts += self.where_clause
        if self.partitioned:
            parts.append(f"PARTITION BY {', '.join(format_expression(each.expression) for each in self.key)}")
        return " ".join(parts)

    @property
    def where_clause(self) -> list[str]:
        return [] if self.where is None else [f"WHERE {format_expression(self.where)}"]


def as_key_copies(values: Iterable[Field], key: Iterable[Field]) -> tuple[Field, ...]:
    """The values, with copies of those that are also the key: each column of the input is selected once."""
    keys = [each.expression for each in key]
    return tuple(
        replace(each, expression=Call("AS_VALUE", (each.expression,))) if each.expression in keys else each
        for each in values
    )


def column_named(name: str, columns: Sequence[str], *, relation: str) -> str:
    """The column with a name, in any case unless two names differ only by it."""
    found = [each for each in columns if each == name]
    found = found or [each for each in columns if each.upper() == name.upper()]
    if len(found) != 1:
        raise UnknownColumn(name, relation=relation, known=columns)
    return found[0]


def free_name(name: str, taken: Iterable[Field]) -> str:
    """A name that no column has."""
    names = {each.name.upper() for each in taken}
    while name.upper() in names:
        name = f"{name}_"
    return name


def single_format(type_: SqlType) -> DeclaredFormat:
    return KAFKA if type_ in KAFKA_TYPES else BARE_JSON


def row_format(before: DeclaredFormat, fields: Sequence[Field]) -> DeclaredFormat:
    """The format of rows: that of the input where it can hold them."""
    if before.name == "DELIMITED" and before.wraps and all(is_scalar(each.type) for each in fields):
        return before
    return JSON


def key_format(fields: Sequence[Field]) -> DeclaredFormat:
    return single_format(fields[0].type) if len(fields) == 1 else JSON
