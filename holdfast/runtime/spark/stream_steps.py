"""Builds the steps that produce a stream: one match arm per step."""

from dataclasses import replace
from typing import assert_never

from holdfast.names import StateId
from holdfast.runtime.expressions.parse import parse_schema
from holdfast.runtime.plan.steps import (
    JoinType,
    Step,
    StreamFilter,
    StreamFlatMap,
    StreamGroupBy,
    StreamGroupByKey,
    StreamGroupByV1,
    StreamSelect,
    StreamSelectKey,
    StreamSelectKeyV1,
    StreamSink,
    StreamSource,
    StreamStep,
    StreamStreamJoin,
    StreamTableJoin,
    WindowedStreamSource,
)
from holdfast.runtime.program import (
    MergeInto,
    ObjectInput,
    Put,
    SavedGroups,
    StateLookup,
    TickPartitions,
    TopicInput,
    stream_schema,
)
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.spark.builders.filter import build_stream_filter
from holdfast.runtime.spark.builders.flat_map import build_stream_flat_map
from holdfast.runtime.spark.builders.group_by import (
    build_stream_group_by,
    build_stream_group_by_key,
    build_stream_group_by_v1,
)
from holdfast.runtime.spark.builders.join import build_stream_table_join
from holdfast.runtime.spark.builders.select import build_stream_select
from holdfast.runtime.spark.builders.select_key import build_stream_select_key, build_stream_select_key_v1
from holdfast.runtime.spark.builders.source import build_derived_stream, build_stream_source
from holdfast.runtime.spark.builders.stream_join import TIMES, TIMES_MERGE, JoinSide, StreamJoin
from holdfast.runtime.spark.builders.stream_matches import StreamMatches
from holdfast.runtime.spark.relation import StreamRelation, saved_stream
from holdfast.runtime.spark.stage_builder import StageBuilder, layout_of, unbuildable, window_of
from holdfast.runtime.spark.table_steps import build_table_step
from holdfast.runtime.spark.views import decoded_view, due_view, groups_view, object_view, state_view
from holdfast.runtime.store.schemas import rows_schema


def build_stream_step(builder: StageBuilder, step: Step) -> StreamRelation:
    """The rows of a step that produces a stream; a step that produces a table is refused."""
    if not isinstance(step, StreamStep):
        raise unbuildable(step)
    match step:
        case StreamSource() | WindowedStreamSource():
            return _source(builder, step)
        case StreamFilter():
            return build_stream_filter(step, build_stream_step(builder, step.source), builder.compiler)
        case StreamSelect():
            return build_stream_select(step, build_stream_step(builder, step.source), builder.compiler)
        case StreamSelectKey():
            return build_stream_select_key(step, build_stream_step(builder, step.source), builder.compiler)
        case StreamSelectKeyV1():
            return build_stream_select_key_v1(step, build_stream_step(builder, step.source), builder.compiler)
        case StreamFlatMap():
            return build_stream_flat_map(step, build_stream_step(builder, step.source), builder.compiler)
        case StreamGroupByKey():
            return build_stream_group_by_key(build_stream_step(builder, step.source))
        case StreamGroupBy():
            return build_stream_group_by(step, build_stream_step(builder, step.source), builder.compiler)
        case StreamGroupByV1():
            return build_stream_group_by_v1(step, build_stream_step(builder, step.source), builder.compiler)
        case StreamTableJoin():
            return _stream_table_join(builder, step)
        case StreamStreamJoin():
            return _stream_stream_join(builder, step)
        case _:
            assert_never(step)


def _source(builder: StageBuilder, step: StreamSource | WindowedStreamSource) -> StreamRelation:
    schema, window = parse_schema(step.source_schema), window_of(step)
    derived = builder.sources.object_of(step.topic_name, builder.plan.sources)
    if derived is not None:
        rows = stream_schema(layout_of(schema.key, schema.value, window))
        return build_derived_stream(schema, builder.read(ObjectInput(derived, object_view(derived), rows)), window)
    decoder = Decoder(schema, step.formats, window=window)
    decoder.check()
    view = builder.read(TopicInput(step.topic_name, decoder, decoded_view(step.topic_name, decoder)))
    return build_stream_source(schema, view, step.timestamp_column, window)


def _stream_table_join(builder: StageBuilder, step: StreamTableJoin) -> StreamRelation:
    """The stream's rows are saved; the next stage looks up their keys in the table."""
    left = build_stream_step(builder, step.left_source)
    saved = builder.save(saved_stream(left))
    right = build_table_step(builder, step.right_source, keys=saved)
    return build_stream_table_join(step, left.over(saved.view), right)


def _stream_stream_join(builder: StageBuilder, step: StreamStreamJoin) -> StreamRelation:
    """The rows of both sides are saved in order; the next stage matches them with each other and with stored rows."""
    left = build_stream_step(builder, step.left_source)
    left_inputs = set(builder.inputs)
    right = build_stream_step(builder, step.right_source)
    # A table does not need headers.
    carry_headers = isinstance(builder.plan.physical_plan, StreamSink) and (left.headers or right.headers)
    join = StreamJoin(step, left, right, same=set(builder.inputs) == left_inputs, carry_headers=carry_headers)
    times = builder.state(step, "Times", TIMES)
    before = builder.read(StateLookup(times, TickPartitions(), state_view(times), rows_schema(TIMES)))
    builder.add_stage(join.times(), MergeInto(times, TIMES_MERGE))
    arrivals = builder.save(join.arrivals(before))
    names = ("Left", "Right")
    states = [builder.state(step, name, join.layout(side)) for name, side in zip(names, join.sides, strict=True)]
    sides = list(zip(join.sides, states, strict=True))
    stored = [
        StateLookup(s, SavedGroups(arrivals.stage, join.reach(side)), groups_view(s), rows_schema(join.layout(side)))
        for side, s in sides
    ]
    matches = StreamMatches(join, arrivals.view, tuple(map(builder.read, stored)), (None, None))
    if join.deferred and step.join_type is not JoinType.INNER:
        # Several branches of the next stage read the pairs, so they are computed once.
        pairs = builder.save(matches.pairs_fragment())
        builder.read(arrivals)
        for source in stored:
            builder.read(source)
        expired = tuple(_expired(builder, join, side, state, times) for side, state in sides)
        matches = replace(matches, expired=expired, pairs=pairs.view)
    for side, state in sides:
        builder.add_stage(matches.puts(side), Put(state, join.expired(side, times)))
    return matches.result()


def _expired(builder: StageBuilder, join: StreamJoin, side: JoinSide, state: StateId, times: StateId) -> str | None:
    """The view of a side's unmatched rows whose window ends in this tick; None if rows of the side do not wait."""
    if not join.waits(side):
        return None
    return builder.read(StateLookup(state, join.closed(side, times), due_view(state), rows_schema(join.layout(side))))
