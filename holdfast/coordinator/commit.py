"""The only commit point: what a tick, a backfill slice or a change of the catalog writes to the store."""

from collections.abc import Callable, Mapping

import pyarrow as pa

from holdfast import metrics
from holdfast.coordinator import processing_log
from holdfast.coordinator.clock import Clock
from holdfast.coordinator.log_outbox import LogOutbox
from holdfast.coordinator.publishing import Publishing
from holdfast.coordinator.queries import Queries, collections
from holdfast.coordinator.uppers import Uppers
from holdfast.crash import crash_point
from holdfast.names import CollectionId, QueryId
from holdfast.runtime.outcome import Outcome
from holdfast.runtime.store.port import Store, TickStage, Time


class CommitPoint:
    """Commits stages at the next time. On the coordinator's thread. `notify` wakes the subscribers."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        uppers: Uppers,
        queries: Queries,
        publishing: Publishing,
        log: LogOutbox,
        notify: Callable[[], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._store, self._clock, self._uppers, self._queries = store, clock, uppers, queries
        self._publishing, self._log, self._notify, self._now_ms = publishing, log, notify, now_ms

    def commit(self, stage: TickStage, outcome: Outcome | None = None, *, past: Time | None = None) -> None:
        """Write a stage, have its rows published, and wake the subscribers."""
        if self.write(stage, outcome or Outcome(), past=past):
            self.publish()
            self.notify()

    def write(self, stage: TickStage, outcome: Outcome, *, past: Time | None = None) -> bool:
        """Commit a stage to the store at the next time, and count its outcome.

        The stage of a replayed time commits at that time (`past`), which no reader can see yet; then a commit at the
        next time has only the outcome. False when there was nothing to commit at the next time.
        """
        if past is not None:
            self._write_past(stage, past)
            stage = self._store.stage()
        logged = self._log.rows(outcome, self._now_ms())
        if logged is not None:
            stage.enqueue(processing_log.QUERY, logged)
        elif past is not None and not outcome.failed:
            stage.abandon()
            return False
        self._write(stage, outcome.failed)
        _count(outcome)
        return True

    def write_rows(self, query: QueryId, rows: Mapping[CollectionId, pa.Table]) -> None:
        """Commit rows of collections that no query of a user maintains, as a tick of their own."""
        stage = self._store.stage()
        for collection, changed in rows.items():
            stage.upsert(query, collection, changed)
        at = self._clock.begin_commit()
        try:
            stage.commit(at)
            self._uppers.raise_past(collections(self._queries.current().values()), at)
        finally:
            self._clock.end_commit()
        self.notify()

    def publish(self) -> None:
        """Wake the publisher: the outbox may have rows."""
        self._publishing.wake()

    def notify(self) -> None:
        """Wake the subscribers."""
        self._notify()

    def _write_past(self, stage: TickStage, past: Time) -> None:
        crash_point("before_store_commit")
        stage.commit(past, self._queries.frozen_collections())
        crash_point("after_store_commit")

    def _write(self, stage: TickStage, failed: Mapping[QueryId, str]) -> None:
        at = self._clock.begin_commit()
        try:
            crash_point("before_store_commit")
            with metrics.COMMIT_SECONDS.time():
                stage.commit(at, self._queries.frozen_collections(failed.keys()))
            crash_point("after_store_commit")
            # Before any reader gets this time: what a failed query did not compute must not look final.
            for query, reason in failed.items():
                self._queries.fail(query, reason)
            self._uppers.raise_past(collections(self._queries.current().values()), at)
        finally:
            self._clock.end_commit()


def _count(outcome: Outcome) -> None:
    for (name, _), late in outcome.late.items():
        metrics.LATE.labels(name).inc(late.total)
    for (name, _), rows in outcome.skipped.items():
        metrics.SKIPPED.labels(name).inc(rows)
    for problem in outcome.undecodable:
        metrics.UNDECODABLE.labels(problem.object).inc(problem.total)
