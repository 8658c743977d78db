"""The steps of a query: what is stored, and what the engine builds.

One class per wire tag. The newest class of a step has no suffix; a superseded one carries its version and stays
forever. To add a step, add its class here, its name to one of the kinds of `Step`, and its row to `vocabulary`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NewType

from holdfast.names import TopicName
from holdfast.runtime.plan.formats import Formats, TimestampColumn
from holdfast.runtime.plan.optional import ABSENT, Maybe, value_of
from holdfast.runtime.plan.sources import CollectionSource as CollectionSource
from holdfast.runtime.plan.sources import SchemaText as SchemaText
from holdfast.runtime.plan.sources import SourceStep as SourceStep
from holdfast.runtime.plan.sources import StepProperties as StepProperties
from holdfast.runtime.plan.sources import StreamSource as StreamSource
from holdfast.runtime.plan.sources import TableSource as TableSource
from holdfast.runtime.plan.sources import TableSourceStep as TableSourceStep
from holdfast.runtime.plan.sources import TableSourceV1 as TableSourceV1
from holdfast.runtime.plan.sources import TopicSourceStep as TopicSourceStep
from holdfast.runtime.plan.sources import WindowedSourceStep as WindowedSourceStep
from holdfast.runtime.plan.sources import WindowedStreamSource as WindowedStreamSource
from holdfast.runtime.plan.sources import WindowedTableSource as WindowedTableSource
from holdfast.runtime.plan.sources import WindowStoreSource as WindowStoreSource
from holdfast.runtime.plan.windows import Duration, OutputRefinement, WindowExpression, WindowText

ExpressionText = NewType("ExpressionText", str)
"""An expression, `expression AS name`, or function call as SQL text; `holdfast.runtime.expressions` parses it."""


class JoinType(StrEnum):
    """Which side of a join may be missing."""

    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    OUTER = "OUTER"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefinementInfo:
    """When a suppressed table emits its rows."""

    output_refinement: OutputRefinement


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFilter:
    """Keep the rows for which `filter_expression` is true; drop false and null. Holds no state."""

    TAG: ClassVar[str] = "streamFilterV1"
    properties: StepProperties
    source: "Step"
    filter_expression: ExpressionText


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFilter:
    """Keep the rows for which `filter_expression` is true; delete a row for which it becomes false."""

    TAG: ClassVar[str] = "tableFilterV1"
    properties: StepProperties
    source: "Step"
    filter_expression: ExpressionText


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSelect:
    """Compute the value columns; rename the key columns. With `selected_keys`, drop all other key columns."""

    TAG: ClassVar[str] = "streamSelectV1"
    properties: StepProperties
    source: "Step"
    key_column_names: Maybe[tuple[str, ...]] = ABSENT
    selected_keys: Maybe[tuple[str, ...]] = ABSENT
    select_expressions: tuple[ExpressionText, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSelect:
    """Compute the value columns; rename the key columns. With `internal_formats`, the result can be stored."""

    TAG: ClassVar[str] = "tableSelectV1"
    properties: StepProperties
    source: "Step"
    key_column_names: Maybe[tuple[str, ...]] = ABSENT
    select_expressions: tuple[ExpressionText, ...]
    internal_formats: Maybe[Formats] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSelectKey:
    """Change the key of a stream (PARTITION BY). Older ksqlDB releases wrote a single expression instead of a list."""

    TAG: ClassVar[str] = "streamSelectKeyV2"
    properties: StepProperties
    source: "Step"
    key_expression: ExpressionText | tuple[ExpressionText, ...]

    @property
    def key_expressions(self) -> tuple[ExpressionText, ...]:
        """The expressions of the new key, in either form."""
        return self.key_expression if isinstance(self.key_expression, tuple) else (self.key_expression,)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSelectKeyV1:
    """Change the key of a stream to one column; drop the old key."""

    TAG: ClassVar[str] = "streamSelectKeyV1"
    properties: StepProperties
    source: "Step"
    key_expression: ExpressionText


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSelectKey:
    """Change the key of a table (PARTITION BY), through an internal topic."""

    TAG: ClassVar[str] = "tableSelectKeyV1"
    properties: StepProperties
    source: "Step"
    internal_formats: Formats
    key_expression: ExpressionText | tuple[ExpressionText, ...]

    @property
    def key_expressions(self) -> tuple[ExpressionText, ...]:
        """The expressions of the new key, in either form."""
        return self.key_expression if isinstance(self.key_expression, tuple) else (self.key_expression,)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFlatMap:
    """Turn each row into the rows that the table functions (`EXPLODE(…)`) return, side by side."""

    TAG: ClassVar[str] = "streamFlatMapV1"
    properties: StepProperties
    source: "Step"
    table_functions: tuple[ExpressionText, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamGroupByKey:
    """Group a stream by its existing key; rows are not repartitioned."""

    TAG: ClassVar[str] = "streamGroupByKeyV1"
    properties: StepProperties
    source: "Step"
    internal_formats: Formats


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamGroupBy:
    """Group a stream by expressions; the key has one column for each."""

    TAG: ClassVar[str] = "streamGroupByV2"
    properties: StepProperties
    source: "Step"
    internal_formats: Formats
    group_by_expressions: tuple[ExpressionText, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamGroupByV1:
    """Group a stream by expressions; the key is one STRING, joined with `|+|` when there are several."""

    TAG: ClassVar[str] = "streamGroupByV1"
    properties: StepProperties
    source: "Step"
    internal_formats: Formats
    group_by_expressions: tuple[ExpressionText, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableGroupBy:
    """Group a table by expressions; the key has one column for each."""

    TAG: ClassVar[str] = "tableGroupByV2"
    properties: StepProperties
    source: "Step"
    internal_formats: Formats
    group_by_expressions: tuple[ExpressionText, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableGroupByV1:
    """Group a table by expressions; the key is one STRING, joined with `|+|` when there are several."""

    TAG: ClassVar[str] = "tableGroupByV1"
    properties: StepProperties
    source: "Step"
    internal_formats: Formats
    group_by_expressions: tuple[ExpressionText, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAggregate:
    """Aggregate a grouped stream into a table; the results are columns `KSQL_AGG_VARIABLE_n`."""

    TAG: ClassVar[str] = "streamAggregateV1"
    properties: StepProperties
    source: "Step"
    internal_formats: Formats
    non_aggregate_columns: tuple[str, ...]
    aggregation_functions: tuple[ExpressionText, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWindowedAggregate:
    """Aggregate a grouped stream into a table of windows. ksqlDB writes the window as an object since 7.3."""

    TAG: ClassVar[str] = "streamWindowedAggregateV1"
    properties: StepProperties
    source: "Step"
    internal_formats: Formats
    non_aggregate_columns: tuple[str, ...]
    aggregation_functions: tuple[ExpressionText, ...]
    window_expression: WindowText | WindowExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAggregate:
    """Aggregate a grouped table into a table, undoing each row's old contribution."""

    TAG: ClassVar[str] = "tableAggregateV1"
    properties: StepProperties
    source: "Step"
    internal_formats: Formats
    non_aggregate_columns: tuple[str, ...]
    aggregation_functions: tuple[ExpressionText, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSuppress:
    """Hold back a windowed table's rows until their window closes."""

    TAG: ClassVar[str] = "tableSuppressV1"
    properties: StepProperties
    source: "Step"
    refinement_info: RefinementInfo
    internal_formats: Formats


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStreamJoin:
    """Join two streams by key within a time span. Without `grace`, late rows follow ksqlDB's older rules."""

    TAG: ClassVar[str] = "streamStreamJoinV1"
    properties: StepProperties
    join_type: JoinType
    left_internal_formats: Formats
    right_internal_formats: Formats
    left_source: "Step"
    right_source: "Step"
    before: Duration
    after: Duration
    grace: Maybe[Duration] = ABSENT
    key_column_name: Maybe[str] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTableJoin:
    """Join each row of a stream with the table's current row of the same key."""

    TAG: ClassVar[str] = "streamTableJoinV1"
    properties: StepProperties
    join_type: JoinType
    internal_formats: Formats
    left_source: "Step"
    right_source: "Step"
    key_column_name: Maybe[str] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTableJoin:
    """Join two tables by their key."""

    TAG: ClassVar[str] = "tableTableJoinV1"
    properties: StepProperties
    join_type: JoinType
    left_source: "Step"
    right_source: "Step"
    key_column_name: Maybe[str] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class FkTableTableJoin:
    """Join two tables by a foreign key: either a column of the left table or an expression over it."""

    TAG: ClassVar[str] = "fkTableTableJoinV1"
    properties: StepProperties
    join_type: JoinType
    left_join_column_name: Maybe[str] = ABSENT
    formats: Formats
    left_source: "Step"
    right_source: "Step"
    left_join_expression: Maybe[ExpressionText] = ABSENT

    def __post_init__(self) -> None:
        if (value_of(self.left_join_column_name) is None) == (value_of(self.left_join_expression) is None):
            raise ValueError("needs exactly one of leftJoinColumnName and leftJoinExpression")
        if self.join_type is JoinType.OUTER:
            raise ValueError("cannot have joinType OUTER")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSink:
    """Write a stream to its topic."""

    TAG: ClassVar[str] = "streamSinkV1"
    properties: StepProperties
    source: "Step"
    formats: Formats
    topic_name: TopicName
    timestamp_column: Maybe[TimestampColumn] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSink:
    """Write a table's changes to its topic."""

    TAG: ClassVar[str] = "tableSinkV1"
    properties: StepProperties
    source: "Step"
    formats: Formats
    topic_name: TopicName
    timestamp_column: Maybe[TimestampColumn] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKeep:
    """Store a table without a topic: nothing is published."""

    TAG: ClassVar[str] = "tableKeepV1"
    properties: StepProperties
    source: "Step"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableIndex:
    """Arrange a table's rows by expressions in a separate collection, without a topic.

    The key is the expressions followed by the table's key; without expressions, the table's key alone.
    """

    TAG: ClassVar[str] = "tableIndexV1"
    properties: StepProperties
    source: "Step"
    index_expressions: tuple[ExpressionText, ...]


JoinStep = StreamStreamJoin | StreamTableJoin | TableTableJoin | FkTableTableJoin
SinkStep = StreamSink | TableSink
StreamStep = (
    StreamSource
    | WindowedStreamSource
    | StreamFilter
    | StreamSelect
    | StreamSelectKey
    | StreamSelectKeyV1
    | StreamFlatMap
    | StreamGroupByKey
    | StreamGroupBy
    | StreamGroupByV1
    | StreamTableJoin
    | StreamStreamJoin
)
"""Steps that produce a stream, grouped or not."""
TableStep = (
    TableSource
    | TableSourceV1
    | WindowedTableSource
    | WindowStoreSource
    | CollectionSource
    | TableFilter
    | TableSelect
    | TableSelectKey
    | TableTableJoin
    | FkTableTableJoin
)
"""Steps that produce a table, also in the middle of a query."""
TableGroupStep = TableGroupBy | TableGroupByV1
AggregateStep = StreamAggregate | StreamWindowedAggregate | TableAggregate
"""Steps that produce a table and have only filters and projections above them."""
LastStep = SinkStep | TableKeep | TableIndex
"""The last step of a query."""
Step = StreamStep | TableStep | TableGroupStep | AggregateStep | TableSuppress | LastStep
"""Every step. The kinds are disjoint: add a new step to one of them, and mypy requires a builder for it."""

STEP_TYPES: Mapping[str, type[Step]] = {step.TAG: step for step in Step.__args__}
"""Every wire tag and its class."""


def sources_of(step: Step) -> tuple[Step, ...]:
    """The inputs of a step, left before right."""
    if isinstance(step, SourceStep):
        return ()
    if isinstance(step, JoinStep):
        return (step.left_source, step.right_source)
    return (step.source,)


def walk(step: Step) -> Iterator[Step]:
    """This step and every step below it, each before its sources, left before right."""
    yield step
    for source in sources_of(step):
        yield from walk(source)
