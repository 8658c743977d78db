"""Catalog objects: streams, tables, views, indexes and holds, and the queries that maintain them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar

from holdfast.names import HoldId, ObjectId, ObjectName, QueryId, TopicName, show
from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, Formats, TimestampColumn
from holdfast.runtime.plan.steps import ExpressionText
from holdfast.runtime.plan.windows import WindowInfo, WindowStoreSettings
from holdfast.runtime.store.port import Time
from holdfast.types import Schema

NO_TOPIC_FORMATS = Formats(
    key_format=FormatInfo(format="NONE", properties=FormatProperties()),
    value_format=FormatInfo(format="JSON", properties=FormatProperties()),
)
"""The formats of an object without a topic: the default formats of queries that read it."""

NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})

SERVERS_OWN = ObjectId(0)
"""The id of objects that no command created: the first command of a topic binds it to its store."""


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Settings for creating a topic that does not exist yet.

    None leaves the choice to the server: the topic of a query gets the setting of the query's source.
    """

    partitions: int | None = None
    replicas: int | None = None
    retention_ms: int | None = None
    cleanup_policy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The records of a topic as append-only rows. `query` is the query that writes them, None for a topic that other
    programs write.

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
    id: ObjectId = SERVERS_OWN

    @property
    def derived(self) -> bool:
        """Whether a query writes it; if not, it reads a topic that other programs write."""
        return self.query is not None

    @property
    def maintained(self) -> bool:
        """Whether its rows come from queries rather than from a topic."""
        return self.derived


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The latest row per key of a changelog topic or of a query. `query` is the query that writes it.

    With `window`, there is one row per key and window. `window_store` says how windows that are read from a topic are
    retained; None for the windows of a query, and for those of a topic that never expire. `retain_ms` is its history
    retention, None for the default. A materialized view and a system table have no `topic`.
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
    id: ObjectId = SERVERS_OWN
    retain_ms: int | None = None
    window_store: WindowStoreSettings | None = None

    @property
    def derived(self) -> bool:
        """Whether a query writes it; if not, it reads a topic that other programs write."""
        return self.query is not None

    @property
    def maintained(self) -> bool:
        """Always True: a query maintains the rows of a table over a topic, too."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializedView(Table):
    """A table that a query maintains only in the store, without a topic."""

    KIND: ClassVar[str] = "materialized view"
    topic: None = None
    formats: Formats = NO_TOPIC_FORMATS


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedView(Table):
    """A plain view as stored in an index on it. `name` and `query` are those of the index, `view` is the view's name.

    `columns` are the names of its columns in the order of the view; in the schema, the key comes first.
    """

    KIND: ClassVar[str] = "index"
    topic: None = None
    formats: Formats = NO_TOPIC_FORMATS
    view: ObjectName
    columns: tuple[str, ...]
    of_groups: bool
    """Whether it groups the rows of tables; it then has no groups with a NULL key, as every aggregated table."""


CatalogObject = Stream | Table
"""What queries read; a materialized view is also a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Keeps objects readable at a time until the hold is advanced. The time itself is in the store."""

    KIND: ClassVar[str] = "hold"
    id: HoldId
    name: ObjectName
    on: tuple[ObjectName, ...]
    max_lag_ms: int
    statement: str = ""


@dataclass(frozen=True, slots=True)
class NamedHold:
    """The name of a hold and its time."""

    name: ObjectName
    at: Time


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A named query. `definition` is the statement that created it, `sources` are the objects that it reads."""

    KIND: ClassVar[str] = "view"
    name: ObjectName
    sources: tuple[ObjectName, ...]
    definition: str
    id: ObjectId = SERVERS_OWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An object's rows, organized by `expressions` or, without any, by the object's key; a separate collection.

    An index on a plain view, which stores no rows, has the rows of the view's query.

    `schema` and `window` are those of the object when the index was created; columns added later are not in the index.
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
        """Its key, as text."""
        return self.expressions or tuple(show(column.name) for column in self.schema.key)


Holdable = Table | Index
"""Objects with a history, on which holds can be created."""


class QueryState(StrEnum):
    """The state of a query according to the command topic; the coordinator knows if it is backfilling or has failed."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    INCOMPATIBLE = "INCOMPATIBLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEntry:
    """A query as its command describes it; the encoded plan is what runs.

    An INCOMPATIBLE query is quarantined: this release cannot read its plan, and `reason` says why.
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
