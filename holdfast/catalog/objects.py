"""What the catalog holds: streams, tables and materialized views, and the queries that keep them current."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar

from holdfast.names import HoldId, ObjectName, QueryId, TopicName, show
from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, Formats, TimestampColumn
from holdfast.runtime.plan.steps import ExpressionText
from holdfast.runtime.plan.windows import WindowInfo
from holdfast.types import Schema

UNWRITTEN = Formats(
    key_format=FormatInfo(format="NONE", properties=FormatProperties()),
    value_format=FormatInfo(format="JSON", properties=FormatProperties()),
)
"""Of what has no topic: how a query that reads it has its rows, when nothing else is said."""

NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """How a topic is created when Kafka does not have it yet.

    None leaves the choice to the server; for the topic of a query, that is what the query's source has.
    """

    partitions: int | None = None
    replicas: int | None = None
    retention_ms: int | None = None
    cleanup_policy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An append-only reading of a topic. `query` is the query that made it, None when others write the topic.

    With `window`, the topic's keys are windowed.
    """

    KIND: ClassVar[str] = "stream"
    name: ObjectName
    schema: Schema
    topic: TopicName
    formats: Formats
    window: WindowInfo | None = None
    timestamp: TimestampColumn | None = None
    read_only: bool = False
    statement: str = ""
    query: QueryId | None = None
    topic_settings: TopicSettings = field(default_factory=TopicSettings)

    @property
    def derived(self) -> bool:
        """True when a query writes it, false when it reads a topic of someone else."""
        return self.query is not None

    @property
    def kept(self) -> bool:
        """True when its rows come from queries, false when they come from a topic."""
        return self.derived


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The latest row per key of a changelog topic or of a query. `query` is the query that writes it.

    With `window`, there is a row per key and window. `retain_ms` is how long it keeps its history; None is the default.
    What no query writes out has no `topic`: a materialized view, a table of the system.
    """

    KIND: ClassVar[str] = "table"
    name: ObjectName
    schema: Schema
    topic: TopicName | None
    formats: Formats
    window: WindowInfo | None = None
    timestamp: TimestampColumn | None = None
    read_only: bool = False
    statement: str = ""
    query: QueryId | None = None
    topic_settings: TopicSettings = field(default_factory=TopicSettings)
    retain_ms: int | None = None

    @property
    def derived(self) -> bool:
        """True when a query writes it, false when it reads a topic of someone else."""
        return self.query is not None

    @property
    def kept(self) -> bool:
        """Always true: also the rows of a table over a topic are kept by a query."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializedView(Table):
    """A table that a query keeps in the store alone: it has no topic, and nothing is written of it."""

    KIND: ClassVar[str] = "materialized view"
    topic: None = None
    formats: Formats = UNWRITTEN


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedView(Table):
    """A plain view as an index on it has its rows. `name` and `query` are the index's; `view` is what that is on.

    `columns` are the names of its columns in the order that the view has them: in the schema, the key comes first.
    """

    KIND: ClassVar[str] = "index"
    topic: None = None
    formats: Formats = UNWRITTEN
    view: ObjectName
    columns: tuple[str, ...]
    of_groups: bool
    """Whether it has groups of tables' rows: those of nulls are then not in it, as in no table of groups."""


CatalogObject = Stream | Table
"""What queries read; a materialized view is a table, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A promise that a time of some objects stays readable until it is moved on. The time itself is in the store."""

    KIND: ClassVar[str] = "hold"
    id: HoldId
    name: ObjectName
    on: tuple[ObjectName, ...]
    max_lag_ms: int
    statement: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A query under a name. `definition` is the statement that made it, `sources` are what it reads."""

    KIND: ClassVar[str] = "view"
    name: ObjectName
    sources: tuple[ObjectName, ...]
    definition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An object's rows by `expressions` over them, or by its key when there are none; a collection of its own.

    On a plain view, which has no rows of its own, it keeps those of the view's query.

    `schema` and `window` are the object's as the index has its rows: columns that it got later are not in the index.
    """

    KIND: ClassVar[str] = "index"
    name: ObjectName
    on: ObjectName
    expressions: tuple[ExpressionText, ...]
    schema: Schema
    query: QueryId
    window: WindowInfo | None = None
    retain_ms: int | None = None
    statement: str = ""

    @property
    def by(self) -> tuple[str, ...]:
        """What it is by, in words."""
        return self.expressions or tuple(show(column.name) for column in self.schema.key)


Held = Table | Index
"""What keeps its history, and can be held."""


class QueryState(StrEnum):
    """What the command topic says of a query; whether it is being built or has failed, the coordinator knows."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    INCOMPATIBLE = "INCOMPATIBLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEntry:
    """A query as its command gives it: the encoded plan is what runs.

    An INCOMPATIBLE one is in quarantine: this release cannot read its plan, for `reason`, and leaves it alone.
    """

    id: QueryId
    statement: str
    plan: bytes
    sources: tuple[ObjectName, ...]
    sink: ObjectName | None
    properties: Mapping[str, str] = field(default_factory=lambda: NO_PROPERTIES)
    release: str = ""
    state: QueryState = QueryState.RUNNING
    reason: str | None = None
