"""What the main lane does not publish: topics that take no records, and outboxes with a record that is refused."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf
from threading import Lock

from holdfast.errors import HoldfastError
from holdfast.names import QueryId, TopicName
from holdfast.wall_clock import WallClock

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 30.0
"""The pause between two attempts at a topic doubles up to this."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """A topic that did not take records: how many are tried at once, and when; `retry_at` is infinite for never.

    `reason` is None once somebody asked to retry it, until it is refused again.
    """

    rows: int
    retry_at: float
    reason: str | None
    failures: int = 1


class BlockedTopics:
    """The retry lane has the topics that are blocked; no lane has the outboxes that are stopped. From any thread."""

    def __init__(self, clock: WallClock, *, transaction_rows: int) -> None:
        self._clock, self.transaction_rows = clock, transaction_rows
        self._lock = Lock()
        """Protects the fields that follow."""
        self._topics: dict[TopicName, Blocked] = {}
        self._stopped: dict[QueryId, str] = {}
        self._failures: dict[QueryId, str] = {}

    # -- topics

    def __contains__(self, topic: TopicName) -> bool:
        with self._lock:
            return topic in self._topics

    def contains_any(self, topics: Iterable[TopicName]) -> bool:
        with self._lock:
            return not self._topics.keys().isdisjoint(topics)

    def due(self) -> list[TopicName]:
        """The topics that are to be tried now."""
        now = self._clock.monotonic()
        with self._lock:
            return sorted(topic for topic, blocked in self._topics.items() if blocked.retry_at <= now)

    def rows(self, topic: TopicName) -> int | None:
        """How many rows are tried at once; None for a topic that is not blocked any more."""
        with self._lock:
            return self._topics[topic].rows if topic in self._topics else None

    def set_rows(self, topic: TopicName, rows: int) -> None:
        with self._lock:
            if topic in self._topics:
                self._topics[topic] = replace(self._topics[topic], rows=max(1, min(rows, self.transaction_rows)))

    def block(self, topics: Iterable[TopicName], error: HoldfastError, *, now: bool = False, ever: bool = True) -> None:
        """Have topics tried by the retry lane: `now`, or after a pause that grows, or never unless they are `ever`."""
        reason = reason_of(error)
        with self._lock:
            for topic in topics:
                known = self._topics.get(topic)
                failures = known.failures + 1 if known is not None else 1
                pause = min(RETRY_SECONDS * 2 ** min(failures - 1, 10), LONGEST_RETRY_SECONDS)
                retry_at = self._clock.monotonic() + (0.0 if now else pause) if ever else inf
                if known is None or known.reason != reason:
                    log.warning("topic blocked: topic=%s reason=%s", topic, reason)
                rows = known.rows if known is not None else self.transaction_rows
                self._topics[topic] = Blocked(rows, retry_at, reason, failures)

    def unblock(self, topic: TopicName) -> None:
        with self._lock:
            self._topics.pop(topic, None)

    # -- outboxes

    def is_stopped(self, query: QueryId) -> bool:
        with self._lock:
            return query in self._stopped

    def stop(self, query: QueryId, reason: str) -> None:
        """Publish nothing of an outbox whose next record its topic refuses, and fail the query."""
        with self._lock:
            self._stopped[query] = self._failures[query] = reason

    def fail(self, queries: Iterable[QueryId], reason: str) -> None:
        """Fail the queries that write to a topic which takes no records."""
        with self._lock:
            self._failures |= dict.fromkeys(queries, reason)

    def failures(self) -> dict[QueryId, str]:
        """The queries that are to fail."""
        with self._lock:
            return dict(self._failures)

    def failed(self, query: QueryId) -> None:
        """The query has failed now."""
        with self._lock:
            self._failures.pop(query, None)

    def forget(self, query: QueryId) -> None:
        with self._lock:
            self._stopped.pop(query, None)
            self._failures.pop(query, None)

    def retry(self, query: QueryId, topic: TopicName | None) -> None:
        """Try an outbox and its topic again now."""
        self.forget(query)
        with self._lock:
            if topic in self._topics:
                self._topics[topic] = Blocked(self.transaction_rows, -inf, None, 0)

    # -- both

    def reason(self, query: QueryId, topic: TopicName | None) -> str | None:
        """Why an outbox is not published, while that is so."""
        with self._lock:
            found = self._topics.get(topic) if topic is not None else None
            return self._stopped.get(query) or (found.reason if found is not None else None)

    def reasons(self) -> list[str]:
        with self._lock:
            topics = [blocked.reason for _, blocked in sorted(self._topics.items())]
            return [reason for reason in (*topics, *self._stopped.values()) if reason is not None]


def reason_of(error: HoldfastError) -> str:
    return " ".join(part for part in (f"{error.message}.", error.detail, error.hint) if part)
