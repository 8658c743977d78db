"""A lane: one transactional producer that publishes outboxes, each row exactly once, whenever the process dies.

Every transaction also writes a marker for each of its outboxes. After a start or a failure, the markers say which rows
are published.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from holdfast.config import Settings
from holdfast.crash import crash_point
from holdfast.kafka.markers import Marker, MarkerTopic
from holdfast.kafka.port import Kafka
from holdfast.kafka.records import Outgoing, Partition
from holdfast.names import QueryId, StoreId
from holdfast.runtime.store.port import Time


@dataclass(frozen=True, slots=True)
class OutboxRows:
    """Rows of one tick in an outbox, as records: those from number `first` on, up to the tick's last if `complete`."""

    query: QueryId
    time: Time
    first: int
    complete: bool
    outgoing: Outgoing
    skipped: int = 0
    """Rows that the marker covers in addition: they are not published."""

    def marker(self, store: StoreId) -> Marker:
        return Marker(self.time, self.first + self.outgoing.rows.num_rows + self.skipped, store)


class Lane:
    """Publishes batches of rows, one transaction each. For one thread at a time."""

    def __init__(
        self, settings: Settings, kafka: Kafka, markers: MarkerTopic, number: int, confirm: Callable[[], None]
    ) -> None:
        """`confirm` raises unless this server still holds its lease."""
        self._markers, self._number = markers, number
        name = f"holdfast-{settings.service_id}-publisher-{number}"
        self._producer = kafka.producer(name, confirm=confirm, linger_ms=2)

    def start(self) -> None:
        """Fence the server before this one; its open transaction is aborted or complete then."""
        self._producer.start()

    def publish(self, store: StoreId, batch: Sequence[OutboxRows]) -> Mapping[Partition, int]:
        """Publish rows, each outbox's in order, with their markers; returns where the sink topics end.

        After an error, `recover` before anything else.
        """
        self._producer.begin()
        for part in batch:
            self._produce(part.outgoing)
        last = {part.query: part.marker(store) for part in batch}
        for query, marker in last.items():
            self._producer.produce(self._markers.name, marker.encode(), query.encode(), partition=self._number)
        crash_point("before_transaction_commit")
        ends = self._producer.commit()
        crash_point("after_transaction_commit")
        return {partition: end for partition, end in ends.items() if partition[0] != self._markers.name}

    def recover(self, store: StoreId) -> Mapping[QueryId, Marker]:
        """After an error: end the transaction, and read how far publishing by this lane really came."""
        self._producer.recover()
        return self._markers.read(store, lane=self._number)

    def close(self) -> None:
        self._producer.close()

    def _produce(self, outgoing: Outgoing) -> None:
        crash_point("before_produce")
        topic, rows, produce = outgoing.topic, outgoing.rows, self._producer.produce
        columns = (rows.column(name).to_pylist() for name in ("value", "key", "timestamp"))
        if {"partition", "headers"} & set(rows.column_names):
            for value, key, timestamp, partition, headers in zip(
                *columns, _optional(rows, "partition"), _optional(rows, "headers"), strict=True
            ):
                produce(
                    topic,
                    value,
                    key,
                    timestamp=timestamp or 0,
                    partition=-1 if partition is None else partition,
                    headers=[(header["key"], header["value"]) for header in headers or ()],
                )
        else:
            for value, key, timestamp in zip(*columns, strict=True):
                produce(topic, value, key, timestamp=timestamp or 0)
        crash_point("after_produce")


def _optional(rows: pa.Table, name: str) -> list[Any]:
    return rows.column(name).to_pylist() if name in rows.column_names else [None] * rows.num_rows
