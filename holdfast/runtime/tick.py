"""One tick: records in, changes staged in the store. Kafka and the clock are outside it.

A tick is a function of its inputs and of the committed store. It is run again from the start, with nothing staged,
when the records of a topic spell a JSON name in a way that their decoder did not know.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import HoldfastError
from holdfast.names import ObjectName, QueryId, StateId, TopicName
from holdfast.runtime.closing import Closing
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.decode import RecordDecoder
from holdfast.runtime.outcome import Outcome, Undecodable
from holdfast.runtime.program import (
    Append,
    Changes,
    Due,
    Elapsed,
    Groups,
    Held,
    Hold,
    Input,
    Lookup,
    MergeInto,
    MergeWindows,
    ObjectInput,
    Program,
    Put,
    Recall,
    Remembered,
    RowsInput,
    Stage,
    StateInput,
    Tell,
    TopicInput,
    Upsert,
)
from holdfast.runtime.serdes.decoding import GOOD, UNDECODABLE, UNKNOWN_SPELLING
from holdfast.runtime.spark.engine import RECORDS, Engine, Failure, Round, TopicRange, ViewInput
from holdfast.runtime.spark.views import topic_view
from holdfast.runtime.store.port import Merging, Period, Show, SqlReader, Store, TickStage, Time

RESTING = 3
"""Up to so many stages without rows run along for each one with rows, so that the same jobs come again."""
LOGGED_PER_TICK = 1_000
"""Undecodable records of one topic and tick that the processing log shows whole; all are counted."""


@dataclass(frozen=True, slots=True)
class TickInputs:
    """The records of topics; and rows of objects that come from elsewhere than their own query.

    `objects` are rows of streams (`k0.., c0.., ts, part, off`) or deltas of tables. `decoded` says how an object's
    rows are read from its topic instead, while a query catches up on it. `riders` are queries that have had all this:
    they run along for what the others give in the tick. `before` is the time as of which other tables are looked up
    when it is not the last one; those that are `absent` have no rows then.
    """

    topics: Mapping[TopicName, ViewInput]
    objects: Mapping[ObjectName, pa.Table] = field(default_factory=dict)
    decoded: Mapping[ObjectName, TopicInput] = field(default_factory=dict)
    riders: frozenset[QueryId] = frozenset()
    before: Time | None = None
    absent: frozenset[ObjectName] = frozenset()


NO_INPUTS = TickInputs({})


@dataclass(frozen=True, slots=True)
class Given:
    """Rows that a user gives to a derived object, beside what its query makes.

    As of a stream (`k0.., c0.., ts, part, off`), or of a table (`k0.., c0.., ts, present`).
    """

    program: Program
    rows: pa.Table


class Respelled(Exception):
    """A topic has JSON names in new spellings; the tick must run again."""


class TickStore(Store, SqlReader, Protocol):
    """What a tick needs of a store."""


class Ticker:
    """Runs ticks; keeps nothing between them but what the decoder has learnt."""

    def __init__(self, engine: Engine, store: TickStore, decoder: RecordDecoder) -> None:
        self._engine = engine
        self._store = store
        self._decoder = decoder

    def run(
        self,
        dataflow: Dataflow,
        queries: Mapping[QueryId, Program],
        inputs: TickInputs,
        given: "Given | None" = None,
    ) -> tuple[TickStage, Outcome]:
        """Stage one tick of some queries. The caller adds what moved, and commits."""
        while True:
            stage = self._store.stage()
            run = _Run(self._engine, dataflow, queries, inputs, stage, self._store, self._decoder)
            try:
                if given is not None:
                    run.give(given)
                return stage, run.run()
            except Respelled:
                stage.abandon()
            except BaseException:
                stage.abandon()
                raise


class _Run:
    def __init__(
        self,
        engine: Engine,
        dataflow: Dataflow,
        queries: Mapping[QueryId, Program],
        inputs: TickInputs,
        stage: TickStage,
        reader: SqlReader,
        decoder: RecordDecoder,
    ) -> None:
        self.engine, self.dataflow, self.queries, self.inputs, self.stage = engine, dataflow, queries, inputs, stage
        self.reader, self.decoder = reader, decoder
        self.objects: dict[ObjectName, pa.Table] = {}
        self.merged: set[StateId] = set()
        self.held: dict[tuple[QueryId, int], pa.Table] = {}
        self.bad: dict[str, TopicInput] = {}
        self.outcome = Outcome()

    def run(self) -> Outcome:
        for planned in self.dataflow.rounds(self.queries):
            planned = [(p, i) for p, i in planned if p.query not in self.outcome.failed]
            riding = [(p, i) for p, i in planned if p.query in self.inputs.riders]
            for together in ([(p, i) for p, i in planned if p.query not in self.inputs.riders], riding):
                ready = {(p.query, i) for p, i in together if self._has_rows(p, i)}
                if ready:
                    self._round(together, ready)
        self._log_undecodable()
        self.outcome.problems = self.engine.function_problems()
        return self.outcome

    def _inputs(self, program: Program) -> TickInputs:
        return NO_INPUTS if program.query in self.inputs.riders else self.inputs

    def _object(self, program: Program, name: ObjectName) -> pa.Table | None:
        made = self.objects.get(name)
        return self._inputs(program).objects.get(name) if made is None else made

    def give(self, given: Given) -> None:
        if given.program.collection is None:
            self._append(given.program, given.rows)
        else:
            self.stage.upsert(given.program.query, given.program.collection, given.rows)
            self._show(given.program)

    def _has_rows(self, program: Program, index: int) -> bool:
        return any(self._drives(program, source) for source in program.stages[index].inputs)

    def _drives(self, program: Program, source: Input) -> bool:
        match source:
            case TopicInput(topic=topic):
                return topic in self._inputs(program).topics
            case ObjectInput(name=name):
                return self._object(program, name) is not None or name in self._inputs(program).decoded
            case StateInput(state=state):
                return state in self.merged
            case Held(stage=stage):
                return (program.query, stage) in self.held
            case Lookup() | Changes() | Recall() | Remembered() | Groups() | Due():
                return False

    def _round(self, planned: list[tuple[Program, int]], ready: set[tuple[QueryId, int]]) -> None:
        """One job for the stages that have rows; small ones take along those that rest, to be one known job."""
        chosen = [(p, i) for p, i in planned if (p.query, i) in ready]
        views = self._views(chosen)
        if len(chosen) < len(planned) <= (1 + RESTING) * len(chosen) and self.engine.prepares(views):
            chosen, views = planned, self._views(planned)
        results = self.engine.run([p.stages[i].fragment for p, i in chosen], views)
        mergings: list[tuple[Program, Merging]] = []
        windows: list[tuple[Program, int, MergeWindows, pa.Table]] = []
        for (program, index), rows in zip(chosen, results, strict=True):
            if (program.query, index) not in ready or program.query in self.outcome.failed:
                continue
            if isinstance(rows, Failure):
                self._fail(program.query, rows.reason)
                continue
            good = self._on_time(program, index, self._sorted_out(program, index, rows))
            action = program.stages[index].action
            if isinstance(action, MergeInto):
                mergings.append((program, _merging(program, action, good)))
                continue
            if isinstance(action, MergeWindows):
                windows.append((program, index, action, good))
                continue
            try:
                self._apply(program, index, action, good)
            except HoldfastError as error:
                self._fail(program.query, str(error))
        self._merge(mergings)
        for program, index, action, partials in windows:
            self._merge_windows(program, index, action, partials)

    def _merge(self, mergings: list[tuple[Program, Merging]]) -> None:
        """All at once: what merges alike costs the store little more than one does."""
        mergings = [(program, merging) for program, merging in mergings if program.query not in self.outcome.failed]
        failures = self.stage.merge([merging for _, merging in mergings]) if mergings else {}
        for program, merging in mergings:
            if program.query in failures:
                self._fail(program.query, str(failures[program.query]))
                continue
            self.outcome.touched.add(program.query)
            self.merged.add(merging.state)
            if merging.show is not None:
                self._show(program)

    def _merge_windows(self, program: Program, index: int, action: MergeWindows, partials: pa.Table) -> None:
        """After the merges: they move the clocks that close windows."""
        if program.query in self.outcome.failed or action.clock not in self.merged:
            return
        partials = partials.filter(pc.is_valid(partials.column(action.end)))
        try:
            times = self.stage.state_delta(action.clock)
            shown = Closing(program.query, action, self.stage, self.reader).run(partials, times)
        except HoldfastError as error:
            self._fail(program.query, str(error))
            return
        self.outcome.touched.add(program.query)
        if shown.num_rows:
            self.held[program.query, index] = shown

    def _fail(self, query: QueryId, reason: str) -> None:
        self.stage.discard(query)
        self.outcome.touched.discard(query)
        self.outcome.failed[query] = reason

    def _views(self, chosen: list[tuple[Program, int]]) -> Round:
        inputs: dict[str, ViewInput] = {}
        derived: dict[str, str] = {}
        uses: dict[str, int] = {}
        for program, index in chosen:
            passes_on = isinstance(program.stages[index].action, Append | Hold)
            for source in program.stages[index].inputs:
                match source:
                    case TopicInput():
                        self._topic(program, source, inputs, derived, headers=passes_on)
                        uses[source.view] = uses.get(source.view, 0) + 1
                    case ObjectInput(name=name) if name not in self.objects and name in self._inputs(program).decoded:
                        read = self._inputs(program).decoded[name]
                        self._topic(program, read, inputs, derived, headers=passes_on)
                        derived[source.view] = f"SELECT *, NOT tombstone AS present FROM {read.view} WHERE bad = 0"
                    case Groups() | Lookup() | Due() | Recall() | Remembered() if source.view in inputs:
                        continue  # What the store has is the same for all stages of a round.
                    case _:
                        rows = self._rows(program, source)
                        given = source.schema.empty_table() if rows is None else rows
                        # A reader that knows only the first columns of an object must not hide the others.
                        if source.view not in inputs or len(given.schema) > _width(inputs[source.view]):
                            inputs[source.view] = given
        if any(isinstance(source, TopicRange) for source in inputs.values()):
            return Round(inputs, derived, frozenset(view for view, n in uses.items() if n > 1))
        return Round(inputs, derived)

    def _rows(self, program: Program, source: RowsInput) -> pa.Table | None:
        match source:
            case ObjectInput(name=name) | Changes(name=name):
                return self._object(program, name)
            case StateInput(state=state):
                return self.stage.state_delta(state) if state in self.merged else None
            case Recall(state=state):
                return self.stage.lookup_state(state, self._partitions(program))
            case Remembered(state=state, stage=stage):
                groups = self.held.get((program.query, stage))
                return None if groups is None else self.stage.lookup_state(state, groups)
            case Held(stage=stage):
                return self.held.get((program.query, stage))
            case Groups(state=state, stage=stage, near=near):
                groups = self.held.get((program.query, stage))
                return None if groups is None else self.stage.lookup_groups(state, groups, _period(groups, near))
            case Lookup(name=name, stage=stage):
                keys, keeper = self.held.get((program.query, stage)), self.dataflow.keeper(name)
                if keys is None or keeper is None or keeper.collection is None or name in self.inputs.absent:
                    return None
                return self.stage.lookup(keeper.collection, keys, self.inputs.before)
            case Due(state=state, elapsed=elapsed):
                spans = self._spans(elapsed)
                return None if spans is None else self.stage.lookup_spans(state, spans)

    def _spans(self, elapsed: Elapsed, *, all_before: bool = False) -> pa.Table | None:
        """The time that the tick passes, by partition; with all that is before it."""
        if elapsed.state not in self.merged:
            return None
        times = self.stage.state_delta(elapsed.state)
        after, upto = (pc.subtract(times.column(f"{side}{elapsed.column}"), elapsed.less) for side in "ba")
        nothing = pa.nulls(times.num_rows, pa.int64())
        return pa.table({elapsed.part: times.column("k0"), "after": nothing if all_before else after, "upto": upto})

    def _partitions(self, program: Program) -> pa.Table:
        """The partitions that a query reads in this tick, as keys; and 0, the clock of all."""
        found = {0}
        for source in program.sources:
            rows: ViewInput | None = None
            inputs = self._inputs(program)
            if isinstance(source, TopicInput):
                rows = inputs.topics.get(source.topic)
            elif (made := self._object(program, source.name)) is not None:
                rows = made
            elif source.name in inputs.decoded:
                rows = inputs.topics.get(inputs.decoded[source.name].topic)
            if isinstance(rows, TopicRange):
                found |= {part.partition for part in rows.ranges}
            elif rows is not None:
                found |= set(rows.column("part").unique().to_pylist())
        return pa.table({"k0": pa.array(sorted(found), pa.int32())})

    def _topic(
        self,
        program: Program,
        source: TopicInput,
        inputs: dict[str, ViewInput],
        derived: dict[str, str],
        *,
        headers: bool,
    ) -> None:
        view, records = topic_view(source.topic), self._inputs(program).topics.get(source.topic, RECORDS.empty_table())
        if isinstance(records, TopicRange):
            known = inputs.get(view)
            wanted = headers or bool(source.decoder.schema.headers)
            records = replace(records, headers=wanted or (isinstance(known, TopicRange) and known.headers))
        inputs[view] = records
        derived[source.view] = self.decoder.sql(source)

    def _sorted_out(self, program: Program, index: int, rows: pa.Table) -> pa.Table:
        """The good rows. Unknown spellings end the run, what is skipped is remembered for the log."""
        if "bad" not in rows.column_names:
            return rows
        bad = rows.column("bad")
        if pc.max(bad).as_py():
            self._read_wrong(program.stages[index], frozenset(bad.unique().to_pylist()))
            self.outcome.count_skipped(program.object, program.stages[index].fragment, rows)
            rows = rows.filter(pc.equal(bad, GOOD))
        return rows.drop_columns([name for name in ("bad", "skipped") if name in rows.column_names])

    def _read_wrong(self, stage: Stage, found: frozenset[int]) -> None:
        if found.isdisjoint((UNDECODABLE, UNKNOWN_SPELLING)):
            return
        for source in (i for i in stage.inputs if isinstance(i, TopicInput) and i.topic in self.inputs.topics):
            if UNKNOWN_SPELLING in found:
                self.decoder.learn(source, self.inputs.topics[source.topic])
            self.bad[source.view] = source
        if UNKNOWN_SPELLING in found:
            raise Respelled

    def _on_time(self, program: Program, index: int, rows: pa.Table) -> pa.Table:
        """The rows without the count of those that came late."""
        if "late" not in rows.column_names:
            return rows
        self.outcome.count_late(program.object, program.stages[index].fragment, rows)
        return rows.drop_columns(["late"])

    def _apply(self, program: Program, index: int, action: Hold | Append | Upsert | Put | Tell, rows: pa.Table) -> None:
        self.outcome.touched.add(program.query)
        match action:
            case Hold():
                if rows.num_rows:
                    self.held[program.query, index] = rows
            case Tell():
                if rows.num_rows and program.sink is not None:
                    self.stage.append(program.query, rows)
            case Append():
                self._append(program, rows)
            case Put(state=state, expired=expired):
                gone = None if expired is None else self._spans(expired, all_before=True)
                self.stage.put(program.query, state, rows, gone)
                self.merged.add(state)
            case Upsert(collection=collection, order=order):
                if order:
                    rows = rows.sort_by([(name, "ascending") for name in order])
                self.stage.upsert(program.query, collection, rows)
                self._show(program)

    def _append(self, program: Program, rows: pa.Table) -> None:
        if rows.num_rows == 0:
            return
        if "present" not in rows.column_names:
            rows = rows.append_column("present", pa.repeat(pa.scalar(True), rows.num_rows))
        rows = rows.sort_by([("part", "ascending"), ("off", "ascending")]) if rows.num_rows > 1 else rows
        if "hdr" not in rows.column_names:
            rows = rows.append_column("hdr", pa.nulls(rows.num_rows, RECORDS.field("hdr").type))
        if program.sink is not None:
            headers = f"k{len(program.layout.key) - 1}"
            names = [headers if name == "hdr" else name for name in rows.column_names]
            self.stage.append(program.query, rows.rename_columns(names))
        if program.object in self.dataflow.kept:
            self.objects[program.object] = behind(self.objects.get(program.object), rows)

    def _show(self, program: Program) -> None:
        assert program.collection is not None
        if program.sink is not None:
            self.stage.owe(program.query, program.collection)
        if any(reader.query in self.queries for reader in self.dataflow.askers(program.object)):
            self.objects[program.object] = self.stage.delta(program.collection)

    def _log_undecodable(self) -> None:
        for source in self.bad.values():
            found = self.decoder.undecodable(source, self.inputs.topics[source.topic], LOGGED_PER_TICK)
            total = found.column("total")[0].as_py() if found.num_rows else 0
            self.outcome.undecodable.append(
                Undecodable(source.topic, self._reader_of(source), found.drop_columns(["total"]), total)
            )

    def _reader_of(self, source: TopicInput) -> ObjectName:
        return next(p.object for p in self.queries.values() if source in p.sources)


def _width(source: ViewInput) -> int:
    return 0 if isinstance(source, TopicRange) else len(source.schema)


def behind(first: pa.Table | None, rows: pa.Table) -> pa.Table:
    """What one more query writes to a stream, behind what others have written in the same tick."""
    if first is None:
        return rows
    step = pc.max(first.column("off")).as_py() + 1 - pc.min(rows.column("off")).as_py()
    at = rows.schema.get_field_index("off")
    moved = rows.set_column(at, "off", pc.add(rows.column("off"), pa.scalar(step, pa.int64())))
    return pa.concat_tables([first, moved.select(first.column_names)])


def _period(rows: pa.Table, near: tuple[int, int] | None) -> Period | None:
    """From so many milliseconds before the first of the rows to so many behind the last."""
    if near is None:
        return None
    times = pc.min_max(rows.column("ts")).as_py()
    return times["min"] - near[0], times["max"] + near[1]


def _merging(program: Program, action: MergeInto, rows: pa.Table) -> Merging:
    shown, along = action.collection, action.along
    show = None if along is None or shown is None else Show(shown, along)
    if action.order is not None and rows.num_rows > 1:
        rows = rows.sort_by(action.order)
    return Merging(program.query, action.state, rows, action.merge, show)
