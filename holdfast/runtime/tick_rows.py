"""The rows that a tick has produced so far, and what its stages read from them and from the store."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.names import ObjectName, QueryId, StateId
from holdfast.runtime import physical_columns as col
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.physical_columns import Side
from holdfast.runtime.program import (
    Append,
    Elapsed,
    Input,
    ObjectInput,
    Program,
    RowsInput,
    SavedGroups,
    SavedKeys,
    SavedRows,
    SaveRows,
    StateLookup,
    TableLookup,
    TickPartitions,
    TopicInput,
)
from holdfast.runtime.record_decoder import RecordDecoder
from holdfast.runtime.spark.engine import RECORDS, Round, TopicRange, ViewInput
from holdfast.runtime.spark.views import topic_view
from holdfast.runtime.store.port import Period, TickStage
from holdfast.runtime.tick_inputs import NO_INPUTS, TickInputs


class TickRows:
    """Resolves the inputs of stages.

    `objects` are the rows that queries have emitted in this tick, `saved` the rows that stages have saved for later
    stages of their query, `merged` the states that the tick has merged into.
    """

    def __init__(self, dataflow: Dataflow, inputs: TickInputs, stage: TickStage, decoder: RecordDecoder) -> None:
        self._dataflow, self._inputs, self._stage, self._decoder = dataflow, inputs, stage, decoder
        self.objects: dict[ObjectName, pa.Table] = {}
        self.merged: set[StateId] = set()
        self.saved: dict[tuple[QueryId, int], pa.Table] = {}

    def emit(self, name: ObjectName, rows: pa.Table) -> None:
        """Pass rows of a stream on to its readers, after those that other queries wrote to it in this tick."""
        self.objects[name] = append_rows(self.objects.get(name), rows)

    def is_ready(self, program: Program, index: int) -> bool:
        """Whether a stage has rows to process."""
        return any(self._drives(program, source) for source in program.stages[index].inputs)

    def _drives(self, program: Program, source: Input) -> bool:
        match source:
            case TopicInput(topic=topic):
                return topic in self._inputs_of(program).topics
            case ObjectInput(name=name):
                known = self._object(program, name) is not None or name in self._inputs_of(program).decoded
                return source.drives and known
            case SavedRows(stage=stage):
                return (program.query, stage) in self.saved
            case TableLookup() | StateLookup():
                return False

    def _inputs_of(self, program: Program) -> TickInputs:
        return NO_INPUTS if program.query in self._inputs.live_dependents else self._inputs

    def _object(self, program: Program, name: ObjectName) -> pa.Table | None:
        emitted = self.objects.get(name)
        return self._inputs_of(program).objects.get(name) if emitted is None else emitted

    # -- views ---------------------------------------------------------------------------------------

    def views(self, stages: Sequence[tuple[Program, int]]) -> Round:
        """The views that some stages of one round read."""
        inputs: dict[str, ViewInput] = {}
        derived: dict[str, str] = {}
        uses: dict[str, int] = {}
        for program, index in stages:
            headers = isinstance(program.stages[index].action, Append | SaveRows)
            for source in program.stages[index].inputs:
                match source:
                    case TopicInput():
                        self._add_topic(program, source, inputs, derived, headers=headers)
                        uses[source.view] = uses.get(source.view, 0) + 1
                    case ObjectInput(name=name, drives=True) if self._is_read_from_topic(program, name):
                        read = self._inputs_of(program).decoded[name]
                        self._add_topic(program, read, inputs, derived, headers=headers)
                        derived[source.view] = f"SELECT *, NOT tombstone AS present FROM {read.view} WHERE bad = 0"
                    case TableLookup() | StateLookup() if source.view in inputs:
                        continue  # A lookup returns the same rows for all stages of a round.
                    case _:
                        found = self._rows(program, source)
                        rows = source.schema.empty_table() if found is None else found
                        # A stage that reads only the first columns must not hide the others from other stages.
                        if source.view not in inputs or len(rows.schema) > _width(inputs[source.view]):
                            inputs[source.view] = rows
        if any(isinstance(source, TopicRange) for source in inputs.values()):
            return Round(inputs, derived, frozenset(view for view, n in uses.items() if n > 1))
        return Round(inputs, derived)

    def _is_read_from_topic(self, program: Program, name: ObjectName) -> bool:
        return name not in self.objects and name in self._inputs_of(program).decoded

    def _add_topic(
        self,
        program: Program,
        source: TopicInput,
        inputs: dict[str, ViewInput],
        derived: dict[str, str],
        *,
        headers: bool,
    ) -> None:
        view = topic_view(source.topic)
        records = self._inputs_of(program).topics.get(source.topic, RECORDS.empty_table())
        if isinstance(records, TopicRange):
            known = inputs.get(view)
            wanted = headers or bool(source.decoder.schema.headers)
            records = replace(records, headers=wanted or (isinstance(known, TopicRange) and known.headers))
        inputs[view] = records
        derived[source.view] = self._decoder.sql(source)

    def _rows(self, program: Program, source: RowsInput) -> pa.Table | None:
        match source:
            case ObjectInput(name=name):
                return self._object(program, name)
            case SavedRows(stage=stage):
                return self.saved.get((program.query, stage))
            case TableLookup(name=name, stage=stage):
                return self._look_up_table(name, self.saved.get((program.query, stage)))
            case StateLookup():
                return self._look_up_state(program, source)

    # -- lookups -------------------------------------------------------------------------------------

    def _look_up_table(self, name: ObjectName, keys: pa.Table | None) -> pa.Table | None:
        maintainer = self._dataflow.maintainer(name)
        if keys is None or maintainer is None or maintainer.collection is None or name in self._inputs.absent:
            return None
        return self._stage.lookup(maintainer.collection, keys, self._inputs.lookup_as_of)

    def _look_up_state(self, program: Program, lookup: StateLookup) -> pa.Table | None:
        match lookup.by:
            case SavedKeys(stage=stage):
                keys = self.saved.get((program.query, stage))
                return None if keys is None else self._stage.lookup_state(lookup.state, keys)
            case SavedGroups(stage=stage, near=near):
                groups = self.saved.get((program.query, stage))
                return None if groups is None else self._stage.lookup_groups(lookup.state, groups, _near(groups, near))
            case TickPartitions():
                return self._stage.lookup_state(lookup.state, self._partitions(program))
            case Elapsed() as elapsed:
                spans = self.elapsed(elapsed)
                return None if spans is None else self._stage.lookup_spans(lookup.state, spans)

    def elapsed(self, elapsed: Elapsed, *, all_before: bool = False) -> pa.Table | None:
        """The time spans that the tick passes, by partition; with `all_before`, all time up to their ends."""
        if elapsed.clock not in self.merged:
            return None
        times = self._stage.state_delta(elapsed.clock)
        after, upto = (pc.subtract(times.column(side.column(elapsed.column)), elapsed.less) for side in Side)
        unbounded = pa.nulls(times.num_rows, pa.int64())
        return pa.table(
            {elapsed.partition: times.column(col.key(0)), "after": unbounded if all_before else after, "upto": upto}
        )

    def _partitions(self, program: Program) -> pa.Table:
        """The keys of the partitions that a query reads in this tick, and 0, the key of a clock across partitions."""
        found = {0}
        inputs = self._inputs_of(program)
        for source in program.sources:
            rows: ViewInput | None = None
            if isinstance(source, TopicInput):
                rows = inputs.topics.get(source.topic)
            elif (emitted := self._object(program, source.name)) is not None:
                rows = emitted
            elif source.name in inputs.decoded:
                rows = inputs.topics.get(inputs.decoded[source.name].topic)
            if isinstance(rows, TopicRange):
                found |= {part.partition for part in rows.ranges}
            elif rows is not None:
                found |= set(rows.column(col.PARTITION).unique().to_pylist())
        return pa.table({col.key(0): pa.array(sorted(found), pa.int32())})


def append_rows(first: pa.Table | None, rows: pa.Table) -> pa.Table:
    """Append rows that another query writes to a stream in the same tick, with offsets after those of `first`."""
    if first is None:
        return rows
    shift = pc.max(first.column(col.OFFSET)).as_py() + 1 - pc.min(rows.column(col.OFFSET)).as_py()
    index = rows.schema.get_field_index(col.OFFSET)
    shifted = rows.set_column(index, col.OFFSET, pc.add(rows.column(col.OFFSET), pa.scalar(shift, pa.int64())))
    return pa.concat_tables([first, shifted.select(first.column_names)])


def _width(source: ViewInput) -> int:
    return 0 if isinstance(source, TopicRange) else len(source.schema)


def _near(rows: pa.Table, near: tuple[int, int] | None) -> Period | None:
    """The period from `near[0]` milliseconds before the first of the rows to `near[1]` after the last."""
    if near is None:
        return None
    times = pc.min_max(rows.column(col.ROW_TIME)).as_py()
    return times["min"] - near[0], times["max"] + near[1]
