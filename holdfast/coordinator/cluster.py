"""The queries of a cluster and their ticks. Everything here runs on the coordinator's thread."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial

import pyarrow as pa

from holdfast import metrics
from holdfast.catalog.objects import QueryEntry, QueryState, Stream, Table
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.catalog.system import QUERY as SYSTEM_QUERY
from holdfast.catalog.system import SYSTEM_TABLES
from holdfast.config import Settings
from holdfast.coordinator import processing_log
from holdfast.coordinator.backfill import Backfill, Piece
from holdfast.coordinator.clock import Clock
from holdfast.coordinator.followed_topics import FollowedTopics
from holdfast.coordinator.intake import Intake, as_ends, as_moved, length
from holdfast.coordinator.kept_sinks import decode_sink, encode_sink
from holdfast.coordinator.publishing import OutboxStore, Publishing
from holdfast.coordinator.slices import Partition
from holdfast.crash import crash_point
from holdfast.errors import HoldfastError, KafkaError, ReadError, TopicChanged
from holdfast.kafka.admin import Admin, Topic
from holdfast.names import CollectionId, ObjectName, QueryId, TopicName
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.functions.registry import CURRENT, Release
from holdfast.runtime.outcome import Outcome
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.program import Program, Sink
from holdfast.runtime.progress import Place, Progress, Status, place_of, replayed_upto
from holdfast.runtime.spark.build import build_query, build_table
from holdfast.runtime.spark.engine import ViewInput
from holdfast.runtime.store.port import Moved, TickStage, Time
from holdfast.runtime.tick import Given, Ticker, TickInputs

log = logging.getLogger(__name__)

WINDOW_MS = 1_000
"""How far the least readable time trails the present."""
CHECK_SECONDS = 2.0
"""How often topics are looked at for new partitions, and for having been made anew."""
REPLAY_SECONDS = 0.5
"""For so long the past is replayed before a tick comes: it has to go faster than the present."""

OWN_QUERIES = {processing_log.QUERY, SYSTEM_QUERY}
"""They are in no catalog."""

Listener = Callable[[Time, Outcome], None]


class Cluster:
    """Keeps every object of the catalog current, tick by tick."""

    def __init__(
        self,
        settings: Settings,
        store: OutboxStore,
        ticker: Ticker,
        clock: Clock,
        admin: Admin,
        intake: Intake,
        backfill: Backfill,
    ) -> None:
        self._settings, self._store, self._ticker, self._clock = settings, store, ticker, clock
        self._admin, self._intake, self._backfill = admin, intake, backfill
        self._catalog = EMPTY
        self._checked_at = 0.0
        self.topics = FollowedTopics(store)
        self._installed_at = 0.0
        self._made_of: dict[QueryId, object] = {}
        self.dataflow = Dataflow()
        self.progress: dict[QueryId, Progress] = {}
        self.listeners: list[Listener] = []
        self.publishing: Publishing | None = None
        store.create_outbox(processing_log.QUERY, processing_log.LAYOUT)

    # -- objects -------------------------------------------------------------------------------------

    def install(self, catalog: Catalog) -> None:
        """Run what the catalog has and no longer run what it has not."""
        self._catalog = catalog
        self._remove(catalog)
        with suppress(KafkaError):  # It is told by what follows the topics.
            self._find_topics(catalog)
        for found in catalog.objects.values():
            self.dataflow.declare(found.name, found.topic, kept=found.kept)
            keeper = QueryId(f"TABLE_{found.name}")
            made_of = (found.schema, found.topic, found.formats, found.timestamp)
            if not isinstance(found, Table) or found.derived or found.topic is None:
                continue
            if self._made_of.get(keeper) != made_of:
                self._start_anew(keeper, partial(_table_program, found), made_of, topics={found.topic})
        self._follow_topics(catalog)
        for entry in catalog.queries.values():
            topics = self._topics_of(entry)
            if entry.state is QueryState.INCOMPATIBLE:
                self._leave_behind(entry.id, topics)
            elif self._resumes(entry) or self._is_new(entry):
                build = partial(self._query_program, entry)
                self._start_anew(entry.id, build, entry.plan, topics=topics, latest=_latest(entry))
        self._retain(catalog)
        self._forget_topics(catalog)
        self._installed_at = time.monotonic()

    def _forget_topics(self, catalog: Catalog) -> None:
        """Know nothing more of topics that are in no object, or lost and read by no query: they may be new again."""
        read = {topic for program in self.dataflow.programs.values() for topic in program.topics}
        self.topics.forget_all_but(
            {topic for topic in catalog.topics if topic in read or topic not in self.topics.lost}
        )

    def _is_new(self, entry: QueryEntry) -> bool:
        """Whether a query does not run yet, or with another plan: then it goes on from where it is with the new one."""
        return entry.id not in self.progress or self._made_of.get(entry.id) != entry.plan

    def _resumes(self, entry: QueryEntry) -> bool:
        known = self.progress.get(entry.id)
        return known is not None and known.status is Status.PAUSED and entry.state is QueryState.RUNNING

    def _start_anew(
        self,
        query: QueryId,
        build: Callable[[], Program],
        made_of: object,
        *,
        topics: Set[TopicName] | None,
        latest: bool = False,
    ) -> None:
        """Start what is made of something, in place of what runs. Nothing is published while its columns change."""
        with self.publishing.paused() if query in self.progress and self.publishing else nullcontext():
            self._start(query, build, topics=topics, latest=latest)
        self._made_of[query] = made_of

    def _retain(self, catalog: Catalog) -> None:
        """Keep the history of each table and index for as long as its statement says."""
        there = self._store.collections()
        for table in catalog.holdable:
            if CollectionId(table.name) in there:
                window_ms = WINDOW_MS if table.retain_ms is None else table.retain_ms
                self._store.set_window(CollectionId(table.name), window_ms)

    def pause(self) -> None:
        """Stop what the catalog has paused, where it is now. Between ticks, and not before rows can be published."""
        for entry in self._catalog.queries.values():
            if entry.state is not QueryState.PAUSED or entry.id not in self.dataflow.programs:
                continue
            status = self.progress[entry.id].status
            if status is Status.RUNNING:
                stage = self._store.stage()
                stage.move(entry.id, self._left_at(self.dataflow.programs[entry.id]))
                self._commit(stage, Outcome())
            self.progress[entry.id] = Progress(Status.PAUSED)

    def _left_at(self, program: Program) -> list[Moved]:
        """Where a running query is before the next commit, so that it can go on from there.

        Of streams that others make, behind what they have published. Between two times a table's changes are not kept:
        a query over tables is built anew.
        """
        keepers = [self.dataflow.keeper(name) for name in program.objects]
        if any(keeper is None or keeper.sink is None or keeper.collection is not None for keeper in keepers):
            return [Place.LOST.mark()]
        own = [*self._ends_of(program), Place.OWN.mark()]
        if not keepers:
            return own
        assert self.publishing is not None
        with self.publishing.flushed():
            published = self._store.published_at(self._store.last_time())
        topics = {self.dataflow.topics[name] for name in program.objects}
        return [*(moved for moved in published if moved.topic in topics), *own]

    def sinks(self) -> dict[QueryId, Sink]:
        """Where the rows of each query go, also of those that cannot run: they may still be owed some."""
        programs = dict(self.dataflow.programs)
        found = {q: p.sink for q, p in programs.items() if p.sink is not None}
        for query in self._catalog.queries.keys() - programs.keys():
            if (kept := self._store.get(_sink_of(query))) is not None:
                found[query] = decode_sink(kept)
        return {**found, processing_log.QUERY: processing_log.sink(self._settings)}

    def commit_rows(self, query: QueryId, rows: Mapping[CollectionId, pa.Table]) -> None:
        """Write rows of collections that no query of a user keeps, as a tick of their own."""
        stage = self._store.stage()
        for collection, changed in rows.items():
            stage.upsert(query, collection, changed)
        at = self._clock.begin_commit()
        try:
            stage.commit(at)
            self._store.set_upper(self._collections(self._running().values()), Time(at + 1))
        finally:
            self._clock.end_commit()
        for listener in list(self.listeners):
            listener(at, Outcome())

    def status(self, query: QueryId) -> Progress | None:
        """How a query fares; the system tables are always kept."""
        return Progress(Status.RUNNING) if query == SYSTEM_QUERY else self.progress.get(query)

    def _start(
        self, query: QueryId, build: Callable[[], Program], *, topics: Set[TopicName] | None, latest: bool = False
    ) -> None:
        try:
            program = build()
        except HoldfastError as error:
            self._leave_behind(query, topics)
            self.progress[query] = Progress(Status.INCOMPATIBLE, reason=str(error))
            log.error("query %s cannot run: %s", query, error)
            return
        if program.sink is not None:
            self._store.create_outbox(query, program.layout)
        if place_of(self._store.positions(query)) is Place.LOST:
            self._reset(program)
        self._create(program)
        self.dataflow.add(program)
        self.progress[query] = Progress(Status.BUILDING)
        positions = self._store.positions(query)
        lost = next((self.topics.lost[topic] for topic in sorted(program.topics) if topic in self.topics.lost), None)
        if lost is not None:
            self._leave_behind(query, None if program.objects else program.topics)
            self._fail(query, lost)
            return
        if latest and not positions and not self._reads_table(program):
            stage = self._store.stage()
            ends = [moved for moved in self._ends_of(program) if moved.topic not in program.table_topics]
            # A table is its rows, whenever they came: what is read as one is read from its start.
            stage.move(query, [*ends, Place.OWN.mark() if program.table_topics else Place.RIDING.mark()])
            self._commit(stage, Outcome())
            positions = self._store.positions(query)
        if place_of(positions) is Place.RIDING:
            self.progress[query] = Progress(Status.RUNNING)
            self._show([program])

    def _create(self, program: Program) -> None:
        """Make what keeps a query's result and its states, if they are not there."""
        if program.collection is not None:
            self._store.create_collection(program.collection, program.layout, window_ms=WINDOW_MS)
            start = self._backfill.starts(program.object)
            if start is not None and not self._store.changed_at(program.collection):
                self._store.advance_since(program.collection, start)
        for state, layout in program.states:
            self._store.create_state(state, layout)
        if program.sink is not None:
            self._store.put(_sink_of(program.query), encode_sink(program.sink))

    def _leave_behind(self, query: QueryId, topics: Set[TopicName] | None) -> None:
        """Have a query that cannot run keep where it is: the others go on, and it must not seem to ride with them.

        Rows of other queries are not kept for it: a query over those (`topics` is None) is built anew when it can be.
        """
        if place_of(self._store.positions(query)) is Place.RIDING:
            ends = [moved for moved in self._store.remap_ends() if moved.topic in (topics or ())]
            stage = self._store.stage()
            stage.move(query, [Place.LOST.mark()] if topics is None else [*ends, Place.OWN.mark()])
            self._commit(stage, Outcome())

    def _topics_of(self, entry: QueryEntry) -> Set[TopicName] | None:
        """The topics that a query reads, None when it also reads something else."""
        sources = [self._catalog.find(name) for name in entry.sources]
        topics = {found.topic for found in sources if isinstance(found, Stream) and not found.derived}
        return topics if sources and len(topics) == len(sources) else None

    def _reset(self, program: Program) -> None:
        """Forget what a query has computed, for it to begin again; first have those that read it do so too.

        A table's sink topic is told that its rows are gone: not all of them may come again.
        """
        stage = self._store.stage()
        for reader in self._catalog.readers(program.object):
            stage.move(reader.id, [Place.LOST.mark()])
        if program.collection is not None and program.sink is not None:
            for gone in self._tombstones(program.collection):
                stage.append(program.query, gone)
        self._commit(stage, Outcome())
        if program.collection is not None:
            self._store.drop_collection(program.collection)
        for state, _ in program.states:
            self._store.drop_state(state)
        self._store.forget_query(program.query)

    def _tombstones(self, collection: CollectionId) -> Iterator[pa.Table]:
        """The rows that a table has had last, as rows that are gone."""
        upper = self._store.frontier(collection).upper if collection in self._store.collections() else Time(0)
        for page in self._store.snapshot(collection, Time(upper - 1)) if upper else ():
            yield page.append_column("present", pa.repeat(pa.scalar(False), page.num_rows))

    def _reads_table(self, program: Program) -> bool:
        """A table is its rows, whenever they came: a query over one always begins with them."""
        keepers = [self.dataflow.keeper(name) for name in program.objects]
        return any(keeper is not None and keeper.collection is not None for keeper in keepers)

    def _query_program(self, entry: QueryEntry) -> Program:
        plan = decode(entry.plan).query
        assert plan is not None
        return build_query(plan, self.dataflow, _release(entry.release), entry.properties)

    def _remove(self, catalog: Catalog) -> None:
        wanted = set(catalog.queries) | {QueryId(f"TABLE_{t.name}") for t in catalog.tables if not t.derived}
        gone = [query for query in self.progress if query not in wanted]
        for query in gone:
            self.progress.pop(query)
            self._made_of.pop(query, None)
            program = self.dataflow.remove(query)
            if self.publishing is not None:
                self.publishing.drop(query)
            self._store.drop_outbox(query)
            self._store.forget_query(query)
            for state, _ in program.states if program else ():
                self._store.drop_state(state)
            if program is not None and program.collection is not None and program.object not in catalog.objects:
                self._store.drop_collection(program.collection)
        for name in [name for name in self.dataflow.topics if name not in catalog.objects]:
            self.dataflow.forget(name)
            self._store.drop_collection(CollectionId(name))

    def drop_strays(self) -> None:
        """Drop what a crash left of objects that are gone. Once, after the first `install`."""
        kept = {p.collection for p in self.dataflow.programs.values()} | {
            CollectionId(n)
            for n in (*self._catalog.objects, *self._catalog.indexes, *(s.full_name for s in SYSTEM_TABLES))
        }
        for collection in set(self._store.collections()) - kept:
            self._store.drop_collection(collection)
        for query in self._store.queries() - self.progress.keys() - self._catalog.queries.keys() - OWN_QUERIES:
            self._store.drop_outbox(query)
            self._store.forget_query(query)
        states = {state for p in self.dataflow.programs.values() for state, _ in p.states}
        stopped = [q for q, p in self.progress.items() if p.status in (Status.ERROR, Status.INCOMPATIBLE)]
        stopped += [q for q, entry in self._catalog.queries.items() if entry.state is QueryState.INCOMPATIBLE]
        for state in set(self._store.states()) - states:
            if not state.startswith(tuple(stopped)):
                self._store.drop_state(state)

    # -- topics --------------------------------------------------------------------------------------

    def _follow_topics(self, catalog: Catalog) -> None:
        """Read every topic that others write: a new one from its present end, what is before is for backfills."""
        ends = self._remap()
        topics = self._find_topics(catalog)
        partitions = [(t.name, p) for t in topics.values() for p in range(t.partitions)]
        known = {topic for topic in topics if self.topics.was_read(topic)}
        new = [p for p in partitions if p not in ends or p[0] not in known]
        if new:
            fresh = self._admin.ends([p for p in new if p[0] not in known])
            found = {p: fresh.get(p, 0) for p in new}
            stage = self._store.stage()
            stage.remap(as_moved(found))
            self._commit(stage, Outcome())
            ends = self._remap()
        self.topics.learn(topics)
        for topic in self.topics.lost:
            self._stop_readers(topic)
        self._intake.follow({p: ends[p] for p in partitions if p[0] not in self.topics.lost})

    def _find_topics(self, catalog: Catalog) -> Mapping[TopicName, Topic]:
        """The topics that others write and that are there; which are lost is known then."""
        wanted = {o.topic for o in catalog.objects.values() if not o.derived and o.topic is not None}
        found = self._admin.describe(wanted)
        self.topics.compare(wanted, found)
        return found

    def _stop_readers(self, topic: TopicName) -> None:
        """Stop the queries of a topic that is lost, each where it is."""
        stopping = [
            program
            for program in self.dataflow.programs.values()
            if topic in program.topics and self.progress[program.query].status in (Status.RUNNING, Status.BUILDING)
        ]
        running = [program for program in stopping if self.progress[program.query].status is Status.RUNNING]
        if running:
            stage = self._store.stage()
            for program in running:
                stage.move(program.query, self._left_at(program))
            self._commit(stage, Outcome())
        for program in stopping:
            self._fail(program.query, self.topics.lost[topic])

    def _look_at_topics(self) -> None:
        if time.monotonic() - self._checked_at < CHECK_SECONDS:
            return
        self._checked_at = time.monotonic()
        self._follow_topics(self._catalog)

    def _remap(self) -> dict[Partition, int]:
        return as_ends(self._store.remap_ends())

    def _ends_of(self, program: Program) -> list[Moved]:
        return [moved for moved in self._store.remap_ends() if moved.topic in program.topics]

    # -- ticks ---------------------------------------------------------------------------------------

    def tick(self, timeout: float) -> bool:
        """One tick of the running queries, when there is something to read. False when there was not."""
        self._look_at_topics()
        taken = self._intake.take(timeout)
        for (topic, _), problem in taken.lost.items():
            self.topics.truncated(topic, str(problem))
            self._stop_readers(topic)
        if not taken.topics:
            return False
        before = self._remap()
        try:
            with metrics.TICK_SECONDS.labels("tick").time():
                stage, outcome = self._ticker.run(self.dataflow, self._running(), TickInputs(taken.topics))
                for query in outcome.failed:
                    stage.move(query, self._left_at(self.dataflow.programs[query]))
                stage.remap([m for m in taken.moved if before.get((m.topic, m.partition)) != m.end_offset])
                self._commit(stage, outcome)
        except BaseException:
            self._intake.rewind(self._remap())
            raise
        _count("tick", taken.topics)
        return True

    def build(self) -> bool:
        """One slice of the queries that are catching up; of the past, some. False when there is none to do now."""
        if time.monotonic() - self._installed_at < 0.25:
            return False
        began, built = time.monotonic(), False
        while (piece := self._build_slice()) is not None:
            built = True
            if not (piece.short or piece.at is not None) or time.monotonic() - began > REPLAY_SECONDS:
                break
        return built

    def _build_slice(self) -> Piece | None:
        waiting = {q: self.dataflow.programs[q] for q, p in self.progress.items() if p.status is Status.BUILDING}
        ready = {q: p for q, p in waiting.items() if self._upstream_runs(p)}
        self._backfill.look_at(waiting)
        if not ready:
            return None
        for program in ready.values():
            self._check_replay(program)
        try:
            piece = self._backfill.next(ready, self.dataflow, self._remap())
        except TopicChanged as error:
            self._fail(next(iter(ready)), str(error))
            return None
        riders = self._riders_of(piece.queries.values())
        with metrics.TICK_SECONDS.labels("backfill").time():
            inputs = replace(piece.inputs, riders=frozenset(riders))
            stage, outcome = self._ticker.run(self.dataflow, {**piece.queries, **riders}, inputs)
            for query in piece.queries.keys() - outcome.failed.keys():
                stage.move(query, [*piece.moved, _place_after(piece).mark()])
            for query in riders.keys() & outcome.failed.keys():
                stage.move(query, self._left_at(riders[query]))
            self._commit(stage, outcome, past=piece.at)
        self._backfill.committed(piece)
        _count("backfill", piece.inputs.topics)
        if piece.last:
            self._show([p for q, p in piece.queries.items() if q not in outcome.failed])
            # From where on it can be read is durable before anyone reads: a time that was answered stays readable.
            self._commit(self._store.stage(), Outcome())
        for query in piece.queries.keys() - outcome.failed.keys():
            self.progress[query] = Progress(Status.RUNNING) if piece.last else Progress(Status.BUILDING, piece.done)
        return piece

    def _check_replay(self, program: Program) -> None:
        """Begin again with what was to have the history of its inputs, when that is no longer held for it."""
        begun = replayed_upto(self._store.positions(program.query)) is not None
        if begun and self._backfill.starts(program.object) is None:
            self._reset(program)
            self._create(program)

    def _riders_of(self, programs: Iterable[Program]) -> dict[QueryId, Program]:
        """Running queries behind queries that catch up: these had failed, or write to a stream that has others."""
        running = self._running()
        return {q: p for program in programs for q, p in self.dataflow.downstream(program, running).items()}

    def insert(self, query: QueryId, rows: pa.Table) -> None:
        """Rows that a user gives a derived object: they go through a tick of their own."""
        if query not in self._running():
            raise ReadError(f"query {query} does not run", hint="SHOW QUERIES says why.")
        given = Given(self.dataflow.programs[query], rows)
        with metrics.TICK_SECONDS.labels("insert").time():
            stage, outcome = self._ticker.run(self.dataflow, self._running(), TickInputs({}), given)
            self._commit(stage, outcome)
        _count("insert", {})

    def _commit(self, stage: TickStage, outcome: Outcome, *, past: Time | None = None) -> None:
        """Commit at the next time; first what has to be at a time of the past, which no reader can see yet."""
        if past is not None:
            crash_point("before_store_commit")
            stage.commit(past)
            crash_point("after_store_commit")
            stage = self._store.stage()
        logged = processing_log.rows(outcome, int(time.time() * 1000))
        if logged is not None:
            stage.append(processing_log.QUERY, logged)
        elif past is not None and not outcome.failed:
            stage.abandon()
            return
        at = self._clock.begin_commit()
        try:
            crash_point("before_store_commit")
            with metrics.COMMIT_SECONDS.time():
                stage.commit(at)
            crash_point("after_store_commit")
            self._store.set_upper(self._collections(self._running().values()), Time(at + 1))
        finally:
            self._clock.end_commit()
        for query, reason in outcome.failed.items():
            self._fail(query, reason)
        for (name, _), late in outcome.late.items():
            metrics.LATE.labels(name).inc(late.total)
        for (name, _), rows in outcome.skipped.items():
            metrics.SKIPPED.labels(name).inc(rows)
        for problem in outcome.undecodable:
            metrics.UNDECODABLE.labels(problem.object).inc(problem.total)
        if self.publishing is not None:
            self.publishing.wake()
        for listener in list(self.listeners):
            listener(at, outcome)

    def _fail(self, query: QueryId, reason: str) -> None:
        if self.progress.get(query, Progress(Status.BUILDING)).status is not Status.ERROR:
            log.error("query %s stopped: %s", query, reason)
            metrics.QUERY_FAILURES.labels(query).inc()
        self.progress[query] = Progress(Status.ERROR, reason=reason)

    def _running(self) -> dict[QueryId, Program]:
        return {q: p for q, p in self.dataflow.programs.items() if self.progress[q].status is Status.RUNNING}

    def _upstream_runs(self, program: Program) -> bool:
        """Whether what a query reads is there: its topics in the remap, and the other queries running."""
        followed = {moved.topic for moved in self._store.remap_ends()}
        return program.topics <= followed and all(self._is_up(name) for name in program.needs)

    def _is_up(self, name: ObjectName) -> bool:
        """Whether an object can be read: of several that write a stream one may stand still, none be building."""
        found = {self.progress[keeper.query].status for keeper in self.dataflow.keepers(name)}
        return Status.RUNNING in found and Status.BUILDING not in found

    def _show(self, programs: Iterable[Program]) -> None:
        """Make the collections of queries that have caught up readable."""
        shown = self._collections(programs)
        if shown:
            self._store.set_upper(shown, Time(self._clock.read_time() + 1))

    def _collections(self, programs: Iterable[Program]) -> list[CollectionId]:
        return [p.collection for p in programs if p.collection is not None]


def _sink_of(query: QueryId) -> str:
    """The fact that remembers where a query's rows go; it is forgotten with the query."""
    return f"{query}/sink"


def _place_after(piece: Piece) -> Place:
    if piece.last:
        return Place.RIDING
    return Place.OWN if piece.goes_on else Place.LOST


def _count(kind: str, read: Mapping[TopicName, ViewInput]) -> None:
    metrics.TICKS.labels(kind).inc()
    for topic, records in read.items():
        metrics.RECORDS_READ.labels(topic).inc(length(records))


def _table_program(found: Table) -> Program:
    assert found.topic is not None
    return build_table(found.name, found.topic, found.schema, found.formats, found.timestamp, found.window)


def _latest(entry: QueryEntry) -> bool:
    return entry.properties.get("auto.offset.reset", "earliest").lower() == "latest"


def _release(text: str) -> Release:
    parts = text.split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) >= 2 and all(p.isdigit() for p in parts[:2]) else CURRENT
