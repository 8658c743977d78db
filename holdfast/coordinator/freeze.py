"""Freezing queries: their uppers stop, and where they are is recorded, so that they can resume from there."""

from collections.abc import Iterable, Iterator, Set

from holdfast.coordinator.barriers import Barrier, Barriers
from holdfast.coordinator.commit import CommitPoint
from holdfast.coordinator.queries import Queries
from holdfast.coordinator.uppers import Uppers, maintaining_query
from holdfast.names import CollectionId, QueryId, TopicName
from holdfast.runtime.program import Program
from holdfast.runtime.progress import Status
from holdfast.runtime.store.port import EndOffset, Placement, Store


class Freezer:
    """Records the positions of queries that stop. On the coordinator's thread."""

    def __init__(self, store: Store, queries: Queries, barriers: Barriers, commit: CommitPoint, uppers: Uppers) -> None:
        self._store, self._queries, self._barriers, self._commit = store, queries, barriers, commit
        self._uppers = uppers

    def position(self, program: Program) -> tuple[list[EndOffset], Placement]:
        """Where a live query is before the next commit.

        Its position in derived streams is known once they are published up to now: `resolve` records it then. The
        changes of a table between two times are not stored: a query over tables is rebuilt.
        """
        dataflow = self._queries.dataflow
        maintainers = [dataflow.maintainer(name) for name in program.objects]
        if any(each is None or each.sink is None or each.collection is not None for each in maintainers):
            return [], Placement.REBUILD
        ends = self.ends(program.topics)
        if not maintainers:
            return ends, Placement.BEHIND
        topics = {topic for name in program.objects if (topic := dataflow.topics[name]) is not None}
        self._barriers.put(program.query, self._store.committed_time(), topics)
        return ends, Placement.BEHIND

    def resolve(self) -> None:
        """Record where queries stopped in derived streams, for those that are published up to there."""
        for query, barrier in self._barriers.all().items():
            if self._store.position(query).placement is not Placement.BEHIND:
                self._barriers.remove(query)  # The tick that left it out was not committed, or it is rebuilt.
            elif not self._is_pending(barrier):
                stage = self._store.stage()
                ends = [end for end in self._store.published_ends() if end.topic in barrier.topics]
                stage.move(query, ends, Placement.BEHIND)
                self._commit.commit(stage)
                self._barriers.remove(query)

    def is_resolved(self, query: QueryId) -> bool:
        """Whether it is known from where a query resumes."""
        return query not in self._barriers

    def _is_pending(self, barrier: Barrier) -> bool:
        sinks = self._queries.sinks()
        return any(
            pending.time <= barrier.time and pending.query in sinks and sinks[pending.query].topic in barrier.topics
            for pending in self._store.pending()
        )

    def ends(self, topics: Set[TopicName]) -> list[EndOffset]:
        """The ends of some topics in the remap."""
        return [end for end in self._store.remap_ends() if end.topic in topics]

    def freeze_unbuilt(self, query: QueryId, topics: Set[TopicName] | None) -> None:
        """Record the position of a live query that this release cannot build: the others move on without it.

        `topics` is None for a query that reads other queries. Their rows are not stored for it: it is rebuilt when it
        can be built again.
        """
        if not self._is_live(query):
            return
        self._uppers.follow_clock(self._freezing_with(query))
        stage = self._store.stage()
        if topics is None:
            stage.move(query, placement=Placement.REBUILD)
        else:
            stage.move(query, self.ends(topics), Placement.BEHIND)
        self._commit.commit(stage)

    def _freezing_with(self, query: QueryId) -> Iterator[CollectionId]:
        """The collections that freeze with a query. They have all that was committed.

        After a crash, their uppers in the store may be from before the last reads.
        """
        freezing = self._queries.freezing_with(query, self._is_live)
        existing = self._store.collections()
        for held in self._queries.catalog.holdable:
            if maintaining_query(held) in freezing and CollectionId(held.name) in existing:
                yield CollectionId(held.name)

    def _is_live(self, query: QueryId) -> bool:
        """Whether it takes part in every tick; by its position, which is durable before its status is set."""
        return self._store.position(query).placement is Placement.LIVE

    def end(self, query: QueryId) -> None:
        """Make the last upper of a query durable that was terminated: its table stays as it is."""
        if self._is_live(query):
            stage = self._store.stage()
            stage.move(query, placement=Placement.REBUILD)
            self._commit.commit(stage)

    def pause(self, programs: Iterable[Program]) -> None:
        """Pause queries, each where it is."""
        for program in programs:
            if self._is_live(program.query):
                stage = self._store.stage()
                stage.move(program.query, *self.position(program))
                self._commit.commit(stage)
            self._queries.set(program.query, Status.PAUSED)

    def wait(self, program: Program, reason: str) -> None:
        """Stop a live query where it is, until it can continue by itself."""
        stage = self._store.stage()
        stage.move(program.query, *self.position(program))
        self._commit.commit(stage)
        self._queries.set(program.query, Status.WAITING, reason=reason)

    def fail(self, query: QueryId, reason: str) -> None:
        """Set a query that runs, catches up or waits to ERROR, where it is."""
        program = self._queries.with_status(Status.RUNNING, Status.BUILDING, Status.WAITING).get(query)
        if program is None:
            return
        if self._is_live(query):
            stage = self._store.stage()
            stage.move(query, *self.position(program))
            self._commit.commit(stage)
        self._queries.fail(query, reason)

    def fail_readers(self, topic: TopicName, reason: str) -> None:
        """Set the queries that read a lost topic to ERROR, each where it is."""
        stopping = [
            program
            for program in self._queries.with_status(Status.RUNNING, Status.BUILDING, Status.WAITING).values()
            if topic in program.topics
        ]
        live = [program for program in stopping if self._is_live(program.query)]
        if live:
            stage = self._store.stage()
            for program in live:
                stage.move(program.query, *self.position(program))
            self._commit.commit(stage)
        for program in stopping:
            self._queries.fail(program.query, reason)


def frozen_reason(queries: Queries, store: Store, query: QueryId) -> str | None:
    """Since when and why a running query is frozen, as SHOW QUERIES shows it; None when it is not."""
    stop, program = queries.frozen().get(query), queries.dataflow.programs.get(query)
    if stop is None or program is None:
        return None
    collection = program.collection
    upper = 0 if collection is None or collection not in store.collections() else store.frontier(collection).upper
    since = f" since {upper - 1}" if upper else ""
    return f"frozen{since}: {stop.seen_from(query)}"
