"""One tick: records in, changes staged in the store. Kafka and the clock are outside it.

A tick is a function of its inputs and of the committed store.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import HoldfastError, JobTimeout, SparkRestarted
from holdfast.names import ObjectName, QueryId
from holdfast.runtime import physical_columns as col
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.expiring_windows import ExpiringMerge
from holdfast.runtime.outcome import Late, Outcome, Undecodable
from holdfast.runtime.passed_windows import PassedWindows
from holdfast.runtime.program import (
    Append,
    Emit,
    ExpiringWindows,
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
from holdfast.runtime.serdes.decoder import GOOD, UNDECODABLE
from holdfast.runtime.spark.engine import ENDS_SPARK, RECORDS, Engine, Failure, Round, took_too_long
from holdfast.runtime.spark.views import topic_view
from holdfast.runtime.store.port import SqlReader, StateMerge, StateView, Store, TickStage
from holdfast.runtime.tick_inputs import InsertedRows, TickInputs
from holdfast.runtime.tick_rows import TickRows
from holdfast.runtime.window_expiry import OBSERVED, WindowExpiry, dropped_sql, misfits_sql
from holdfast.runtime.window_merge import WindowMerge

IDLE_STAGES = 3
"""Stages without rows that a job may include per stage with rows, so that a prepared job can be reused."""
LOGGED_PER_TICK = 1_000
"""Undecodable records of one topic and tick that the processing log shows in full; all are counted."""

PlannedStage = tuple[Program, int]
PlannedMerge = tuple[Program, int, StateMerge]


class TickStore(Store, SqlReader, Protocol):
    """What a tick needs of a store."""


class Ticker:
    """Runs ticks. It has no state between them."""

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
        stage = self._store.stage()
        run = _Run(self._engine, dataflow, queries, inputs, stage, self._store, self._decoder, isolate)
        try:
            if inserted is not None:
                run.insert(inserted)
            return stage, run.run()
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
        self.passed = PassedWindows(stage, reader)
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
        merges: list[PlannedMerge] = []
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
                    self._try_apply(program, index, action, good)
        self._merge(merges)
        # After the merges: they move the clocks that close windows.
        for program, index, windows, partials in window_merges:
            self._merge_windows(program, index, windows, partials)

    def _try_apply(
        self,
        program: Program,
        index: int,
        action: SaveRows | Append | Upsert | UpsertWindows | Put | Emit,
        rows: pa.Table,
    ) -> None:
        """Apply an action, or fail its query. `SparkRestarted` if Spark's process ends in a job of the action."""
        try:
            self._apply(program, index, action, rows)
        except SparkRestarted:
            if not self.isolate:
                raise
            self._fail(program.query, ENDS_SPARK.reason)
        except JobTimeout as error:
            self._fail(program.query, took_too_long(error).reason)
        except HoldfastError as error:
            self._fail(program.query, str(error))

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
                self.stage.upsert(program.query, collection, self.passed.taken_out(program, rows))
                self._pass_on(program)
            case UpsertWindows():
                self._upsert_windows(program, index, action, rows)
                self._pass_on(program)

    def _upsert_windows(self, program: Program, index: int, action: UpsertWindows, rows: pa.Table) -> None:
        source = _topic_of(program.stages[index])
        windows = WindowExpiry(program.query, action, self.stage, self.reader)
        records = Round({topic_view(source.topic): self.inputs.topics[source.topic]}, {})
        if rows.num_rows:
            dropped = windows.run(rows, lambda observed: self._dropped(action, source, observed))
            if dropped is not None:
                self._count_dropped(program, dropped)
        elif source.view in self.undecodable:
            (counted,) = self.engine.select(misfits_sql(action, topic_view(source.topic)), records).to_pylist()
            windows.check_layout(source.topic, counted["records"], counted["misfits"])

    def _dropped(self, action: UpsertWindows, source: TopicInput, observed: pa.Table) -> pa.Table:
        inputs = {topic_view(source.topic): self.inputs.topics[source.topic], OBSERVED: observed}
        return self.engine.select(
            dropped_sql(action, source.view), Round(inputs, {source.view: self.decoder.sql(source)})
        )

    def _count_dropped(self, program: Program, dropped: pa.Table) -> None:
        totals = dropped.group_by(col.PARTITION).aggregate([(col.LATE, "sum"), ("time", "max")])
        for row in totals.to_pylist():
            self.outcome.late[program.object, row[col.PARTITION]] = Late(row[f"{col.LATE}_sum"], row["time_max"])

    def _merge(self, merges: list[PlannedMerge]) -> None:
        """Merge all at once: several merges of the same shape cost the store little more than one."""
        expiring = [merge for merge in merges if _expiry(merge) is not None]
        self._merge_all([merge for merge in merges if _expiry(merge) is None])
        # After the others: they move the clocks by which windows expire.
        self._merge_all([merge for each in expiring if (merge := self._expire(*each)) is not None])

    def _merge_all(self, merges: list[PlannedMerge]) -> None:
        merges = [merge for merge in merges if merge[0].query not in self.outcome.failed]
        failures = self.stage.merge([merging for _, _, merging in merges]) if merges else {}
        for program, index, merging in merges:
            if program.query in failures:
                self._fail(program.query, str(failures[program.query]))
                continue
            self.outcome.touched.add(program.query)
            self.rows.merged.add(merging.state)
            if program.reads_saved(index):
                self.rows.saved[program.query, index] = self.passed.in_delta(
                    program.query, self.stage.state_delta(merging.state)
                )
            if merging.view is not None:
                self._pass_on(program)

    def _expire(self, program: Program, index: int, merging: StateMerge) -> PlannedMerge | None:
        """The merge without the windows that the tick passes; the sink topic gets their last results."""
        action = program.stages[index].action
        assert isinstance(action, MergeInto)
        assert action.expiry is not None
        if program.query in self.outcome.failed or action.expiry.clock not in self.rows.merged:
            return None
        windows = ExpiringMerge(action, action.expiry, self.stage, self.reader)
        try:
            expired = windows.run(merging.partials)
            if expired.passed.num_rows and program.sink is not None:
                if action.projection is None:
                    self.passed.add(program.query, expired.passed)
                else:
                    self.stage.enqueue(program.query, windows.shown(expired.passed, action.projection))
        except HoldfastError as error:
            self._fail(program.query, str(error))
            return None
        return program, index, replace(merging, partials=expired.partials, expired=expired.keys)

    def _merge_windows(self, program: Program, index: int, action: MergeWindows, partials: pa.Table) -> None:
        if program.query in self.outcome.failed or action.clock not in self.rows.merged:
            return
        partials = partials.filter(pc.is_valid(partials.column(action.end)))
        try:
            times = self.stage.state_delta(action.clock)
            delta, passed = WindowMerge(program.query, action, self.stage, self.reader).run(partials, times)
        except HoldfastError as error:
            self._fail(program.query, str(error))
            return
        self.outcome.touched.add(program.query)
        self.passed.add(program.query, passed)
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
        """The good rows. Skipped rows are counted, undecodable records logged later."""
        if col.BAD not in rows.column_names:
            return rows
        bad = rows.column(col.BAD)
        if pc.max(bad).as_py():
            self._note_undecodable(program.stages[index], frozenset(bad.unique().to_pylist()))
            self.outcome.count_skipped(program.object, program.stages[index].fragment, rows)
            rows = rows.filter(pc.equal(bad, GOOD))
        return rows.drop_columns([name for name in (col.BAD, col.SKIPPED) if name in rows.column_names])

    def _note_undecodable(self, stage: Stage, found: frozenset[int]) -> None:
        if UNDECODABLE in found:
            sources = (i for i in stage.inputs if isinstance(i, TopicInput) and i.topic in self.inputs.topics)
            self.undecodable.update((source.view, source) for source in sources)

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


def _expiry(merge: PlannedMerge) -> ExpiringWindows | None:
    program, index, _ = merge
    action = program.stages[index].action
    return action.expiry if isinstance(action, MergeInto) else None


def _state_merge(program: Program, action: MergeInto, rows: pa.Table) -> StateMerge:
    collection, projection = action.collection, action.projection
    view = None if projection is None or collection is None else StateView(collection, projection)
    if action.order is not None and rows.num_rows > 1:
        rows = rows.sort_by(action.order)
    return StateMerge(program.query, action.state, rows, action.merge, view)
