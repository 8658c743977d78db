"""Outboxes of queries that were dropped or terminated: their last rows are published, then the outbox goes."""

import logging

from holdfast.coordinator.publishing import Publishing
from holdfast.coordinator.sink_records import SinkRecords
from holdfast.names import QueryId, TopicName
from holdfast.runtime.store.port import Store
from holdfast.wall_clock import WallClock

log = logging.getLogger(__name__)

WAIT_SECONDS = 2.0
"""How long a statement waits for the rows to be published."""
POLL_SECONDS = 0.01


class Drains:
    """On the coordinator's thread."""

    def __init__(self, store: Store, sink_records: SinkRecords, publishing: Publishing, clock: WallClock) -> None:
        self._store, self._sink_records, self._publishing, self._clock = store, sink_records, publishing, clock
        self._queries: set[QueryId] = set()

    def add(self, query: QueryId) -> None:
        """Publish the pending rows of a query that is gone, then forget it."""
        self._queries.add(query)
        self._publishing.retry(query)
        self.finish()

    def finish(self) -> None:
        """Forget the queries without pending rows."""
        for query in [query for query in self._queries if not self.pending(query)]:
            self._forget(query)

    def fail(self, query: QueryId, reason: str) -> bool:
        """Give up the rows of a query whose topic refuses them; False when it does not drain."""
        if query not in self._queries:
            return False
        log.error("rows of a dropped query are lost: query=%s rows=%d reason=%s", query, self.pending(query), reason)
        self._forget(query)
        return True

    def discard(self, topics: set[TopicName]) -> None:
        """Forget the rows for topics that are about to be deleted."""
        for query in list(self._queries):
            sink = self._sink_records.get(query)
            if sink is None or sink.topic in topics:
                self._forget(query)

    def wait(self) -> str | None:
        """Wait a little for all rows to be published; returns what could not be, if anything."""
        if not self._queries:
            return None
        deadline = self._clock.monotonic() + WAIT_SECONDS
        self._publishing.flush()
        self.finish()
        while self._queries and self._clock.monotonic() < deadline and not self._are_blocked():
            self._clock.sleep(POLL_SECONDS)
            self.finish()
        return " ".join(map(self._left, sorted(self._queries))) or None

    def pending(self, query: QueryId) -> int:
        return sum(each.rows for each in self._store.pending([query]))

    def _are_blocked(self) -> bool:
        return all(self._publishing.blocked(query) for query in self._queries)

    def _left(self, query: QueryId) -> str:
        sink, reason = self._sink_records.get(query), self._publishing.blocked(query)
        topic = "its topic" if sink is None else f'topic "{sink.topic}"'
        return f"{self.pending(query)} rows are still to be published to {topic}{f' ({reason})' if reason else ''}."

    def _forget(self, query: QueryId) -> None:
        sink = self._sink_records.get(query)
        self._queries.discard(query)
        self._store.drop_outbox(query)
        self._store.forget_query(query)
        self._sink_records.forget(query)
        self._publishing.forget(query, None if sink is None else sink.topic)
