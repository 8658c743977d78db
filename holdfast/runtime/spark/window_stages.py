"""The stages of windowed aggregations.

A time window whose every change is emitted is a key of the aggregation's state, like any other, until it expires.
Sessions and windows that are emitted only when they close are elements of a state, removed after they close.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.names import CollectionId, StateId
from holdfast.runtime.compiler.calls import not_until_closed
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.steps import (
    Step,
    StreamAggregate,
    StreamFilter,
    StreamFlatMap,
    StreamGroupByKey,
    StreamSelect,
    StreamSource,
    StreamWindowedAggregate,
    walk,
)
from holdfast.runtime.plan.window_text import parse_window
from holdfast.runtime.plan.windows import (
    HoppingWindow,
    OutputRefinement,
    SessionWindow,
    TumblingWindow,
    WindowExpression,
    grace_of,
    length_of,
)
from holdfast.runtime.program import (
    ExpiringWindows,
    MergeInto,
    MergeWindows,
    SavedGroups,
    SavedRows,
    StateLookup,
    TickPartitions,
    TopicInput,
    table_schema,
)
from holdfast.runtime.spark.builders.aggregate import AggregateMerge, build_aggregate, depends_on_order
from holdfast.runtime.spark.builders.session import SessionStage
from holdfast.runtime.spark.builders.window import (
    STREAM_TIME,
    STREAM_TIME_MERGE,
    Timed,
    build_windows,
    expired_after,
    is_late,
)
from holdfast.runtime.spark.builders.window_elements import Elements
from holdfast.runtime.spark.relation import StreamRelation, TableRelation, ordered_by_time
from holdfast.runtime.spark.stage_builder import StageBuilder, unbuildable
from holdfast.runtime.spark.stream_steps import build_stream_step
from holdfast.runtime.spark.views import groups_view, saved_view, state_view
from holdfast.runtime.store.schemas import rows_schema


@dataclass(frozen=True, slots=True)
class WindowedRows:
    """The rows of an aggregation by time window, and the state of their stream time.

    `by_partition` says whether all rows of a group are in one partition.
    """

    window: TumblingWindow | HoppingWindow
    clock: StateId
    rows: StreamRelation
    by_partition: bool

    def aggregation(self, aggregation: AggregateMerge) -> AggregateMerge:
        """The aggregation with what its state needs so that windows expire."""
        expires = value_of(self.window.retention) is not None
        return aggregation.with_partition() if expires and self.by_partition else aggregation

    def expiry(self, aggregation: AggregateMerge) -> ExpiringWindows | None:
        """When the windows of an aggregation are removed; None if they never are."""
        window, retention = self.window, value_of(self.window.retention)
        if retention is None:
            return None
        advance = window.advance_by if isinstance(window, HoppingWindow) else window.size
        partition = None if aggregation.partition is None else aggregation.partition.first
        return ExpiringWindows(
            aggregation.layout, self.clock, retention.millis, window.size.millis, advance.millis, partition
        )


def grouped(builder: StageBuilder, step: StreamAggregate | StreamWindowedAggregate) -> StreamRelation:
    """The rows of an aggregation by group, ordered across partitions if that matters."""
    source = build_stream_step(builder, step.source)
    if _keeps_partition(builder, step.source) or not depends_on_order(step, builder.compiler):
        return source
    return ordered_by_time(source)


def time_windows(builder: StageBuilder, step: StreamWindowedAggregate, collection: CollectionId) -> WindowedRows:
    """A grouped stream by window; a stage beside it stores the stream time."""
    window, source = _window_of(step), grouped(builder, step)
    if source.window is not None or isinstance(window, SessionWindow):
        raise unbuildable(step)
    timed, by_partition = Timed(source), _keeps_partition(builder, step.source)
    clock, before = _clock(builder, step, timed, collection)
    return WindowedRows(window, clock, build_windows(window, timed, before), by_partition)


def closing_windows(
    builder: StageBuilder,
    step: StreamWindowedAggregate,
    collection: CollectionId,
    used: Iterable[str],
    *,
    final: bool,
) -> TableRelation:
    """The aggregation of windows that are stored until they close."""
    source = grouped(builder, step)
    if source.window is not None:
        raise unbuildable(step)
    window, timed = _window_of(step), Timed(source, by_partition=_keeps_partition(builder, step.source))
    clock, before = _clock(builder, step, timed, collection)
    state = StateId(f"{builder.plan.query_id}/{step.properties.query_context}")
    if isinstance(window, SessionWindow):
        sessions = SessionStage(window, timed)
        elements = Elements(build_aggregate(step, sessions.relation, used, builder.compiler))
        saved = builder.save(sessions.saved_rows(before))
        stored = builder.read(
            StateLookup(state, SavedGroups(saved.stage), groups_view(state), rows_schema(elements.layout))
        )
        fragment, closed_after = sessions.fragment(elements, saved.view, stored), sessions.closed_after
    else:
        rows = build_windows(window, timed, before)
        elements = Elements(build_aggregate(step, rows, used, builder.compiler))
        fragment, closed_after = elements.fragment(), grace_of(window)
    if elements.aggregation.merged_by_spark:
        raise not_until_closed("defined by a user")
    builder.states.append((state, elements.layout))
    result_layout = elements.aggregation.layout
    expiry = expired_after(window)
    if expiry is not None and final:
        # Only a step of stream time longer than a window may expire a window before it is emitted.
        expiry = max(expiry, closed_after + length_of(window))
    action = MergeWindows(
        state,
        elements.layout,
        result_layout,
        elements.merge,
        clock,
        closed_after=closed_after,
        removed_after=closed_after if expiry is None else expiry,
        final=final,
        expires=expiry is not None,
    )
    number = builder.end_stage(fragment, action)
    delta = SavedRows(number, saved_view(builder.plan.query_id, number), table_schema(result_layout))
    return elements.aggregation.relation(builder.read(delta))


def stored_until_closed(step: StreamWindowedAggregate) -> bool:
    """Whether windows are stored until they close although each change is emitted: sessions."""
    return isinstance(_window_of(step), SessionWindow)


def is_final(step: StreamWindowedAggregate) -> bool:
    """Whether a window is emitted only when it closes."""
    return value_of(_window_of(step).emit_strategy) is OutputRefinement.FINAL


def _window_of(step: StreamWindowedAggregate) -> WindowExpression:
    window = step.window_expression
    return parse_window(window) if isinstance(window, str) else window


def _clock(
    builder: StageBuilder, step: StreamWindowedAggregate, timed: Timed, collection: CollectionId
) -> tuple[StateId, str]:
    """The state of the stream time, and the view of the stream time before the tick."""
    state = builder.state(step, "StreamTime", STREAM_TIME)
    before = builder.read(StateLookup(state, TickPartitions(), state_view(state), rows_schema(STREAM_TIME)))
    fragment = timed.fragment(before, is_late(_window_of(step)))
    builder.add_stage(fragment, MergeInto(state, STREAM_TIME_MERGE, None, collection))
    return state, before


def _keeps_partition(builder: StageBuilder, grouped: Step) -> bool:
    """Whether all rows of a group are in one partition: they come from topics and keep their key."""
    keyed_steps = StreamSource | StreamFilter | StreamSelect | StreamFlatMap | StreamGroupByKey
    topics = all(isinstance(source, TopicInput) for source in builder.inputs.values())
    return topics and all(isinstance(step, keyed_steps) for step in walk(grouped))
