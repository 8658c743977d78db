"""Starting queries: their collections, states and outboxes, and where they begin."""

import logging
from collections.abc import Callable, Iterator, Set

import pyarrow as pa

from holdfast.coordinator.barriers import Barriers
from holdfast.coordinator.commit import CommitPoint
from holdfast.coordinator.freeze import Freezer
from holdfast.coordinator.queries import Queries, collections
from holdfast.coordinator.sink_records import SinkRecords
from holdfast.coordinator.topics.known import KnownTopics
from holdfast.coordinator.uppers import Uppers
from holdfast.errors import HoldfastError
from holdfast.names import CollectionId, ObjectName, QueryId, TopicName
from holdfast.runtime.program import Program
from holdfast.runtime.progress import Status
from holdfast.runtime.store.port import Placement, Store, Time

log = logging.getLogger(__name__)


class QueryStarter:
    """Starts queries and builds them again. On the coordinator's thread.

    `history_start` gives where the history of an object has to start; None when it starts once the object is built.
    """

    def __init__(
        self,
        store: Store,
        queries: Queries,
        followed: KnownTopics,
        freezer: Freezer,
        commit: CommitPoint,
        uppers: Uppers,
        sink_records: SinkRecords,
        barriers: Barriers,
        history_start: Callable[[ObjectName], Time | None],
        *,
        window_ms: int,
    ) -> None:
        self._store, self._queries, self._followed, self._freezer = store, queries, followed, freezer
        self._commit, self._uppers, self._sink_records, self._barriers = commit, uppers, sink_records, barriers
        self._history_start, self._window_ms = history_start, window_ms

    def start(
        self,
        query: QueryId,
        build: Callable[[], Program],
        *,
        topics: Set[TopicName] | None,
        latest: bool = False,
    ) -> None:
        """Build a query's program and let it resume from where the query is.

        `topics` are those it reads, None when it also reads other queries. With `latest`, a new query begins at the
        present ends of its topics.
        """
        try:
            program = build()
        except HoldfastError as error:
            self._freezer.freeze_unbuilt(query, topics)
            self._queries.set(query, Status.INCOMPATIBLE, reason=str(error))
            log.error("query cannot run: query=%s reason=%s", query, error)
            return
        if program.sink is not None:
            self._store.create_outbox(query, program.layout)
        if self._store.position(query).placement is Placement.REBUILD:
            self._queries.set(query, Status.BUILDING)  # Nobody may read what `reset` makes final.
            self.reset(program)
        self.create(program)
        self._queries.dataflow.add(program)
        self._queries.set(query, Status.BUILDING)
        unreadable = self._followed.unreadable
        reason = next((unreadable[topic] for topic in sorted(program.topics) if topic in unreadable), None)
        if reason is not None:
            self._freezer.freeze_unbuilt(query, None if program.objects else program.topics)
            self._queries.fail(query, reason)
            return
        if latest and self._store.position(query).new and not self._queries.reads_tables(program):
            self._begin_at_ends(program)
        if self._store.position(query).placement is Placement.LIVE:
            self._queries.set(query, Status.RUNNING)

    def follow_clock(self) -> None:
        """Let the uppers of all queries that run follow the clock. Once all are started: some read others.

        After a crash, the uppers in the store may be from before the last reads; a query that stops now has all that
        was committed.
        """
        self._uppers.follow_clock(collections(self._queries.current().values()))

    def _begin_at_ends(self, program: Program) -> None:
        # A table is all of its rows, whenever they came: what is read as a table is read from its start.
        ends = self._freezer.ends(program.topics - program.table_topics)
        stage = self._store.stage()
        stage.move(program.query, ends, Placement.BEHIND if program.table_topics else Placement.LIVE)
        self._commit.commit(stage)

    def create(self, program: Program) -> None:
        """Create the collection and the states of a query, if they are missing."""
        if program.collection is not None:
            self._store.create_collection(program.collection, program.layout, window_ms=self._window_ms)
            start = self._history_start(program.object)
            if start is not None and not self._store.changed_at(program.collection):
                self._store.advance_since(program.collection, start)
        for state, layout in program.states:
            self._store.create_state(state, layout)
        if program.sink is not None:
            self._sink_records.put(program.query, program.sink)

    def reset(self, program: Program) -> None:
        """Drop what a query has computed, so that it is rebuilt; its dependents are marked for that first.

        The sink topic of a table gets tombstones: not all of its rows may come back.
        """
        stage = self._store.stage()
        for reader in self._queries.catalog.readers(program.object):
            stage.move(reader.id, placement=Placement.REBUILD)
        if program.collection is not None and program.sink is not None:
            for tombstones in self._tombstones(program.collection):
                stage.enqueue(program.query, tombstones)
        self._commit.commit(stage)
        if program.collection is not None:
            self._store.drop_collection(program.collection)
        for state, _ in program.states:
            self._store.drop_state(state)
        self._barriers.remove(program.query)
        self._store.forget_query(program.query)

    def _tombstones(self, collection: CollectionId) -> Iterator[pa.Table]:
        """The last rows of a table, as deleted rows. Those that it got while it was frozen are published, too."""
        upper = self._store.frontier(collection).upper if collection in self._store.collections() else Time(0)
        if upper:
            self._uppers.raise_past([collection], self._store.changed_at(collection))
            upper = self._store.frontier(collection).upper
        for page in self._store.snapshot(collection, Time(upper - 1)) if upper else ():
            yield page.append_column("present", pa.repeat(pa.scalar(False), page.num_rows))
