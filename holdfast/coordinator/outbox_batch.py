"""Batches of pending rows: what one Kafka transaction publishes of some outboxes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from holdfast.errors import KafkaError, StoreError
from holdfast.kafka.lane import OutboxRows
from holdfast.kafka.markers import Marker
from holdfast.kafka.partitioner import partitions_for
from holdfast.kafka.port import RecordRefused, TopicAdmin, TopicProblem
from holdfast.kafka.records import Outgoing
from holdfast.names import QueryId, TopicName
from holdfast.runtime.program import Sink
from holdfast.runtime.serdes.window import unwindowed
from holdfast.runtime.store.port import PendingRows, SqlReader, Store, Time


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
        self._split: tuple[PendingRows, pa.Table] | None = None

    def next(self, takes: Callable[[TopicName], bool], *, rows: int) -> Batch:
        """The next rows for topics that it `takes`, at most `rows` of them; each outbox's in the order of time."""
        parts: list[OutboxRows] = []
        published: dict[QueryId, Time] = {}
        sinks, barriers = self._sinks(), self._barriers()
        for pending in self._store.pending():
            sink = sinks.get(pending.query)
            if sink is None or not takes(sink.topic) or pending.time > barriers.get(sink.topic, pending.time):
                continue
            first = self._published(pending)
            if first >= pending.rows:
                published[pending.query] = pending.time
            elif rows > 0:
                part = self._part(pending, sink, first, min(rows, pending.rows - first))
                rows -= part.outgoing.rows.num_rows
                parts.append(part)
            else:
                break
        return Batch(parts, published)

    def forget_partitions(self) -> None:
        """A topic may have been created again with another number of partitions."""
        self._partitions.clear()

    def _published(self, pending: PendingRows) -> int:
        """How many of the rows are published."""
        marker = self._markers.get(pending.query)
        if marker is None or marker.time < pending.time:
            return 0
        return marker.rows if marker.time == pending.time else pending.rows

    def _part(self, pending: PendingRows, sink: Sink, first: int, count: int) -> OutboxRows:
        complete = first + count == pending.rows
        rows = self._rows(pending, is_split=not complete).slice(first, count)
        try:
            records = self._with_partitions(sink, sink.encoder.encode(rows, self._store))
        except TopicProblem as problem:
            raise RecordRefused(
                problem.message, topic=sink.topic, lasting=problem.lasting, detail=problem.detail, hint=problem.hint
            ) from problem
        except (KafkaError, StoreError):
            raise
        except Exception as error:
            raise RecordRefused(
                f"rows of query {pending.query} cannot be encoded",
                topic=sink.topic,
                lasting=True,
                detail=f"{type(error).__name__}: {error}",
            ) from error
        return OutboxRows(pending.query, pending.time, first, complete, Outgoing(sink.topic, records))

    def _rows(self, pending: PendingRows, *, is_split: bool) -> pa.Table:
        """The rows of a tick; those of one that takes several transactions are read once."""
        split = self._split  # The other lane may replace it.
        if split is not None and split[0] == pending:
            rows = split[1]
        else:
            rows = self._store.pending_rows(pending.query, pending.time)
        self._split = (pending, rows) if is_split else None
        return rows

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
        keys = unwindowed(records.column("key"), window.type)
        return records.append_column("partition", partitions_for(keys, count))
