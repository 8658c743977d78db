"""Back-pressure: a query whose sink topic does not take its rows waits, before its outbox fills the disk."""

import logging
from collections.abc import Callable
from contextlib import suppress

from holdfast.coordinator.freeze import Freezer
from holdfast.coordinator.log_outbox import LogOutbox
from holdfast.coordinator.outbox_batch import OutboxStore
from holdfast.coordinator.queries import Queries
from holdfast.errors import KafkaError, size_text
from holdfast.names import QueryId
from holdfast.runtime.program import Program
from holdfast.runtime.progress import Status
from holdfast.wall_clock import WallClock

log = logging.getLogger(__name__)

REBUILT_ROWS = 2
"""A query over tables is rebuilt after it has waited: a tombstone and a row for each row of its table."""


class BackPressure:
    """On the coordinator's thread.

    A live query whose outbox exceeds the limit stops where it is; one that is catching up runs no further slices. Both
    continue by themselves once less than half is pending; a query over tables, which is rebuilt then, once nothing is.
    """

    def __init__(
        self,
        store: OutboxStore,
        queries: Queries,
        freezer: Freezer,
        blocked: Callable[[QueryId], str | None],
        resume: Callable[[QueryId], None],
        log_outbox: LogOutbox,
        clock: WallClock,
        *,
        max_bytes: int,
        check_seconds: float,
    ) -> None:
        """`blocked` says why the rows of a query cannot be published; `resume` starts one that has waited."""
        self._store, self._queries, self._freezer, self._blocked = store, queries, freezer, blocked
        self._resume, self._log_outbox, self._clock, self._max_bytes, self._check_seconds = (
            resume,
            log_outbox,
            clock,
            max_bytes,
            check_seconds,
        )
        self._full: set[QueryId] = set()
        self._check_at = float("-inf")

    def is_full(self, query: QueryId) -> bool:
        """Whether a query has to wait until its outbox is shorter."""
        return query in self._full

    def measure(self) -> None:
        """Find the full outboxes: before a query runs its next slice."""
        candidates = self._queries.with_status(Status.RUNNING, Status.BUILDING, Status.WAITING)
        publishing = {query: program for query, program in candidates.items() if program.sink is not None}
        self._full = {query for query, program in publishing.items() if self._exceeds(program, query in self._full)}

    def check(self) -> None:
        """Let live queries wait or continue, every few seconds."""
        if self._clock.monotonic() < self._check_at:
            return
        self._check_at = self._clock.monotonic() + self._check_seconds
        self.measure()
        self._log_outbox.measure()
        running = self._queries.running()
        for program in [running[query] for query in running.keys() & self._full]:
            reason = self._reason(program.query)
            log.warning("query waits for its sink topic: query=%s reason=%s", program.query, reason)
            self._freezer.wait(program, reason)
        for query in self._queries.with_status(Status.WAITING).keys() - self._full:
            with suppress(KafkaError):  # A transaction does not end now; the next check tries again.
                self._resume(query)
                log.info("query continues: query=%s", query)

    def _exceeds(self, program: Program, was_full: bool) -> bool:
        query = program.query
        pending = sum(each.rows for each in self._store.pending([query]))
        if not pending or program.collection is None or not self._queries.reads_tables(program):
            return self._store.pending_bytes(query) > (self._max_bytes // 2 if was_full else self._max_bytes)
        rebuilt = REBUILT_ROWS * self._store.count(program.collection)
        return was_full or (pending > 2 * rebuilt and self._store.pending_bytes(query) > self._max_bytes)

    def _reason(self, query: QueryId) -> str:
        held, blocked = size_text(self._store.pending_bytes(query)), self._blocked(query)
        reason = f"its sink topic does not take rows as fast as it computes them: {held} are pending"
        return f"{reason} (outbox_bytes is {size_text(self._max_bytes)}){f'; {blocked}' if blocked else ''}"
