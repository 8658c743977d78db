"""The steps that read topics and collections, and what every step carries."""

from dataclasses import dataclass
from typing import ClassVar, NewType

from holdfast.names import ObjectName, TopicName
from holdfast.runtime.plan.formats import Formats, TimestampColumn
from holdfast.runtime.plan.optional import ABSENT, Maybe
from holdfast.runtime.plan.windows import Duration, WindowInfo, WindowStoreSettings, WindowTopic

SchemaText = NewType("SchemaText", str)
"""Columns as SQL text: `` `ID` INTEGER KEY, `NAME` STRING ``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProperties:
    """What every step carries. `query_context` is a path of names (`A/B`) that identifies a step's state and logs."""

    query_context: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSource:
    """Read a topic as a stream. `pseudo_column_version` 0 has ROWTIME only, 1 also ROWPARTITION and ROWOFFSET."""

    TAG: ClassVar[str] = "streamSourceV1"
    properties: StepProperties
    topic_name: TopicName
    formats: Formats
    timestamp_column: Maybe[TimestampColumn] = ABSENT
    source_schema: SchemaText
    pseudo_column_version: Maybe[int] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowedStreamSource:
    """Read a topic with windowed keys as a stream."""

    TAG: ClassVar[str] = "windowedStreamSourceV1"
    properties: StepProperties
    topic_name: TopicName
    formats: Formats
    window_info: WindowInfo
    timestamp_column: Maybe[TimestampColumn] = ABSENT
    source_schema: SchemaText
    pseudo_column_version: Maybe[int] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """Read a topic as a table, stored in `state_store_formats`."""

    TAG: ClassVar[str] = "tableSourceV2"
    properties: StepProperties
    topic_name: TopicName
    formats: Formats
    timestamp_column: Maybe[TimestampColumn] = ABSENT
    source_schema: SchemaText
    pseudo_column_version: int
    state_store_formats: Formats


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSourceV1:
    """Read a topic as a table; `force_changelog` stores it from a private changelog instead of the topic."""

    TAG: ClassVar[str] = "tableSourceV1"
    properties: StepProperties
    topic_name: TopicName
    formats: Formats
    timestamp_column: Maybe[TimestampColumn] = ABSENT
    source_schema: SchemaText
    force_changelog: Maybe[bool] = ABSENT
    pseudo_column_version: Maybe[int] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowedTableSource:
    """Read a topic with windowed keys as a table."""

    TAG: ClassVar[str] = "windowedTableSourceV1"
    properties: StepProperties
    topic_name: TopicName
    formats: Formats
    window_info: WindowInfo
    timestamp_column: Maybe[TimestampColumn] = ABSENT
    source_schema: SchemaText
    pseudo_column_version: Maybe[int] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStoreSource:
    """Read a topic with windowed keys as a table whose windows expire after `retention`.

    Several tables over the topic may retain their windows differently; `source_name` says which of them is read.
    """

    TAG: ClassVar[str] = "windowStoreSourceV1"
    properties: StepProperties
    topic_name: TopicName
    formats: Formats
    window_info: WindowInfo
    window_topic: WindowTopic
    retention: Duration
    timestamp_column: Maybe[TimestampColumn] = ABSENT
    source_schema: SchemaText
    pseudo_column_version: Maybe[int] = ABSENT
    source_name: Maybe[ObjectName] = ABSENT

    @property
    def window_store(self) -> WindowStoreSettings:
        return WindowStoreSettings(topic=self.window_topic, retention=self.retention)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSource:
    """Read the collection of an object without a topic, such as a materialized view. Its rows have ROWTIME."""

    TAG: ClassVar[str] = "collectionSourceV1"
    properties: StepProperties
    source_name: ObjectName
    window_info: Maybe[WindowInfo] = ABSENT
    source_schema: SchemaText


WindowedSourceStep = WindowedStreamSource | WindowedTableSource | WindowStoreSource
"""The steps that read a topic with windowed keys."""
TableSourceStep = TableSource | TableSourceV1 | WindowedTableSource | WindowStoreSource
"""The steps that read a topic as a table."""
TopicSourceStep = StreamSource | WindowedStreamSource | TableSourceStep
SourceStep = TopicSourceStep | CollectionSource
