"""SELECT and its clauses."""

from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.errors import Position
from holdfast.runtime.expressions.tree import ColumnRef, Expression
from holdfast.runtime.plan.steps import JoinType
from holdfast.runtime.plan.windows import WindowExpression, WindowTime
from holdfast.sql.syntax.statements.elements import Clause, Identifier


class Emit(StrEnum):
    """The EMIT clause of a query."""

    CHANGES = "CHANGES"
    FINAL = "FINAL"
    ALL = "ALL"


@dataclass(frozen=True, slots=True)
class SelectExpression:
    """`expression [[AS] alias]`."""

    expression: Expression
    alias: str | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SelectStar:
    """`*` or `relation.*`."""

    qualifier: str | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SelectFields:
    """`struct->*`: each field as a column."""

    base: Expression
    position: Position | None = field(default=None, compare=False, repr=False)


SelectItem = SelectExpression | SelectStar | SelectFields


@dataclass(frozen=True, slots=True)
class RelationReference:
    """An object that a query reads, with its alias."""

    name: str
    alias: str
    position: Position | None = field(default=None, compare=False, repr=False)
    schema: str | None = None
    query: "Select | None" = None
    """The query of `(SELECT …) AS alias`, which has no name."""

    @property
    def full_name(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Within:
    """`WITHIN (before, after) [GRACE PERIOD grace]`; a single span applies to both sides."""

    before: WindowTime
    after: WindowTime
    grace: WindowTime | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """`[kind] JOIN relation [WITHIN …] ON condition`."""

    kind: JoinType
    relation: RelationReference
    condition: Expression
    within: Within | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Window:
    """`WINDOW TUMBLING|HOPPING|SESSION (…)`."""

    window: WindowExpression
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AsOf:
    """`AS OF [AT LEAST] time`: the time at which a query reads."""

    time: Expression
    at_least: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SortItem:
    """`expression [ASC | DESC] [NULLS FIRST | LAST]`; by default, NULLs are the greatest values."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class CommonTable:
    """`name [(columns)] AS (query)` of a WITH clause before a query."""

    name: Identifier
    columns: tuple[Identifier, ...]
    query: "Select"


@dataclass(frozen=True, slots=True)
class UnionPart:
    """`UNION [ALL] query`."""

    query: "Select"
    all: bool


class QueryForm(StrEnum):
    """How a subquery is used in an expression."""

    SCALAR = "scalar"
    EXISTS = "EXISTS"
    IN = "IN"


@dataclass(frozen=True, slots=True)
class QueryRef(ColumnRef):
    """A query inside an expression; the binder replaces it with a column."""

    query: "Select | None" = None
    form: QueryForm = QueryForm.SCALAR
    operand: Expression | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """A query. Without EMIT it is a pull query; in CREATE … AS it is always continuous.

    If there are `unions`, ORDER BY, LIMIT, OFFSET and AS OF apply to the whole union. `clauses` are its clauses that
    continuous queries do not support yet.
    """

    items: tuple[SelectItem, ...]
    relation: RelationReference
    tables: tuple[CommonTable, ...] = ()
    unions: tuple[UnionPart, ...] = ()
    distinct: bool = False
    order_by: tuple[SortItem, ...] = ()
    offset: int | None = None
    joins: tuple[Join, ...] = ()
    window: Window | None = None
    where: Expression | None = None
    partition_by: tuple[Expression, ...] = ()
    group_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    emit: Emit | None = None
    limit: int | None = None
    as_of: AsOf | None = None
    clauses: tuple[Clause, ...] = ()
    position: Position | None = field(default=None, compare=False, repr=False)
