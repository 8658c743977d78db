"""Runs backfill slices between the ticks, until queries have caught up and are live."""

import logging
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from math import inf

from holdfast import metrics
from holdfast.coordinator.backfill.slices import BackfillSlice, BackfillSlices
from holdfast.coordinator.commit import CommitPoint
from holdfast.coordinator.freeze import Freezer
from holdfast.coordinator.intake import as_ends
from holdfast.coordinator.intervals import Intervals
from holdfast.coordinator.queries import Queries, collections
from holdfast.coordinator.spark_exits import SparkExits
from holdfast.coordinator.start import QueryStarter
from holdfast.coordinator.tick_loop import count_tick
from holdfast.coordinator.topics.known import refusal
from holdfast.coordinator.uppers import Uppers
from holdfast.errors import TopicChanged
from holdfast.kafka.port import TopicProblem
from holdfast.names import QueryId
from holdfast.runtime.program import Program
from holdfast.runtime.progress import Status
from holdfast.runtime.store.port import Placement, Store
from holdfast.runtime.tick import Ticker
from holdfast.wall_clock import WallClock

log = logging.getLogger(__name__)

MOST_SETTLES = 4
"""After this many settle intervals, backfills start even if statements go on changing the catalog."""
WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 30.0
"""The pause between two attempts at a topic that cannot be read doubles up to this."""


@dataclass(frozen=True, slots=True)
class Wait:
    """How long a query waits, and until when by the monotonic clock."""

    seconds: float
    until: float


class BackfillLoop:
    """On the coordinator's thread."""

    def __init__(
        self,
        store: Store,
        ticker: Ticker,
        slices: BackfillSlices,
        queries: Queries,
        starter: QueryStarter,
        freezer: Freezer,
        commit: CommitPoint,
        uppers: Uppers,
        clock: WallClock,
        intervals: Intervals,
        exits: SparkExits,
        is_full: Callable[[QueryId], bool],
    ) -> None:
        """`is_full` says whether a query has to wait until its outbox is shorter."""
        self._store, self._ticker, self._slices, self._queries = store, ticker, slices, queries
        self._starter, self._freezer, self._commit, self._uppers = starter, freezer, commit, uppers
        self._clock, self._intervals, self._exits, self._is_full = clock, intervals, exits, is_full
        self._waiting: dict[QueryId, Wait] = {}
        """The queries whose topics could not be read lately, or were being published."""
        self._settled_by = inf
        """When backfills start, whatever statements follow."""

    def run(self) -> bool:
        """One slice, or several short ones. False when no query can be built now."""
        self._finish(self._live())
        if self._settling() > 0:
            return False
        built, started_at = False, self._clock.monotonic()
        while (done := self._run_slice()) is not None:
            built = True
            is_short = done.short or done.at is not None
            if not is_short or self._clock.monotonic() - started_at > self._intervals.replay:
                break
        return built

    def starts_in(self) -> float:
        """Seconds until the queries that wait for the settle interval may be built; 0 when none does."""
        return max(0.0, self._settling()) if self._queries.with_status(Status.BUILDING) else 0.0

    def _settling(self) -> float:
        """How much of the settle interval is left. Statements without end do not extend it without end."""
        now, until = self._clock.monotonic(), self._queries.reconciled_at + self._intervals.settle
        if until <= now or not self._queries.with_status(Status.BUILDING):
            self._settled_by = inf
        else:
            self._settled_by = min(self._settled_by, now + MOST_SETTLES * self._intervals.settle)
        return min(until, self._settled_by) - now

    def _run_slice(self) -> BackfillSlice | None:
        cut = self._next_slice()
        if cut is None:
            return None
        dependents = self._queries.live_dependents(cut.queries.values())
        with metrics.TICK_SECONDS.labels("backfill").time():
            inputs = replace(cut.inputs, live_dependents=frozenset(dependents))
            with self._exits.counted():
                running, isolate = {**cut.queries, **dependents}, self._exits.isolate
                stage, outcome = self._ticker.run(self._queries.dataflow, running, inputs, isolate=isolate)
            for query in cut.queries.keys() - outcome.failed.keys():
                stage.move(query, cut.ends, _placement_after(cut), replayed_to=cut.at)
            for query in dependents.keys() & outcome.failed.keys():
                stage.move(query, *self._freezer.position(dependents[query]))
            self._commit.commit(stage, outcome, past=cut.at)
        self._slices.committed(cut)
        count_tick("backfill", cut.inputs.topics)
        built = {query: program for query, program in cut.queries.items() if query not in outcome.failed}
        if cut.last:
            self._finish(built.keys())
        else:
            for query in built:
                self._queries.set(query, Status.BUILDING, done=cut.done)
        return cut

    def _live(self) -> Set[QueryId]:
        """The queries whose last slice is committed, although a failure may have kept them from running."""
        building = self._queries.with_status(Status.BUILDING)
        return {query for query in building if self._store.position(query).placement is Placement.LIVE}

    def _finish(self, built: Set[QueryId]) -> None:
        """Let queries run that have committed their last slice. After a failure, the next round does it."""
        if not built:
            return
        self._thaw(built)
        # The since of what was built is durable before anyone reads: a time that was answered stays readable.
        self._commit.commit(self._store.stage())
        for query in built:
            self._queries.set(query, Status.RUNNING)

    def _thaw(self, built: Set[QueryId]) -> None:
        """Let the uppers of queries that have caught up, and of those that waited for them, follow the clock again.

        Their contents since they froze came with later times than the records: those times are given up, where no hold
        and no pin needs them.
        """
        current = self._queries.current()
        thawed = [p for query, p in self._queries.current(built).items() if query in built or query not in current]
        ids = collections(thawed)
        frozen = [id_ for id_ in ids if self._store.frontier(id_).upper]
        now = self._uppers.follow_clock(ids)
        for id_ in frozen:
            self._store.advance_since(id_, now)

    def _next_slice(self) -> BackfillSlice | None:
        waiting = self._queries.with_status(Status.BUILDING)
        self._slices.cancel_all_but(waiting)
        if not waiting:
            return None
        followed = {end.topic for end in self._store.remap_ends()}
        ready = {
            query: program
            for query, program in waiting.items()
            if program.topics <= followed
            and self._queries.upstream_runs(program)
            and self._freezer.is_resolved(query)
            and not self._is_full(query)
        }
        now = self._clock.monotonic()
        self._waiting = {query: wait for query, wait in self._waiting.items() if query in waiting}
        ready = {q: p for q, p in ready.items() if q not in self._waiting or self._waiting[q].until <= now}
        for program in ready.values():
            self._restart_lost_replay(program)
        while ready:
            first = next(iter(ready))
            try:
                cut = self._slices.next(ready, self._queries.dataflow, as_ends(self._store.remap_ends()))
            except TopicChanged as error:
                self._queries.fail(first, str(error))
                return None
            except TopicProblem as problem:
                self._stop_or_wait(ready.pop(first), problem)
                continue
            if cut is not None:
                self._waiting.pop(first, None)
                return cut
            self._wait(ready.pop(first), "its stream is being published")
        return None

    def _stop_or_wait(self, program: Program, problem: TopicProblem) -> None:
        """Set a query to ERROR whose topic Kafka does not let it read; after a passing problem, let it wait."""
        query = program.query
        if problem.lasting:
            self._queries.fail(query, refusal(problem))
            return
        self._wait(program, problem)

    def _wait(self, program: Program, problem: object) -> None:
        query = program.query
        known = self._waiting.get(query)
        seconds = min(known.seconds * 2, LONGEST_WAIT_SECONDS) if known is not None else WAIT_SECONDS
        self._waiting[query] = Wait(seconds, self._clock.monotonic() + seconds)
        log.warning("backfill waits: query=%s seconds=%.0f problem=%s", query, seconds, problem)

    def _restart_lost_replay(self, program: Program) -> None:
        """Start over with a query that was replaying the history of its inputs, when no hold protects that any more."""
        begun = self._store.position(program.query).replayed_to is not None
        if begun and self._slices.history_start(program.object) is None:
            self._starter.reset(program)
            self._starter.create(program)


def _placement_after(cut: BackfillSlice) -> Placement:
    if cut.last:
        return Placement.LIVE
    return Placement.BEHIND if cut.resumable else Placement.REBUILD
