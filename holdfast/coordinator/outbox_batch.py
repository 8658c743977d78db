"""Batches of pending rows: what one Kafka transaction publishes of some outboxes."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from holdfast.errors import KafkaError, ReadError, StoreError
from holdfast.kafka.lane import OutboxRows
from holdfast.kafka.markers import Marker
from holdfast.kafka.partitioner import partitions_for
from holdfast.kafka.port import RecordRefused, TopicAdmin, TopicProblem
from holdfast.kafka.records import Outgoing
from holdfast.names import QueryId, TopicName
from holdfast.runtime.program import Sink
from holdfast.runtime.serdes.window import unwindowed
from holdfast.runtime.store.port import PendingRows, SqlReader, Store, Time

BATCH_BYTES = 32_000_000
"""About how many bytes of rows one transaction takes: they are encoded at once."""
NO_ROWS = pa.table({name: pa.nulls(0, pa.binary()) for name in ("key", "value", "timestamp")})

Takes = Callable[[QueryId, TopicName], bool]
"""Chooses outboxes, by query and sink topic."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows to publish, and up to which times outboxes are published already. Empty when there is neither."""

    parts: Sequence[OutboxRows]
    published: Mapping[QueryId, Time]

    @property
    def count(self) -> int:
        return sum(part.outgoing.rows.num_rows for part in self.parts)

    def __bool__(self) -> bool:
        return bool(self.parts or self.published)


class OutboxStore(Store, SqlReader, Protocol):
    """What publishing needs of a store."""


class OutboxReader:
    """Reads pending rows as records. Both lanes read with it, each for its own topics."""

    def __init__(
        self,
        store: OutboxStore,
        admin: TopicAdmin,
        sinks: Callable[[], Mapping[QueryId, Sink]],
        barriers: Callable[[], Mapping[TopicName, Time]],
        markers: Mapping[QueryId, Marker],
    ) -> None:
        """`markers` says of each outbox how far it is published; `barriers` up to which time a topic may be."""
        self._store, self._admin, self._sinks, self._barriers, self._markers = store, admin, sinks, barriers, markers
        self._partitions: dict[TopicName, int] = {}
        self._split: tuple[PendingRows, Sink, pa.Table] | None = None

    def next(self, takes: Takes, *, rows: int) -> Batch:
        """The next rows of outboxes that it `takes`, at most `rows` of them; each outbox's in the order of time.

        They are about `BATCH_BYTES` at most, unless a single row is more. `published` has all that is published, also
        what comes after those rows.
        """
        parts: list[OutboxRows] = []
        published: dict[QueryId, Time] = {}
        left = float(BATCH_BYTES)
        for pending, sink in self._eligible(takes):
            first = self._published(pending)
            if first >= pending.rows:
                published[pending.query] = pending.time
                continue
            if rows <= 0 or left <= 0:
                continue
            tick = self._rows(pending, sink)
            row_bytes = max(tick.nbytes / max(tick.num_rows, 1), 1.0)
            count = min(pending.rows - first, rows, max(int(left / row_bytes), 0 if parts else 1))
            complete = first + count == pending.rows
            self._split = None if complete else (pending, sink, tick)
            if count > 0:
                outgoing = Outgoing(sink.topic, self._records(pending.query, sink, tick.slice(first, count)))
                parts.append(OutboxRows(pending.query, pending.time, first, complete, outgoing))
                rows, left = rows - count, left - count * row_bytes
            if not complete:
                rows = 0
        return Batch(parts, published)

    def published(self, topics: Set[TopicName]) -> Mapping[QueryId, Time]:
        """Up to which times the outboxes of some topics are published, as far as their rows are still pending."""
        eligible = self._eligible(lambda _query, topic: topic in topics)
        return {pending.query: pending.time for pending, _ in eligible if self._published(pending) >= pending.rows}

    def oldest(self, takes: Takes) -> QueryId | None:
        """The query with the oldest pending rows, of outboxes that it `takes`."""
        return next((pending.query for pending, _ in self._eligible(takes)), None)

    def first_row(self, query: QueryId) -> OutboxRows | None:
        """The next row of an outbox, to be skipped: it is not encoded."""
        for pending, sink in self._eligible(lambda each, _topic: each == query):
            first = self._published(pending)
            if first < pending.rows:
                nothing = Outgoing(sink.topic, NO_ROWS)
                return OutboxRows(query, pending.time, first, first + 1 == pending.rows, nothing, skipped=1)
        return None

    def forget_partitions(self) -> None:
        """A topic may have been created again with another number of partitions."""
        self._partitions.clear()

    def _eligible(self, takes: Takes) -> Iterator[tuple[PendingRows, Sink]]:
        """What is pending and may be published now, oldest first."""
        # A barrier is there before the ticks that it holds back: in this order, none of them is seen without it.
        found = self._store.pending()
        sinks, barriers = self._sinks(), self._barriers()
        for pending in found:
            sink = sinks.get(pending.query)
            if sink is None or pending.time > barriers.get(sink.topic, pending.time):
                continue
            if takes(pending.query, sink.topic):
                yield pending, sink

    def _published(self, pending: PendingRows) -> int:
        """How many of the rows are published."""
        marker = self._markers.get(pending.query)
        if marker is None or marker.time < pending.time:
            return 0
        return marker.rows if marker.time == pending.time else pending.rows

    def _records(self, query: QueryId, sink: Sink, rows: pa.Table) -> pa.Table:
        try:
            return self._with_partitions(sink, sink.encoder.encode(rows, self._store))
        except TopicProblem as problem:
            raise RecordRefused(
                problem.message, topic=sink.topic, lasting=problem.lasting, detail=problem.detail, hint=problem.hint
            ) from problem
        except (KafkaError, StoreError):
            raise
        except Exception as error:
            raise RecordRefused(
                f"rows of query {query} cannot be encoded",
                topic=sink.topic,
                lasting=True,
                of_record=not _is_of_all_rows(error),
                detail=f"{type(error).__name__}: {error}",
            ) from error

    def _rows(self, pending: PendingRows, sink: Sink) -> pa.Table:
        """The rows of a tick; those of one that takes several transactions are read once.

        A query that is replaced has another sink, and its pending rows may have more columns.
        """
        split = self._split  # The other lane may replace it.
        if split is not None and split[0] == pending and split[1] is sink:
            return split[2]
        return self._store.pending_rows(pending.query, pending.time)

    def _with_partitions(self, sink: Sink, records: pa.Table) -> pa.Table:
        """Records of a windowed topic with the partition of their inner key, as Kafka Streams chooses it."""
        window = sink.encoder.window
        if window is None:
            return records
        if sink.topic not in self._partitions:
            self._partitions |= {t.name: t.partitions for t in self._admin.describe([sink.topic]).values()}
        count = self._partitions.get(sink.topic)
        if count is None:  # The topic is missing; the producer reports that.
            return records
        keys = unwindowed(records.column("key"), window.type, sink.encoder.window_topic)
        return records.append_column("partition", partitions_for(keys, count))


def _is_of_all_rows(error: Exception) -> bool:
    """Whether no row can be encoded, whatever it contains: the statement does not fit the columns."""
    return isinstance(error, ReadError) and (error.detail or "").startswith("Binder Error")
