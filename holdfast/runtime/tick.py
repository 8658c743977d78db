"""One tick: records in, changes staged in the store. Kafka and the clock are outside it.

A tick is a function of its inputs and of the committed store. It runs again from the start, with nothing staged, when
the records of a topic spell a JSON name in a way that the decoder does not know yet.
"""

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import HoldfastError, SparkRestarted
from holdfast.names import ObjectName, QueryId
from holdfast.runtime import physical_columns as col
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.outcome import Late, Outcome, Undecodable
from holdfast.runtime.program import (
    Append,
    Emit,
    MergeInto,
    MergeWindows,
    Program,
    Put,
    SaveRows,
    Stage,
    TopicInput,
    Upsert,
    UpsertWindows,
)
from holdfast.runtime.record_decoder import RecordDecoder
from holdfast.runtime.serdes.decoder import GOOD, UNDECODABLE, UNKNOWN_SPELLING
from holdfast.runtime.spark.engine import RECORDS, Engine, Failure, Round
from holdfast.runtime.spark.views import topic_view
from holdfast.runtime.store.port import SqlReader, StateMerge, StateView, Store, TickStage
from holdfast.runtime.tick_inputs import InsertedRows, TickInputs
from holdfast.runtime.tick_rows import TickRows
from holdfast.runtime.window_merge import WindowMerge
from holdfast.runtime.window_retention import WindowRetention, dropped_sql, misfits_sql

IDLE_STAGES = 3
"""Stages without rows that a job may include per stage with rows, so that a prepared job can be reused."""
LOGGED_PER_TICK = 1_000
"""Undecodable records of one topic and tick that the processing log shows in full; all are counted."""

PlannedStage = tuple[Program, int]


class UnknownSpelling(Exception):
    """A topic has JSON names in new spellings; the tick must run again."""


class TickStore(Store, SqlReader, Protocol):
    """What a tick needs of a store."""


class Ticker:
    """Runs ticks. Between ticks it keeps no state but the spellings that the decoder has learned."""

    def __init__(self, engine: Engine, store: TickStore, decoder: RecordDecoder) -> None:
        self._engine = engine
        self._store = store
        self._decoder = decoder

    def run(
        self,
        dataflow: Dataflow,
        queries: Mapping[QueryId, Program],
        inputs: TickInputs,
        inserted: InsertedRows | None = None,
        *,
        isolate: bool = False,
    ) -> tuple[TickStage, Outcome]:
        """Stage one tick of some queries. The caller adds the new offsets, and commits.

        With `isolate`, each query runs in a job of its own, and one during which Spark's process ends fails.
        """
        while True:
            stage = self._store.stage()
            run = _Run(self._engine, dataflow, queries, inputs, stage, self._store, self._decoder, isolate)
            try:
                if inserted is not None:
                    run.insert(inserted)
                return stage, run.run()
            except UnknownSpelling:
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
        isolate: bool,
    ) -> None:
        self.engine, self.dataflow, self.queries, self.inputs, self.stage = engine, dataflow, queries, inputs, stage
        self.reader, self.decoder, self.isolate = reader, decoder, isolate
        self.rows = TickRows(dataflow, inputs, stage, decoder)
        self.undecodable: dict[str, TopicInput] = {}
        self.outcome = Outcome()

    def insert(self, inserted: InsertedRows) -> None:
        program = inserted.program
        if program.collection is None:
            self._append(program, inserted.rows)
        else:
            self.stage.upsert(program.query, program.collection, inserted.rows)
            self._pass_on(program)

    def run(self) -> Outcome:
        live = self.inputs.live_dependents
        for planned in self.dataflow.rounds(self.queries):
            planned = [(p, i) for p, i in planned if p.query not in self.outcome.failed]
            others, dependents = ([(p, i) for p, i in planned if (p.query in live) is which] for which in (False, True))
            for stages in (others, dependents):
                ready = {(p.query, i) for p, i in stages if self.rows.is_ready(p, i)}
                if ready:
                    self._round(stages, ready)
        self._log_undecodable()
        self.outcome.problems = self.engine.function_problems()
        return self.outcome

    # -- one round -----------------------------------------------------------------------------------

    def _round(self, planned: list[PlannedStage], ready: set[tuple[QueryId, int]]) -> None:
        """Run the stages that have rows as one job. A small job includes idle stages, to reuse a prepared job."""
        chosen = [(p, i) for p, i in planned if (p.query, i) in ready]
        views = self.rows.views(chosen)
        if len(chosen) < len(planned) <= (1 + IDLE_STAGES) * len(chosen) and self.engine.prepares(views):
            chosen, views = planned, self.rows.views(planned)
        run = self.engine.run_isolated if self.isolate else self.engine.run
        results = run([p.stages[i].fragment for p, i in chosen], views)
        merges: list[tuple[Program, int, StateMerge]] = []
        window_merges: list[tuple[Program, int, MergeWindows, pa.Table]] = []
        for (program, index), rows in zip(chosen, results, strict=True):
            if (program.query, index) not in ready or program.query in self.outcome.failed:
                continue
            if isinstance(rows, Failure):
                self._fail(program.query, rows.reason)
                continue
            try:
                good = self._without_late(program, index, self._without_bad(program, index, rows))
            except SparkRestarted as error:  # Its topic's records cannot be decoded.
                if error.beside_read or not self.isolate:
                    raise
                self._fail(program.query, str(error))
                continue
            action = program.stages[index].action
            match action:
                case MergeInto():
                    merges.append((program, index, _state_merge(program, action, good)))
                case MergeWindows():
                    window_merges.append((program, index, action, good))
                case _:
                    try:
                        self._apply(program, index, action, good)
                    except HoldfastError as error:
                        self._fail(program.query, str(error))
        self._merge(merges)
        # After the merges: they move the clocks that close windows.
        for program, index, windows, partials in window_merges:
            self._merge_windows(program, index, windows, partials)

    def _apply(
        self,
        program: Program,
        index: int,
        action: SaveRows | Append | Upsert | UpsertWindows | Put | Emit,
        rows: pa.Table,
    ) -> None:
        self.outcome.touched.add(program.query)
        match action:
            case SaveRows():
                if rows.num_rows:
                    self.rows.saved[program.query, index] = rows
            case Emit():
                if rows.num_rows and program.sink is not None:
                    self.stage.enqueue(program.query, rows)
            case Append():
                self._append(program, rows)
            case Put(state=state, expired=expired):
                spans = None if expired is None else self.rows.elapsed(expired, all_before=True)
                self.stage.put(program.query, state, rows, spans)
            case Upsert(collection=collection, order=order):
                if order:
                    rows = rows.sort_by([(name, "ascending") for name in order])
                self.stage.upsert(program.query, collection, rows)
                self._pass_on(program)
            case UpsertWindows():
                self._upsert_windows(program, index, action, rows)
                self._pass_on(program)

    def _upsert_windows(self, program: Program, index: int, action: UpsertWindows, rows: pa.Table) -> None:
        source = _topic_of(program.stages[index])
        retention = WindowRetention(program.query, action, self.stage, self.reader)
        records = Round({topic_view(source.topic): self.inputs.topics[source.topic]}, {})
        if rows.num_rows:
            observed = retention.run(rows)
            if observed is not None:  # Only a tick that drops records runs a second job, which counts them.
                dropped = self.engine.select(dropped_sql(action, self.decoder.sql(source), observed), records)
                for row in dropped.to_pylist():
                    self.outcome.late[program.object, row["part"]] = Late(row["late"], row["time"])
        elif source.view in self.undecodable:
            (counted,) = self.engine.select(misfits_sql(action, topic_view(source.topic)), records).to_pylist()
            retention.check_layout(source.topic, counted["records"], counted["misfits"])

    def _merge(self, merges: list[tuple[Program, int, StateMerge]]) -> None:
        """Merge all at once: several merges of the same shape cost the store little more than one."""
        merges = [merge for merge in merges if merge[0].query not in self.outcome.failed]
        failures = self.stage.merge([merging for _, _, merging in merges]) if merges else {}
        for program, index, merging in merges:
            if program.query in failures:
                self._fail(program.query, str(failures[program.query]))
                continue
            self.outcome.touched.add(program.query)
            self.rows.merged.add(merging.state)
            if program.reads_saved(index):
                self.rows.saved[program.query, index] = self.stage.state_delta(merging.state)
            if merging.view is not None:
                self._pass_on(program)

    def _merge_windows(self, program: Program, index: int, action: MergeWindows, partials: pa.Table) -> None:
        if program.query in self.outcome.failed or action.clock not in self.rows.merged:
            return
        partials = partials.filter(pc.is_valid(partials.column(action.end)))
        try:
            times = self.stage.state_delta(action.clock)
            delta = WindowMerge(program.query, action, self.stage, self.reader).run(partials, times)
        except HoldfastError as error:
            self._fail(program.query, str(error))
            return
        self.outcome.touched.add(program.query)
        if delta.num_rows:
            self.rows.saved[program.query, index] = delta

    def _fail(self, query: QueryId, reason: str) -> None:
        self.stage.discard(query)
        self.outcome.touched.discard(query)
        self.outcome.failed[query] = reason

    # -- rows that queries emit ----------------------------------------------------------------------

    def _append(self, program: Program, rows: pa.Table) -> None:
        if rows.num_rows == 0:
            return
        if col.PRESENT not in rows.column_names:
            rows = rows.append_column(col.PRESENT, pa.repeat(pa.scalar(True), rows.num_rows))
        rows = rows.sort_by([(col.PARTITION, "ascending"), (col.OFFSET, "ascending")]) if rows.num_rows > 1 else rows
        if col.HEADERS not in rows.column_names:
            rows = rows.append_column(col.HEADERS, pa.nulls(rows.num_rows, RECORDS.field(col.HEADERS).type))
        if program.sink is not None:
            headers = col.key(len(program.layout.key) - 1)
            names = [headers if name == col.HEADERS else name for name in rows.column_names]
            self.stage.enqueue(program.query, rows.rename_columns(names))
        if program.object in self.dataflow.maintained:
            self.rows.emit(program.object, rows)

    def _pass_on(self, program: Program) -> None:
        """Pass the changes of a table on to its sink topic and to the queries that read it."""
        assert program.collection is not None
        if program.sink is not None:
            self.stage.enqueue_changes(program.query, program.collection)
        if any(reader.query in self.queries for reader in self.dataflow.dependents(program.object)):
            self.rows.objects[program.object] = self.stage.delta(program.collection)

    # -- rows that are not processed -----------------------------------------------------------------

    def _without_bad(self, program: Program, index: int, rows: pa.Table) -> pa.Table:
        """The good rows. Unknown spellings end the run; skipped rows are counted, undecodable records logged later."""
        if col.BAD not in rows.column_names:
            return rows
        bad = rows.column(col.BAD)
        if pc.max(bad).as_py():
            self._note_undecodable(program.stages[index], frozenset(bad.unique().to_pylist()))
            self.outcome.count_skipped(program.object, program.stages[index].fragment, rows)
            rows = rows.filter(pc.equal(bad, GOOD))
        return rows.drop_columns([name for name in (col.BAD, col.SKIPPED) if name in rows.column_names])

    def _note_undecodable(self, stage: Stage, found: frozenset[int]) -> None:
        if found.isdisjoint((UNDECODABLE, UNKNOWN_SPELLING)):
            return
        for source in (i for i in stage.inputs if isinstance(i, TopicInput) and i.topic in self.inputs.topics):
            if UNKNOWN_SPELLING in found:
                self.decoder.learn(source, self.inputs.topics[source.topic])
            self.undecodable[source.view] = source
        if UNKNOWN_SPELLING in found:
            raise UnknownSpelling

    def _without_late(self, program: Program, index: int, rows: pa.Table) -> pa.Table:
        """Count the late rows, and drop the column that marks them."""
        if col.LATE not in rows.column_names:
            return rows
        self.outcome.count_late(program.object, program.stages[index].fragment, rows)
        return rows.drop_columns([col.LATE])

    def _log_undecodable(self) -> None:
        for source in self.undecodable.values():
            found = self.decoder.undecodable(source, self.inputs.topics[source.topic], LOGGED_PER_TICK)
            total = found.column("total")[0].as_py() if found.num_rows else 0
            self.outcome.undecodable.append(
                Undecodable(source.topic, self._reader_of(source), found.drop_columns(["total"]), total)
            )

    def _reader_of(self, source: TopicInput) -> ObjectName:
        return next(p.object for p in self.queries.values() if source in p.sources)


def _topic_of(stage: Stage) -> TopicInput:
    """The topic that a table is over: the only input of its stage."""
    (source,) = stage.inputs
    assert isinstance(source, TopicInput)
    return source


def _state_merge(program: Program, action: MergeInto, rows: pa.Table) -> StateMerge:
    collection, projection = action.collection, action.projection
    view = None if projection is None or collection is None else StateView(collection, projection)
    if action.order is not None and rows.num_rows > 1:
        rows = rows.sort_by(action.order)
    return StateMerge(program.query, action.state, rows, action.merge, view)
