"""Statements after binding: every name found, every expression typed, every rule checked.

Expressions here name columns as plans do: without a qualifier, and with the alias of their source as a prefix when the
query joins (`L_A`). Only the two sides of a join's condition are qualified. `COUNT(*)` has become `COUNT(ROWTIME)`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.catalog.objects import CatalogObject, Hold, Index, QueryEntry, Stream, Table, TopicSettings
from holdfast.errors import Position
from holdfast.names import ObjectName, TopicName
from holdfast.runtime.expressions.tree import Expression
from holdfast.runtime.functions.user import UserFunction
from holdfast.runtime.plan.formats import Formats, TimestampColumn
from holdfast.runtime.plan.windows import WindowInfo
from holdfast.sql.bound_hold import BoundAdvanceHold, BoundCreateHold, BoundDropHold, BoundRenameHold
from holdfast.sql.bound_index import BoundAlterIndex, BoundCreateIndex, BoundDropIndex
from holdfast.sql.bound_query import BoundColumn, BoundQuery
from holdfast.sql.bound_read import BoundRead
from holdfast.sql.moments import BoundAsOf, Moment
from holdfast.sql.statements import (
    Begin,
    Define,
    Describe,
    DescribeFunction,
    End,
    ExplainFormat,
    ExplainQuery,
    ObjectKind,
    Print,
    SetProperty,
    Show,
    Undefine,
    UnsetProperty,
)
from holdfast.types import Column, Schema, SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a CREATE makes: the object, its topic and how that is written; a materialized view has no topic."""

    kind: ObjectKind
    name: ObjectName
    schema: Schema
    topic: TopicName | None
    formats: Formats
    window: WindowInfo | None = None
    timestamp: TimestampColumn | None = None
    topic_settings: TopicSettings = field(default_factory=TopicSettings)
    or_replace: bool = False
    read_only: bool = False
    retain_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateSource:
    """An object over a topic that others write."""

    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateAs:
    """An object that a query keeps current. `replaces` is the query that it goes on from."""

    target: Target
    query: BoundQuery
    replaces: QueryEntry | None = None
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundInsertSelect:
    """A query that writes what it finds to a stream that is there already. `query_id` is one that the user chose."""

    target: Stream
    query: BoundQuery
    query_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundInsert:
    """One row for a stream or a table: a value for each of `columns`; ROWTIME may be among them."""

    target: CatalogObject
    columns: tuple[Column, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundDrop:
    """An object to drop, with the query that writes it."""

    target: CatalogObject
    delete_topic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateType:
    """A type to give a name."""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundDropType:
    """The name of a type to forget; what was made with it keeps the type."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateFunction:
    """A version of a user's function, which its name is to mean from now on."""

    function: UserFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateView:
    """A view; `sources` are what it reads."""

    name: ObjectName
    sources: tuple[ObjectName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundDropView:
    """A view to forget."""

    name: ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundDropFunction:
    """The name of a user's function to forget; queries keep the version that they were planned with."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAlter:
    """Columns to add to an object, or for how long it keeps its history: `retain_ms`, None for the default."""

    target: CatalogObject
    columns: tuple[Column, ...]
    retains: bool = False
    retain_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTerminate:
    """Queries to end; what they wrote stays."""

    queries: tuple[QueryEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPause:
    """Queries to stop where they are; they keep what they have."""

    queries: tuple[QueryEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundResume:
    """Queries to go on with."""

    queries: tuple[QueryEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAssertTopic:
    """A topic that must be there within `timeout_ms`, or must not, with the partitions, replicas and settings named."""

    topic: TopicName
    exists: bool
    partitions: int | None = None
    replicas: int | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int = 1_000


class SelectKind(StrEnum):
    """How a SELECT answers: once, on and on, or once and then on and on."""

    PULL = "PULL"
    PUSH = "PUSH"
    ALL = "ALL"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundSelect:
    """A query of a client: it reads one object and is not stored."""

    kind: SelectKind
    relation: CatalogObject
    columns: tuple[BoundColumn, ...]
    where: Expression | None = None
    limit: int | None = None
    as_of: BoundAsOf | None = None
    indexes: tuple[Index, ...] = ()
    """Those on what it reads."""

    @property
    def tables(self) -> tuple[Table, ...]:
        """What it reads, when that is a table."""
        return (self.relation,) if isinstance(self.relation, Table) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundSubscribe:
    """A query whose changes a client follows. `key` are the places of ENVELOPE UPSERT's columns in the query."""

    select: BoundSelect | BoundRead
    snapshot: bool = True
    progress: bool = False
    as_of: BoundAsOf | None = None
    up_to: Moment | None = None
    key: tuple[int, ...] = ()
    hold: Hold | None = None
    """Begin at its time."""

    @property
    def limit(self) -> None:
        """It ends by UP TO, not by a number of rows."""


@dataclass(frozen=True, slots=True)
class BoundExplain:
    """EXPLAIN of a statement that need not run; `text` is that statement's."""

    statement: "BoundStatement"
    text: str
    format: ExplainFormat


@dataclass(frozen=True, slots=True)
class BoundExplainTimestamp:
    """EXPLAIN TIMESTAMP of a query that is answered once."""

    query: BoundSelect | BoundRead


@dataclass(frozen=True, slots=True)
class BoundNothing:
    """A statement that has nothing to do, such as DROP … IF EXISTS of what is not there; `notice` says why."""

    notice: str


BoundStatement = (
    BoundCreateSource
    | BoundCreateAs
    | BoundInsert
    | BoundInsertSelect
    | BoundDrop
    | BoundCreateType
    | BoundDropType
    | BoundCreateFunction
    | BoundDropFunction
    | BoundCreateView
    | BoundDropView
    | BoundCreateIndex
    | BoundAlterIndex
    | BoundDropIndex
    | BoundAlter
    | BoundTerminate
    | BoundPause
    | BoundResume
    | BoundAssertTopic
    | Print
    | BoundCreateHold
    | BoundAdvanceHold
    | BoundRenameHold
    | BoundDropHold
    | BoundSelect
    | BoundSubscribe
    | BoundRead
    | BoundExplain
    | BoundExplainTimestamp
    | BoundNothing
    | Show
    | Describe
    | DescribeFunction
    | ExplainQuery
    | Begin
    | End
    | SetProperty
    | UnsetProperty
    | Define
    | Undefine
)
