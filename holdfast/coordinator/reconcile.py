"""Reconciles what runs with the catalog: queries are started, stopped, replaced, paused and resumed."""

from collections.abc import Callable, Set
from contextlib import suppress
from functools import partial

from holdfast.catalog.objects import QueryEntry, QueryState, Stream, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.catalog.system import QUERY as SYSTEM_QUERY
from holdfast.catalog.system import SYSTEM_TABLES
from holdfast.coordinator import processing_log
from holdfast.coordinator.barriers import Barriers
from holdfast.coordinator.drains import Drains
from holdfast.coordinator.freeze import Freezer
from holdfast.coordinator.outbox_batch import OutboxStore
from holdfast.coordinator.publishing import Publishing
from holdfast.coordinator.queries import Queries
from holdfast.coordinator.start import QueryStarter
from holdfast.coordinator.topics.follower import TopicFollower
from holdfast.errors import KafkaError
from holdfast.names import CollectionId, ObjectName, QueryId, TopicName, table_query_id
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.functions.registry import CURRENT, Release
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.program import Program
from holdfast.runtime.progress import Status
from holdfast.runtime.spark.build import build_query, build_table
from holdfast.wall_clock import WallClock

OWN_QUERIES = {processing_log.QUERY, SYSTEM_QUERY}
"""Queries that are in no catalog."""


class Reconciler:
    """On the coordinator's thread."""

    def __init__(
        self,
        store: OutboxStore,
        queries: Queries,
        starter: QueryStarter,
        follower: TopicFollower,
        freezer: Freezer,
        publishing: Publishing,
        barriers: Barriers,
        drains: Drains,
        clock: WallClock,
        *,
        window_ms: int,
    ) -> None:
        self._store, self._queries, self._starter, self._follower = store, queries, starter, follower
        self._freezer, self._publishing, self._barriers, self._drains = freezer, publishing, barriers, drains
        self._clock, self._window_ms = clock, window_ms
        store.create_outbox(processing_log.QUERY, processing_log.LAYOUT)

    def reconcile(self, catalog: Catalog) -> KafkaError | None:
        """Run what the catalog has, and nothing else.

        Returns why some queries could not be started now, if so: all others run, except those that read their results.
        """
        self._queries.catalog = catalog
        self._remove_dropped(catalog)
        with suppress(KafkaError):  # `follow` raises it again.
            self._follower.find(catalog)
        for found in catalog.objects.values():
            self._queries.dataflow.declare(found.name, found.topic, maintained=found.maintained)
            if isinstance(found, Table) and not found.derived and found.topic is not None:
                self._start_table(found, found.topic)
        self._follower.follow(catalog)
        problem = self._start_queries(catalog)
        self._starter.follow_clock()
        self._set_windows(catalog)
        self._follower.forget_unused(catalog)
        self._queries.reconciled_at = self._clock.monotonic()
        return problem

    def _start_queries(self, catalog: Catalog) -> KafkaError | None:
        problem, missing = None, set[ObjectName | None]()
        for entry in catalog.queries.values():
            if missing.isdisjoint(entry.sources):
                try:
                    self._start_query(entry, catalog)
                    continue
                except KafkaError as error:
                    problem = problem or error
            missing.add(entry.sink)
        return problem

    def pause(self) -> None:
        """Pause the queries that the catalog has paused. Between ticks, and only once rows can be published."""
        paused = [e.id for e in self._queries.catalog.queries.values() if e.state is QueryState.PAUSED]
        programs = self._queries.dataflow.programs
        self._freezer.pause(programs[query] for query in paused if query in programs)

    def resume(self, query: QueryId) -> None:
        """Start a query that has waited."""
        catalog = self._queries.catalog
        self._start_query(catalog.queries[query], catalog)

    def drop_strays(self) -> None:
        """Drop what a crash has left of dropped objects. Once, after the first `reconcile`."""
        catalog, programs = self._queries.catalog, self._queries.dataflow.programs.values()
        used = {program.collection for program in programs} | {
            CollectionId(name) for name in (*catalog.objects, *catalog.indexes, *(s.full_name for s in SYSTEM_TABLES))
        }
        for collection in set(self._store.collections()) - used:
            self._store.drop_collection(collection)
        progress = self._queries.progress
        for query in self._store.queries() - progress.keys() - catalog.queries.keys() - OWN_QUERIES:
            self._drains.add(query)
        states = {state for program in programs for state, _ in program.states}
        stopped = [query for query, p in progress.items() if p.status in (Status.ERROR, Status.INCOMPATIBLE)]
        stopped += [query for query, entry in catalog.queries.items() if entry.state is QueryState.INCOMPATIBLE]
        for state in set(self._store.states()) - states:
            if not state.startswith(tuple(stopped)):
                self._store.drop_state(state)

    def _start_table(self, table: Table, topic: TopicName) -> None:
        """Start the query that maintains a table over a topic, unless it runs as it is defined."""
        query = table_query_id(table.name)
        windows = table.window, table.window_store
        definition = (table.schema, table.topic, table.formats, table.timestamp, *windows)
        if not self._queries.is_defined_by(query, definition):
            self._start(query, partial(_table_program, table), definition, topics={topic})

    def _start_query(self, entry: QueryEntry, catalog: Catalog) -> None:
        """Start a query that is new, has another plan, or was resumed."""
        topics = _topics_of(entry, catalog)
        if entry.state is QueryState.INCOMPATIBLE:
            self._freezer.freeze_unbuilt(entry.id, topics)
        elif self._resumes(entry) or not self._queries.is_defined_by(entry.id, entry.plan):
            build = partial(_query_program, entry, self._queries.dataflow)
            self._start(entry.id, build, entry.plan, topics=topics, latest=_latest(entry))

    def _resumes(self, entry: QueryEntry) -> bool:
        known = self._queries.status(entry.id)
        stopped = known is not None and known.status in (Status.PAUSED, Status.WAITING)
        return stopped and entry.state is QueryState.RUNNING

    def _start(
        self,
        query: QueryId,
        build: Callable[[], Program],
        definition: object,
        *,
        topics: Set[TopicName] | None,
        latest: bool = False,
    ) -> None:
        """Start a query, replacing a running one. Nothing is published while the columns of its outbox change."""
        sink = self._queries.sinks().get(query)
        if sink is None:
            self._starter.start(query, build, topics=topics, latest=latest)
        else:
            with self._publishing.paused([sink.topic]) as paused:
                if not paused:
                    raise KafkaError(f"query {query} cannot be replaced while its rows are being published")
                self._starter.start(query, build, topics=topics, latest=latest)
        self._publishing.retry(query)
        self._queries.define(query, definition)

    def _remove_dropped(self, catalog: Catalog) -> None:
        wanted = set(catalog.queries) | {table_query_id(table.name) for table in catalog.tables if not table.derived}
        for query in [query for query in self._queries.progress if query not in wanted]:
            program = self._queries.remove(query)
            self._barriers.remove(query)
            if program is not None and program.object in catalog.objects:
                self._freezer.end(query)
            self._drains.add(query)
            for state, _ in program.states if program else ():
                self._store.drop_state(state)
            if program is not None and program.collection is not None and program.object not in catalog.objects:
                self._store.drop_collection(program.collection)
        for name in [name for name in self._queries.dataflow.topics if name not in catalog.objects]:
            self._queries.dataflow.forget(name)
            self._store.drop_collection(CollectionId(name))

    def _set_windows(self, catalog: Catalog) -> None:
        """Retain the history of each table and index for as long as its statement says."""
        existing = self._store.collections()
        for table in catalog.holdable:
            if CollectionId(table.name) in existing:
                window_ms = self._window_ms if table.retain_ms is None else table.retain_ms
                self._store.set_window(CollectionId(table.name), window_ms)


def _topics_of(entry: QueryEntry, catalog: Catalog) -> Set[TopicName] | None:
    """The topics that a query reads, None when it also reads something else."""
    sources = [catalog.find(name) for name in entry.sources]
    topics = {found.topic for found in sources if isinstance(found, Stream) and not found.derived}
    return topics if sources and len(topics) == len(sources) else None


def _table_program(table: Table) -> Program:
    assert table.topic is not None
    window, store = table.window, table.window_store
    return build_table(table.name, table.topic, table.schema, table.formats, table.timestamp, window, store)


def _query_program(entry: QueryEntry, dataflow: Dataflow) -> Program:
    plan = decode(entry.plan).query
    assert plan is not None
    return build_query(plan, dataflow, _release(entry.release), entry.properties)


def _latest(entry: QueryEntry) -> bool:
    return entry.properties.get("auto.offset.reset", "earliest").lower() == "latest"


def _release(text: str) -> Release:
    parts = text.split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) >= 2 and all(p.isdigit() for p in parts[:2]) else CURRENT
