"""The stages of windowed aggregations.

A time window whose every change shows is a key of the aggregation's state, like any other. Sessions, and windows that
show only when they are final, are elements of a state that leave it when they close.
"""

from collections.abc import Iterable

from holdfast.names import CollectionId, StateId
from holdfast.runtime.functions.bound import not_until_closed
from holdfast.runtime.plan.presence import given
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
from holdfast.runtime.plan.windows import OutputRefinement, SessionWindow, WindowExpression
from holdfast.runtime.program import Groups, Held, MergeInto, MergeWindows, Recall, TopicInput, table_schema
from holdfast.runtime.spark.builder import Builder, unbuildable
from holdfast.runtime.spark.builders.aggregate import build_aggregate, by_order
from holdfast.runtime.spark.builders.element import Elements
from holdfast.runtime.spark.builders.session import Sessions
from holdfast.runtime.spark.builders.window import (
    STREAM_TIME,
    STREAM_TIME_MERGE,
    Timed,
    build_windows,
    expired_after,
    grace_of,
    is_late,
    length_of,
)
from holdfast.runtime.spark.relation import StreamRelation, TableRelation, in_order_of_time
from holdfast.runtime.spark.views import groups_view, held_view, state_view
from holdfast.runtime.store.schemas import rows_schema


def grouped(builder: Builder, step: StreamAggregate | StreamWindowedAggregate) -> StreamRelation:
    """The rows of an aggregation by group, in one order across partitions where that matters."""
    source = builder.stream(step.source)
    if _stays(builder, step.source) or not by_order(step, builder.meaning):
        return source
    return in_order_of_time(source)


def time_windows(builder: Builder, step: StreamWindowedAggregate, collection: CollectionId) -> StreamRelation:
    """A grouped stream by window; beside it, the stream time is kept."""
    window, source = _window_of(step), grouped(builder, step)
    if source.window is not None or isinstance(window, SessionWindow):
        raise unbuildable(step)
    timed = Timed(source)
    _, before = _clock(builder, step, timed, collection)
    return build_windows(window, timed, before)


def closing_windows(
    builder: Builder,
    step: StreamWindowedAggregate,
    collection: CollectionId,
    used: Iterable[str],
    *,
    final: bool,
) -> TableRelation:
    """The aggregation of windows that are kept until they close."""
    source = grouped(builder, step)
    if source.window is not None:
        raise unbuildable(step)
    window, timed = _window_of(step), Timed(source, by_partition=_stays(builder, step.source))
    clock, before = _clock(builder, step, timed, collection)
    state = StateId(f"{builder.plan.query_id}/{step.properties.query_context}")
    if isinstance(window, SessionWindow):
        sessions = Sessions(window, timed)
        elements = Elements(build_aggregate(step, sessions.relation, used, builder.meaning))
        held = builder.hold(sessions.held(before))
        stored = builder.reads(Groups(state, held.stage, groups_view(state), rows_schema(elements.layout)))
        fragment, closed_after = sessions.fragment(elements, held.view, stored), sessions.closed_after
    else:
        rows = build_windows(window, timed, before)
        elements = Elements(build_aggregate(step, rows, used, builder.meaning))
        fragment, closed_after = elements.fragment(), grace_of(window)
    if elements.aggregation.merged_by_spark:
        raise not_until_closed("of a user")
    builder.states.append((state, elements.layout))
    shown = elements.aggregation.layout
    kept = expired_after(window)
    if kept is not None and final:
        # At least as long as a window is: rows that follow each other closely must not pass over one unseen.
        kept = max(kept, closed_after + length_of(window))
    action = MergeWindows(
        state,
        elements.layout,
        shown,
        elements.merge,
        clock,
        closed_after=closed_after,
        forgotten_after=closed_after if kept is None else kept,
        final=final,
        expires=kept is not None,
    )
    number = builder.end_stage(fragment, action)
    left = Held(number, held_view(builder.plan.query_id, number), table_schema(shown))
    return elements.aggregation.relation(builder.reads(left))


def closes(step: StreamWindowedAggregate) -> bool:
    """Whether the windows are kept until they close: sessions, and those that expire."""
    window = _window_of(step)
    return isinstance(window, SessionWindow) or given(window.retention) is not None


def is_final(step: StreamWindowedAggregate) -> bool:
    """Whether a window shows only when it closes."""
    return given(_window_of(step).emit_strategy) is OutputRefinement.FINAL


def _window_of(step: StreamWindowedAggregate) -> WindowExpression:
    window = step.window_expression
    return parse_window(window) if isinstance(window, str) else window


def _clock(
    builder: Builder, step: StreamWindowedAggregate, timed: Timed, collection: CollectionId
) -> tuple[StateId, str]:
    """The state that keeps the stream time, and the view of what it was before the tick."""
    state = StateId(f"{builder.plan.query_id}/{step.properties.query_context}/StreamTime")
    builder.states.append((state, STREAM_TIME))
    before = builder.reads(Recall(state, state_view(state), rows_schema(STREAM_TIME)))
    fragment = timed.fragment(before, is_late(_window_of(step)))
    builder.add_stage(fragment, MergeInto(state, STREAM_TIME_MERGE, None, collection))
    return state, before


def _stays(builder: Builder, grouped: Step) -> bool:
    """Whether all rows of a group are in one partition: those of a topic that keep its key."""
    keeps = StreamSource | StreamFilter | StreamSelect | StreamFlatMap | StreamGroupByKey
    topics = all(isinstance(source, TopicInput) for source in builder.inputs.values())
    return topics and all(isinstance(step, keeps) for step in walk(grouped))
