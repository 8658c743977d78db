"""Builds the stages of one query: one match arm per step.

The builder works from the sources up. A step that needs rows before it can go on ends the stage in hand, and the
relation it gives is over what the stage before has left: held rows, or the delta of a state.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from holdfast.errors import Feature, NotYetSupported, PlanError
from holdfast.names import ObjectName, StateId, TopicName
from holdfast.runtime.expressions.parse import parse_schema
from holdfast.runtime.plan.document import QueryPlan
from holdfast.runtime.plan.presence import given
from holdfast.runtime.plan.steps import (
    CollectionSource,
    FkTableTableJoin,
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
    StreamStreamJoin,
    StreamTableJoin,
    TableFilter,
    TableSelect,
    TableSelectKey,
    TableSource,
    TableSourceV1,
    TableTableJoin,
    TopicSourceStep,
    WindowedStreamSource,
    WindowedTableSource,
)
from holdfast.runtime.plan.windows import WindowInfo, shape
from holdfast.runtime.program import (
    Action,
    Changes,
    Due,
    Groups,
    Held,
    Hold,
    Input,
    Lookup,
    MergeInto,
    ObjectInput,
    Put,
    Recall,
    Remembered,
    Stage,
    TopicInput,
    stream_schema,
    table_schema,
)
from holdfast.runtime.serdes.decoding import Decoder
from holdfast.runtime.spark.builders.filter import build_stream_filter, build_table_filter
from holdfast.runtime.spark.builders.fk_join import FkJoin
from holdfast.runtime.spark.builders.flat_map import build_stream_flat_map
from holdfast.runtime.spark.builders.group_by import (
    build_stream_group_by,
    build_stream_group_by_key,
    build_stream_group_by_v1,
)
from holdfast.runtime.spark.builders.join import (
    build_stream_table_join,
    build_table_table_join,
    completed,
    kept_rows,
    keys_of,
)
from holdfast.runtime.spark.builders.meetings import Meetings
from holdfast.runtime.spark.builders.select import build_stream_select, build_table_select
from holdfast.runtime.spark.builders.select_key import (
    build_stream_select_key,
    build_stream_select_key_v1,
    build_table_select_key,
)
from holdfast.runtime.spark.builders.source import (
    build_derived_stream,
    build_stream_source,
    build_table_source,
)
from holdfast.runtime.spark.builders.stream_join import TIMES, TIMES_MERGE, JoinSide, StreamJoin
from holdfast.runtime.spark.fragment import Fragment
from holdfast.runtime.spark.meaning import Meaning
from holdfast.runtime.spark.record_columns import TableSourceStep
from holdfast.runtime.spark.relation import StreamRelation, TableRelation, held_stream, held_table, physical_key
from holdfast.runtime.spark.views import (
    decoded_view,
    due_view,
    groups_view,
    held_view,
    lookup_view,
    object_view,
    state_view,
)
from holdfast.runtime.store.port import Layout
from holdfast.runtime.store.schemas import rows_schema
from holdfast.types import Column, Schema


class Sources(Protocol):
    """What a source step reads, by the names that its plan gives."""

    def object_of(self, topic: TopicName, names: Sequence[ObjectName]) -> ObjectName | None:
        """The table or derived stream behind a topic; None for a stream that reads the topic itself."""

    def keeps(self, name: ObjectName) -> bool:
        """Whether a query keeps an object of that name."""

    def is_over_topic(self, topic: TopicName, names: Sequence[ObjectName]) -> bool:
        """Whether the table behind a topic is read from it, and no query makes it."""


@dataclass
class Builder:
    """One query on its way. `inputs` are what the stage in hand reads; `keys` is the stage whose keys tables are asked
    for, inside a join."""

    plan: QueryPlan
    sources: Sources
    meaning: Meaning
    stages: list[Stage] = field(default_factory=list)
    states: list[tuple[StateId, Layout]] = field(default_factory=list)
    inputs: dict[str, Input] = field(default_factory=dict)
    keys: Held | None = None
    round: int = 0
    kept: dict[str, "Kept"] = field(default_factory=dict)
    told_again: str | None = None

    # -- stages --------------------------------------------------------------------------------------

    def end_stage(self, fragment: Fragment, action: Action) -> int:
        """End the stage in hand; gives its number."""
        self.add_stage(fragment, action)
        self.inputs = {}
        self.round += 1
        return len(self.stages) - 1

    def add_stage(self, fragment: Fragment, action: Action) -> None:
        """A stage that reads what the stage in hand reads, beside it."""
        self.stages.append(Stage(tuple(self.inputs.values()), fragment, action, self.round))

    def reads(self, source: Input) -> str:
        """Have the stage in hand read something; gives the name of its view."""
        self.inputs[source.view] = source
        return source.view

    def hold(self, fragment: Fragment) -> Held:
        """End the stage in hand by holding its rows, for the next stage to read."""
        held = self.hold_beside(fragment)
        self.inputs = {}
        self.round += 1
        self.reads(held)
        return held

    def hold_beside(self, fragment: Fragment) -> Held:
        """Hold rows of a stage beside the one in hand, for a later one to read."""
        self.add_stage(fragment, Hold())
        number = len(self.stages) - 1
        return Held(number, held_view(self.plan.query_id, number), fragment.good.schema)

    # -- streams -------------------------------------------------------------------------------------

    def stream(self, step: Step) -> StreamRelation:
        match step:
            case StreamSource() | WindowedStreamSource():
                return self._stream_source(step)
            case StreamFilter():
                return build_stream_filter(step, self.stream(step.source), self.meaning)
            case StreamSelect():
                return build_stream_select(step, self.stream(step.source), self.meaning)
            case StreamSelectKey():
                return build_stream_select_key(step, self.stream(step.source), self.meaning)
            case StreamSelectKeyV1():
                return build_stream_select_key_v1(step, self.stream(step.source), self.meaning)
            case StreamFlatMap():
                return build_stream_flat_map(step, self.stream(step.source), self.meaning)
            case StreamGroupByKey():
                return build_stream_group_by_key(self.stream(step.source))
            case StreamGroupBy():
                return build_stream_group_by(step, self.stream(step.source), self.meaning)
            case StreamGroupByV1():
                return build_stream_group_by_v1(step, self.stream(step.source), self.meaning)
            case StreamTableJoin():
                return self._stream_table_join(step)
            case StreamStreamJoin():
                return self._stream_stream_join(step)
            case _:
                raise unbuildable(step)

    def _stream_source(self, step: StreamSource | WindowedStreamSource) -> StreamRelation:
        schema, window = parse_schema(step.source_schema), window_of(step)
        derived = self.sources.object_of(step.topic_name, self.plan.sources)
        if derived is not None:
            rows = stream_schema(layout_of(schema.key, schema.value, window))
            return build_derived_stream(schema, self.reads(ObjectInput(derived, object_view(derived), rows)), window)
        decoder = Decoder(schema, step.formats, window=window)
        decoder.check()
        view = self.reads(TopicInput(step.topic_name, decoder, decoded_view(step.topic_name, decoder)))
        return build_stream_source(schema, view, step.timestamp_column, window)

    def _stream_table_join(self, step: StreamTableJoin) -> StreamRelation:
        """The stream's rows are held; then the table is asked for their keys."""
        left = self.stream(step.left_source)
        held = self.hold(held_stream(left))
        right = self._completed(held, step.right_source)
        return build_stream_table_join(step, left.over(held.view), right)

    def _stream_stream_join(self, step: StreamStreamJoin) -> StreamRelation:
        """The rows of both sides are held in their order; then they meet each other, and what is kept of their keys."""
        left = self.stream(step.left_source)
        of_left = set(self.inputs)
        right = self.stream(step.right_source)
        # What a table is made of needs no headers.
        carry = isinstance(self.plan.physical_plan, StreamSink) and (left.headers or right.headers)
        join = StreamJoin(step, left, right, same=set(self.inputs) == of_left, carry=carry)
        times = self._state(step, "Times", TIMES)
        before = self.reads(Recall(times, state_view(times), rows_schema(TIMES)))
        self.add_stage(join.times(), MergeInto(times, TIMES_MERGE))
        here = self.hold(join.arrivals(before))
        names = ("Left", "Right")
        states = [self._state(step, name, join.layout(side)) for name, side in zip(names, join.sides, strict=True)]
        sides = list(zip(join.sides, states, strict=True))
        groups = [
            Groups(s, here.stage, groups_view(s), rows_schema(join.layout(side)), near=join.reach(side))
            for side, s in sides
        ]
        meetings = Meetings(join, here.view, tuple(map(self.reads, groups)), (None, None))
        if join.deferred and step.join_type is not JoinType.INNER:
            # Asked about in many ways, so it is computed once.
            pairs = self.hold(meetings.meeting())
            self.reads(here)
            for source in groups:
                self.reads(source)
            due = tuple(self._due(join, side, state, times) for side, state in sides)
            meetings = replace(meetings, due=due, pairs=pairs.view)
        for side, state in sides:
            self.add_stage(meetings.puts(side), Put(state, join.expired(side, times)))
        return meetings.result()

    def _due(self, join: StreamJoin, side: JoinSide, state: StateId, times: StateId) -> str | None:
        """What waits on a side and the time passes."""
        if not join.waits(side):
            return None
        return self.reads(Due(state, join.closed(side, times), due_view(state), rows_schema(join.layout(side))))

    def _state(self, step: Step, name: str, layout: Layout) -> StateId:
        """A state of the step."""
        state = StateId(f"{self.plan.query_id}/{step.properties.query_context}/{name}")
        self.states.append((state, layout))
        return state

    # -- tables --------------------------------------------------------------------------------------

    def table(self, step: Step) -> TableRelation:
        match step:
            case TableSource() | TableSourceV1() | WindowedTableSource():
                return self._table_source(step)
            case CollectionSource():
                return self._collection_source(step)
            case TableFilter():
                return build_table_filter(step, self.table(step.source), self.meaning)
            case TableSelect():
                return build_table_select(step, self.table(step.source), self.meaning)
            case TableSelectKey():
                return build_table_select_key(step, self.table(step.source))
            case TableTableJoin():
                return self._table_table_join(step)
            case FkTableTableJoin():
                return self._fk_join(step)
            case _:
                raise unbuildable(step)

    def _table_source(self, step: TableSourceStep) -> TableRelation:
        kept = self.kept.get(step.properties.query_context)
        if kept is not None and self.keys is not None:
            return self._completed_of_kept(kept, self.keys)
        if kept is not None:
            return replace(kept.table, sql=f"SELECT * FROM {self.reads(kept.changes)}")
        name = self.sources.object_of(step.topic_name, self.plan.sources)
        if name is None:
            raise PlanError(f'query {self.plan.query_id} reads topic "{step.topic_name}" as a table that is not there')
        return self._kept(name, parse_schema(step.source_schema), window_of(step))

    def _collection_source(self, step: CollectionSource) -> TableRelation:
        if not self.sources.keeps(step.source_name):
            raise PlanError(f'query {self.plan.query_id} reads "{step.source_name}", which is not there')
        window = given(step.window_info)
        return self._kept(step.source_name, parse_schema(step.source_schema), None if window is None else shape(window))

    def _kept(self, name: ObjectName, schema: Schema, window: WindowInfo | None) -> TableRelation:
        """The rows of an object that a query keeps: its changes, or what it has for the keys that are asked for."""
        layout = layout_of(schema.key, schema.row, window)
        if self.keys is None:
            view = self.reads(ObjectInput(name, object_view(name), table_schema(layout)))
            return build_table_source(schema, view, window)
        stage = self.keys.stage
        found = self.reads(Lookup(name, stage, lookup_view(self.plan.query_id, stage, name), rows_schema(layout)))
        changed = self.reads(Changes(name, object_view(name), table_schema(layout)))
        return completed(schema.key, schema.row, window, keys=self.keys.view, found=found, changed=changed)

    def _table_table_join(self, step: TableTableJoin) -> TableRelation:
        """First the keys that changed on any side; then all sides are asked for them."""
        if self.keys is not None:
            return build_table_table_join(step, self.table(step.left_source), self.table(step.right_source))
        leaves = _leaves(step)
        tables = [self.table(leaf) for leaf in leaves]
        kept = [
            (leaf, self._keep(leaf, table))
            for leaf, table in zip(leaves, tables, strict=True)
            if isinstance(leaf, FkTableTableJoin)
        ]
        held = self.hold(keys_of(tables))
        for leaf, found in kept:
            self.reads(found.changes)
            self.add_stage(kept_rows(found.table, found.changes.view), Put(found.state))
            self.kept[leaf.properties.query_context] = found
        return self._completed(held, step)

    def _keep(self, step: FkTableTableJoin, table: TableRelation) -> "Kept":
        """Have a state keep the rows of a table that is no object, for a join to ask for them."""
        layout = Layout(table.key_types, tuple(c.type for c in table.value))
        return Kept(table, self._state(step, "Rows", layout), self.hold_beside(held_table(table)), rows_schema(layout))

    def _completed_of_kept(self, kept: "Kept", keys: Held) -> TableRelation:
        lookup = Remembered(kept.state, keys.stage, state_view(kept.state), kept.schema)
        found, changed = self.reads(lookup), self.reads(kept.changes)
        table = kept.table
        return completed(table.key, table.value, table.window, keys=keys.view, found=found, changed=changed)

    def _fk_join(self, step: FkTableTableJoin) -> TableRelation:
        """First what changes on both sides; then the left rows that name what changed, and the right rows they name."""
        if self.keys is not None:
            kept = self.kept.get(step.properties.query_context)
            if kept is None:
                raise unbuildable(step)
            return self._completed_of_kept(kept, self.keys)
        join = FkJoin(step, self.table(step.left_source), self.table(step.right_source), self.meaning)
        state = self._state(step, "Named", join.layout)
        changes, right = self.hold_beside(join.changes()), self.hold_beside(join.changed_right())
        asked = self.hold(join.asked())
        self.reads(changes)
        self.add_stage(join.puts(changes.view), Put(state))
        self.reads(right)
        named_by = self.reads(Groups(state, right.stage, groups_view(state), rows_schema(join.layout)))
        named = self._completed(asked, step.right_source)
        self.told_again = join.told_again(changes.view, named)
        return join.result(changes.view, named_by, named)

    def _completed(self, held: Held, step: Step) -> TableRelation:
        self.keys = held
        try:
            return self.table(step)
        finally:
            self.keys = None


@dataclass(frozen=True, slots=True)
class Kept:
    """A table inside a join that is no object: the state that has its rows, and what changes of them in the tick."""

    table: TableRelation
    state: StateId
    changes: Held
    schema: pa.Schema


def _leaves(step: Step) -> list[Step]:
    """The sources of a join of tables."""
    match step:
        case TableTableJoin():
            return [*_leaves(step.left_source), *_leaves(step.right_source)]
        case TableFilter() | TableSelect() | TableSelectKey():
            return _leaves(step.source)
        case _:
            return [step]


def window_of(step: TopicSourceStep) -> WindowInfo | None:
    return shape(step.window_info) if isinstance(step, WindowedStreamSource | WindowedTableSource) else None


def layout_of(key: Sequence[Column], value: Sequence[Column], window: WindowInfo | None = None) -> Layout:
    return Layout(physical_key(key, window), tuple(c.type for c in value))


def unbuildable(step: Step) -> NotYetSupported:
    return NotYetSupported(
        Feature.STEP,
        step.TAG,
        f"this release cannot run step {step.TAG} here",
        detail=f"The step is at {step.properties.query_context}.",
        hint="A release that has the step can run the query.",
    )
