"""The commands of a plan that change the catalog."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NewType

from holdfast.names import ObjectName, TopicName
from holdfast.runtime.plan.formats import Formats, TimestampColumn
from holdfast.runtime.plan.optional import ABSENT, Maybe
from holdfast.runtime.plan.steps import ExpressionText, SchemaText
from holdfast.runtime.plan.windows import Duration, WindowInfo, WindowStoreSettings, WindowTopic

TypeText = NewType("TypeText", str)
"""One SQL type as text: ``STRUCT<`CITY` STRING>``."""


class SourceType(StrEnum):
    """The kind of object that ALTER changes."""

    STREAM = "STREAM"
    TABLE = "TABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateStream:
    """Add a stream to the catalog. `key_field` is ksqlDB 5.5's name of a value column that repeats the key."""

    TAG: ClassVar[str] = "createStreamV1"
    source_name: ObjectName
    schema: SchemaText
    key_field: Maybe[str] = ABSENT
    timestamp_column: Maybe[TimestampColumn] = ABSENT
    topic_name: TopicName
    formats: Formats
    window_info: Maybe[WindowInfo] = ABSENT
    or_replace: Maybe[bool] = ABSENT
    is_source: Maybe[bool] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """Add a table to the catalog. `key_field` is ksqlDB 5.5's name of a value column that repeats the key."""

    TAG: ClassVar[str] = "createTableV1"
    source_name: ObjectName
    schema: SchemaText
    key_field: Maybe[str] = ABSENT
    timestamp_column: Maybe[TimestampColumn] = ABSENT
    topic_name: TopicName
    formats: Formats
    window_info: Maybe[WindowInfo] = ABSENT
    or_replace: Maybe[bool] = ABSENT
    is_source: Maybe[bool] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateWindowedTable:
    """Add a table over a windowed topic to the catalog, whose windows expire after `retention`."""

    TAG: ClassVar[str] = "createWindowedTableV1"
    source_name: ObjectName
    schema: SchemaText
    timestamp_column: Maybe[TimestampColumn] = ABSENT
    topic_name: TopicName
    formats: Formats
    window_info: WindowInfo
    window_topic: WindowTopic
    retention: Duration
    or_replace: Maybe[bool] = ABSENT
    is_source: Maybe[bool] = ABSENT

    @property
    def window_store(self) -> WindowStoreSettings:
        return WindowStoreSettings(topic=self.window_topic, retention=self.retention)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateMaterializedView:
    """Add a materialized view to the catalog: the result of the plan's query, stored without a topic."""

    TAG: ClassVar[str] = "createMaterializedViewV1"
    source_name: ObjectName
    schema: SchemaText
    window_info: Maybe[WindowInfo] = ABSENT
    or_replace: Maybe[bool] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterType:
    """Register a type under a name."""

    TAG: ClassVar[str] = "registerTypeV1"
    type: TypeText
    type_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSource:
    """Remove a stream, table or materialized view from the catalog."""

    TAG: ClassVar[str] = "dropSourceV1"
    source_name: ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class DropType:
    """Remove a registered type."""

    TAG: ClassVar[str] = "dropTypeV1"
    type_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSource:
    """Add columns to a stream or table; each of `new_columns` is one column's text."""

    TAG: ClassVar[str] = "alterSourceV1"
    source_name: ObjectName
    ksql_type: SourceType
    new_columns: tuple[SchemaText, ...]


class FunctionKind(StrEnum):
    """Whether a function is scalar or an aggregate."""

    SCALAR = "SCALAR"
    AGGREGATE = "AGGREGATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFunction:
    """Create a user-defined function; `arguments` has the syntax of a schema."""

    TAG: ClassVar[str] = "createFunctionV1"
    function_name: str
    kind: FunctionKind
    arguments: SchemaText
    returns: TypeText
    language: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropFunction:
    """Remove a user-defined function; queries keep the version that they were planned with."""

    TAG: ClassVar[str] = "dropFunctionV1"
    function_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView:
    """Add a view to the catalog. `definition` is its CREATE statement, which queries over the view inline."""

    TAG: ClassVar[str] = "createViewV1"
    view_name: ObjectName
    sources: tuple[ObjectName, ...]
    definition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropView:
    """Remove a view from the catalog."""

    TAG: ClassVar[str] = "dropViewV1"
    view_name: ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateIndex:
    """Add an index on an object to the catalog: by `expressions`, or by the object's key if there are none.

    `schema` and `window_info` are those of the object.
    """

    TAG: ClassVar[str] = "createIndexV1"
    index_name: ObjectName
    source_name: ObjectName
    schema: SchemaText
    window_info: Maybe[WindowInfo] = ABSENT
    expressions: tuple[ExpressionText, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterIndex:
    """Change the history retention of an index; the command's properties contain the new value."""

    TAG: ClassVar[str] = "alterIndexV1"
    index_name: ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class DropIndex:
    """Remove an index from the catalog."""

    TAG: ClassVar[str] = "dropIndexV1"
    index_name: ObjectName


DdlCommand = (
    CreateStream
    | CreateTable
    | CreateWindowedTable
    | CreateMaterializedView
    | RegisterType
    | DropSource
    | DropType
    | AlterSource
    | CreateFunction
    | DropFunction
    | CreateView
    | DropView
    | CreateIndex
    | AlterIndex
    | DropIndex
)

DDL_TYPES: Mapping[str, type[DdlCommand]] = {command.TAG: command for command in DdlCommand.__args__}
"""Every wire tag and its class."""
