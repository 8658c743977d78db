"""Publishing what is owed to sink topics: each output exactly once, whenever the process dies.

Every transaction also writes a marker, which says how much of which tick is published with it. A restart first
fences the process that died, then reads the last marker, then goes on behind it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from holdfast.config import Settings
from holdfast.crash import crash_point
from holdfast.errors import KafkaError
from holdfast.kafka.admin import Admin, TopicSpec
from holdfast.kafka.consumer import RangeReader
from holdfast.kafka.records import Partition
from holdfast.kafka.transactions import TransactionalProducer
from holdfast.names import StoreId, TopicName
from holdfast.runtime.store.port import Time


@dataclass(frozen=True, slots=True)
class Marker:
    """How far a store's outbox is published: all before `time`, and of `time` the first `rows` rows, in `chunk` parts.

    Rows are counted, not only chunks, so that another chunk size after a restart changes nothing.
    """

    store: StoreId
    time: Time
    rows: int
    chunk: int
    complete: bool

    def encode(self) -> bytes:
        fields = {"store": self.store, "time": self.time, "rows": self.rows, "chunk": self.chunk}
        return json.dumps({**fields, "complete": self.complete}).encode()

    @staticmethod
    def decode(value: bytes) -> "Marker":
        try:
            said = json.loads(value)
            return Marker(
                StoreId(said["store"]),
                Time(said["time"]),
                int(said["rows"]),
                int(said["chunk"]),
                bool(said["complete"]),
            )
        except (ValueError, KeyError, TypeError) as cause:
            raise KafkaError(
                "the marker of what was published cannot be read",
                detail=f"It is {value[:200]!r}.",
                hint="Something else writes to the service's internal topics; choose another service_id.",
            ) from cause


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Rows for a topic, in their order: `key`, `value` (BINARY; a null value is a tombstone), `timestamp` (INT64 ms).

    A column `partition` (INT32), if there is one, chooses the partition where it is not null; `headers` are as in
    records that were read.
    """

    topic: TopicName
    rows: pa.Table


class TransactionalPublisher:
    """Publishes ticks, one transaction each, or several for a large one. For one thread."""

    def __init__(
        self, settings: Settings, admin: Admin, reader: RangeReader, transactional_id: str | None = None
    ) -> None:
        self._admin = admin
        self._reader = reader
        self._marker_topic = settings.marker_topic
        self._chunk_rows = settings.transaction_rows
        self._producer = TransactionalProducer(
            settings, transactional_id or f"holdfast-{settings.service_id}-publisher", linger_ms=2
        )

    def start(self) -> Marker | None:
        """Fence the server that was here before, and say how far it came."""
        self._admin.create(TopicSpec(name=self._marker_topic, config={"cleanup.policy": "compact"}))
        self._producer.start()
        return self.last_marker()

    def publish(
        self, store: StoreId, time: Time, outgoing: Sequence[Outgoing], *, published: Marker | None = None
    ) -> Mapping[Partition, int]:
        """Publish a tick. After a restart give the last marker: what it covers is left out.

        `outgoing` must be the same, in the same order, whenever it is given again for a time. On `TransactionAborted`
        `last_marker` says where to go on. Gives where the records end in each partition that got some.
        """
        rows = chunk = 0
        ends: dict[Partition, int] = {}
        if published is not None:
            if published.time > time or (published.time == time and published.complete):
                return ends
            if published.time == time:
                rows, chunk = published.rows, published.chunk
        total = sum(part.rows.num_rows for part in outgoing)
        for batch in chunks(outgoing, after=rows, size=self._chunk_rows):
            rows += sum(part.rows.num_rows for part in batch)
            chunk += 1
            self.begin()
            for part in batch:
                self.produce(part)
            ends |= self.commit(Marker(store, time, rows, chunk, complete=rows == total))
        return ends

    def begin(self) -> None:
        self._producer.begin()

    def produce(self, outgoing: Outgoing) -> None:
        """Queue rows in the transaction that was begun."""
        crash_point("before_produce")
        topic, rows, produce = outgoing.topic, outgoing.rows, self._producer.produce
        columns = (rows.column(name).to_pylist() for name in ("value", "key", "timestamp"))
        if rows.column_names.count("partition") or rows.column_names.count("headers"):
            for value, key, timestamp, partition, headers in zip(
                *columns, optional(rows, "partition"), optional(rows, "headers"), strict=True
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

    def commit(self, marker: Marker) -> Mapping[Partition, int]:
        """Write the marker into the transaction and commit both."""
        self._producer.produce(self._marker_topic, marker.encode(), self._producer.id.encode(), partition=0)
        crash_point("before_transaction_commit")
        ends = self._producer.commit()
        crash_point("after_transaction_commit")
        return {partition: end for partition, end in ends.items() if partition[0] != self._marker_topic}

    def abort(self) -> None:
        self._producer.abort()

    def last_marker(self) -> Marker | None:
        """The last marker that was committed. Exact once `start` has fenced whoever else could write one."""
        partition = (self._marker_topic, 0)
        start, end = self._admin.starts([partition])[partition], self._admin.ends([partition])[partition]
        own, upper, span = self._producer.id.encode(), end, 256
        while upper > start:
            lower = max(start, upper - span)
            found = self._reader.read({partition: (lower, upper)})
            for key, value in zip(
                reversed(found["key"].to_pylist()), reversed(found["value"].to_pylist()), strict=True
            ):
                if key == own and value is not None:
                    return Marker.decode(value)
            upper, span = lower, span * 4
        return None

    def close(self) -> None:
        self._producer.close()


def optional(rows: pa.Table, name: str) -> list[Any]:
    return rows.column(name).to_pylist() if name in rows.column_names else [None] * rows.num_rows


def chunks(outgoing: Sequence[Outgoing], *, after: int, size: int) -> Iterator[list[Outgoing]]:
    """The rows behind the first `after`, in lists of at most `size` rows; no rows at all are one empty list."""
    batch: list[Outgoing] = []
    room, skip, any_given = size, after, False
    for part in outgoing:
        at = min(skip, part.rows.num_rows)
        skip -= at
        while at < part.rows.num_rows:
            taken = min(room, part.rows.num_rows - at)
            batch.append(Outgoing(part.topic, part.rows.slice(at, taken)))
            at, room = at + taken, room - taken
            if room == 0:
                yield batch
                batch, room, any_given = [], size, True
    if batch or not any_given:
        yield batch
