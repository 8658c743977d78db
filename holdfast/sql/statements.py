"""What a user can write: one frozen class per statement, positions kept for later errors.

Positions take no part in equality. Clauses that this release reads but does not run are kept as `Clause`s,
so that the refusal can name them.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.errors import Position
from holdfast.runtime.expressions.tree import ColumnRef, Expression, StringLiteral
from holdfast.runtime.plan.steps import JoinType
from holdfast.runtime.plan.windows import WindowExpression, WindowTime
from holdfast.types import SqlType


class ObjectKind(StrEnum):
    """The kinds of relation that a statement can create or drop."""

    STREAM = "STREAM"
    TABLE = "TABLE"
    MATERIALIZED_VIEW = "MATERIALIZED VIEW"


class Marker(StrEnum):
    """The constraint written after a column's type."""

    NONE = ""
    KEY = "KEY"
    PRIMARY_KEY = "PRIMARY KEY"
    HEADERS = "HEADERS"


class Emit(StrEnum):
    """How a query's results come out; no EMIT clause is None."""

    CHANGES = "CHANGES"
    FINAL = "FINAL"
    ALL = "ALL"


@dataclass(frozen=True, slots=True)
class Identifier:
    """A name after folding: upper case unless it was quoted."""

    text: str
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Property:
    """One entry of a WITH clause; the name is upper case."""

    name: str
    value: str | int | bool | None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """One column of a CREATE; `header` is the key of `HEADER('key')`."""

    name: str
    type: SqlType
    marker: Marker = Marker.NONE
    header: str | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause that is read but not run, by its name: `ORDER BY`, `DISTINCT`."""

    name: str
    position: Position | None = field(default=None, compare=False, repr=False)


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
    """`struct->*`: every field as a column of its own."""

    base: Expression
    position: Position | None = field(default=None, compare=False, repr=False)


SelectItem = SelectExpression | SelectStar | SelectFields


@dataclass(frozen=True, slots=True)
class Relation:
    """The object that a query reads, and what the query calls it."""

    name: str
    alias: str
    position: Position | None = field(default=None, compare=False, repr=False)
    schema: str | None = None
    query: "Select | None" = None
    """Of `(SELECT …) AS alias`, which has no name."""

    @property
    def full_name(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Within:
    """`WITHIN (before, after) [GRACE PERIOD grace]`; one span stands for both sides."""

    before: WindowTime
    after: WindowTime
    grace: WindowTime | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """`[kind] JOIN relation [WITHIN …] ON condition`."""

    kind: JoinType
    relation: Relation
    condition: Expression
    within: Within | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Window:
    """`WINDOW TUMBLING (…)`, and its siblings."""

    window: WindowExpression
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AsOf:
    """`AS OF [AT LEAST] time`: the time that a query wants to be answered for."""

    time: Expression
    at_least: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SortItem:
    """`expression [ASC | DESC] [NULLS FIRST | LAST]`; NULLs count as the greatest unless that is said."""

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
    """What a query inside an expression gives."""

    SCALAR = "scalar"
    EXISTS = "EXISTS"
    IN = "IN"


@dataclass(frozen=True, slots=True)
class QueryRef(ColumnRef):
    """A query inside an expression, until the binder has made a column of it."""

    query: "Select | None" = None
    form: QueryForm = QueryForm.SCALAR
    operand: Expression | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """A query. Without EMIT it is a pull, inside a CREATE … AS it is continuous either way.

    ORDER BY, LIMIT, OFFSET and AS OF are those of the whole, when there are `unions`. `clauses` are those of its
    clauses that a continuous query cannot have yet.
    """

    items: tuple[SelectItem, ...]
    relation: Relation
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe:
    """`SUBSCRIBE [TO] object | (query) …`. `key` are the columns of `ENVELOPE UPSERT (KEY (…))`."""

    target: Identifier | Select
    options: tuple[Property, ...] = ()
    as_of: AsOf | None = None
    up_to: Expression | None = None
    key: tuple[Identifier, ...] = ()
    hold: Identifier | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSource:
    """`CREATE STREAM|TABLE name (columns) WITH (…)` over a topic. `read_only` is `CREATE SOURCE STREAM|TABLE`."""

    kind: ObjectKind
    name: Identifier
    columns: tuple[ColumnDefinition, ...]
    properties: tuple[Property, ...]
    or_replace: bool = False
    if_not_exists: bool = False
    read_only: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAs:
    """`CREATE STREAM|TABLE|MATERIALIZED VIEW name [WITH (…)] AS SELECT …`."""

    kind: ObjectKind
    name: Identifier
    properties: tuple[Property, ...]
    select: Select
    or_replace: bool = False
    if_not_exists: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertValues:
    """`INSERT INTO name [(columns)] VALUES (…)`; no column list is an empty one."""

    target: Identifier
    columns: tuple[Identifier, ...]
    values: tuple[Expression, ...]
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertSelect:
    """`INSERT INTO name [WITH (QUERY_ID = …)] SELECT …`."""

    target: Identifier
    properties: tuple[Property, ...]
    select: Select
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """`DROP STREAM|TABLE|MATERIALIZED VIEW [IF EXISTS] name [DELETE TOPIC] [CASCADE]`."""

    kind: ObjectKind
    name: Identifier
    if_exists: bool = False
    delete_topic: bool = False
    cascade: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateType:
    """`CREATE TYPE [IF NOT EXISTS] name AS type`."""

    name: Identifier
    type: SqlType
    if_not_exists: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropType:
    """`DROP TYPE [IF EXISTS] name`."""

    name: Identifier
    if_exists: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFunction:
    """`CREATE [OR REPLACE] FUNCTION [IF NOT EXISTS] name(argument type, …) RETURNS type LANGUAGE name AS 'source'`."""

    name: Identifier
    arguments: tuple[ColumnDefinition, ...]
    returns: SqlType
    language: Identifier
    source: str
    or_replace: bool = False
    if_not_exists: bool = False
    source_position: Position | None = field(default=None, compare=False, repr=False)
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropFunction:
    """`DROP FUNCTION [IF EXISTS] name`."""

    name: Identifier
    if_exists: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alter:
    """`ALTER STREAM|TABLE name ADD [COLUMN] column type, …` or, of what keeps rows, `SET|RESET (RETAIN HISTORY …)`.

    `retain` is for how long history is kept; its value is None where that is to be the default again.
    """

    kind: ObjectKind
    name: Identifier
    columns: tuple[ColumnDefinition, ...]
    retain: Property | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


RETAIN_HISTORY = "RETAIN_HISTORY"


class Listing(StrEnum):
    """What SHOW can list."""

    VIEWS = "VIEWS"
    MATERIALIZED_VIEWS = "MATERIALIZED VIEWS"
    STREAMS = "STREAMS"
    TABLES = "TABLES"
    QUERIES = "QUERIES"
    TOPICS = "TOPICS"
    PROPERTIES = "PROPERTIES"
    FUNCTIONS = "FUNCTIONS"
    TYPES = "TYPES"
    VARIABLES = "VARIABLES"
    HOLDS = "HOLDS"
    INDEXES = "INDEXES"


@dataclass(frozen=True, slots=True)
class Show:
    """`SHOW listing [EXTENDED]`; `everything` is `SHOW ALL TOPICS`, which has the internal ones, too.

    `on` is the object whose indexes are wanted.
    """

    listing: Listing
    extended: bool = False
    everything: bool = False
    on: Identifier | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Describe:
    name: Identifier
    extended: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DescribeFunction:
    name: Identifier
    position: Position | None = field(default=None, compare=False, repr=False)


class ExplainFormat(StrEnum):
    """How a plan is shown."""

    TEXT = "TEXT"
    JSON = "JSON"
    DOT = "DOT"
    SVG = "SVG"


@dataclass(frozen=True, slots=True)
class ExplainStatement:
    """EXPLAIN of a statement that need not run; `text` is that statement's."""

    statement: "Statement"
    format: ExplainFormat | None = None
    text: str = ""
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ExplainQuery:
    """EXPLAIN of a query that runs."""

    query: Identifier
    format: ExplainFormat | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ExplainTimestamp:
    """`EXPLAIN TIMESTAMP FOR query`: which time a query would be answered for, and why."""

    query: Select
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView:
    """`CREATE VIEW [IF NOT EXISTS] name [(columns)] AS query`."""

    name: Identifier
    columns: tuple[Identifier, ...]
    query: Select
    if_not_exists: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropView:
    """`DROP VIEW [IF EXISTS] name [CASCADE]`."""

    name: Identifier
    if_exists: bool = False
    cascade: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateIndex:
    """`CREATE [DEFAULT] INDEX [IF NOT EXISTS] [name] ON object [(expression, …)] [WITH (RETAIN HISTORY FOR …)]`."""

    name: Identifier | None
    on: Identifier
    expressions: tuple[Expression, ...] = ()
    properties: tuple[Property, ...] = ()
    default: bool = False
    if_not_exists: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterIndex:
    """`ALTER INDEX name SET|RESET (RETAIN HISTORY …)`; the value of `retain` is None where the default is meant."""

    name: Identifier
    retain: Property
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropIndex:
    """`DROP INDEX [IF EXISTS] name [CASCADE]`."""

    name: Identifier
    if_exists: bool = False
    cascade: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Begin:
    """`BEGIN [READ ONLY]`: the queries that follow are answered for one time; or what follows is changed at once."""

    read_only: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class End:
    """`COMMIT` or `ROLLBACK`, which differ for a transaction that changes something."""

    word: str
    position: Position | None = field(default=None, compare=False, repr=False)

    @property
    def commits(self) -> bool:
        return self.word.upper() == "COMMIT"


@dataclass(frozen=True, slots=True)
class SetProperty:
    name: str
    value: str
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class UnsetProperty:
    name: str
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Define:
    """`DEFINE name = 'value'`: from here on, `${name}` is the value."""

    name: Identifier
    value: str
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Undefine:
    name: Identifier
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Terminate:
    """`TERMINATE query` or, with no query, `TERMINATE ALL`."""

    query: Identifier | None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Print:
    """`PRINT topic [FROM BEGINNING] [INTERVAL n] [LIMIT n]`: every n-th record. Names of topics keep their case."""

    topic: str
    from_beginning: bool = False
    interval: int = 1
    limit: int | None = None
    position: Position | None = field(default=None, compare=False, repr=False)
    topic_position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertTopic:
    """`ASSERT [NOT EXISTS] TOPIC topic [WITH (…)] [TIMEOUT …]`."""

    topic: str
    exists: bool = True
    properties: tuple[Property, ...] = ()
    timeout: WindowTime | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertSchema:
    """`ASSERT [NOT EXISTS] SCHEMA [SUBJECT name] [ID n] [TIMEOUT …]`."""

    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pause:
    """`PAUSE query` or, with no query, `PAUSE ALL`."""

    query: Identifier | None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Resume:
    """`RESUME query` or, with no query, `RESUME ALL`."""

    query: Identifier | None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateHold:
    """`CREATE HOLD [name] ON object[, …] [AT time] [WITH (MAX LAG = duration)]`."""

    name: Identifier | None
    on: tuple[Identifier, ...]
    at: Expression | None = None
    max_lag: StringLiteral | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AdvanceHold:
    """`ALTER HOLD name ADVANCE [TO time]`."""

    name: Identifier
    to: Expression | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RenameHold:
    """`ALTER HOLD name RENAME TO name`."""

    name: Identifier
    to: Identifier
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DropHold:
    """`DROP HOLD [IF EXISTS] name`."""

    name: Identifier
    if_exists: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """A statement that ksqlDB or Materialize has and this release does not run, by its leading words."""

    words: str
    position: Position | None = field(default=None, compare=False, repr=False)


Statement = (
    Select
    | Subscribe
    | CreateSource
    | CreateAs
    | InsertValues
    | InsertSelect
    | CreateType
    | DropType
    | CreateFunction
    | DropFunction
    | Alter
    | Drop
    | Show
    | Describe
    | DescribeFunction
    | ExplainStatement
    | ExplainQuery
    | ExplainTimestamp
    | Begin
    | End
    | CreateView
    | DropView
    | CreateIndex
    | AlterIndex
    | DropIndex
    | SetProperty
    | UnsetProperty
    | Define
    | Undefine
    | Terminate
    | Pause
    | Resume
    | Print
    | AssertTopic
    | AssertSchema
    | CreateHold
    | AdvanceHold
    | RenameHold
    | DropHold
    | Refused
)
