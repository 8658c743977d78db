"""Reading topics: following them (`TopicReader`), and ranges of offsets (`RangeReader`).

Both read committed records only. A position is the next offset to read; positions also move past the markers of
transactions and the records of aborted ones.
"""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka import KafkaError as Reported

from holdfast.config import Settings
from holdfast.errors import KafkaError, TopicChanged
from holdfast.kafka.changes import truncated
from holdfast.kafka.client_properties import kafka_client
from holdfast.kafka.librdkafka.admin import Admin
from holdfast.kafka.librdkafka.errors import HINTS, OUT_OF_REACH, client_log, reported, translate, translate_topic
from holdfast.kafka.librdkafka.messages import to_arrow
from holdfast.kafka.port import Fetched, TopicProblem, TopicSilent
from holdfast.kafka.records import NO_RECORDS, Partition
from holdfast.names import TopicName

FETCH_WAIT_MS = 20
"""How long a broker may hold an idle fetch. New records end it at once; it delays only seeks and end-of-partition
events. (Idle, a broker takes 7 % of a core with 20, 3 % with 50.)"""

METADATA_SECONDS = 30.0
CONSUMERS = 4
"""How many ranges one `RangeReader` reads at a time."""
CLOSE_SECONDS = 5.0

GONE = frozenset({Reported._AUTO_OFFSET_RESET, Reported.OFFSET_OUT_OF_RANGE, Reported._UNKNOWN_PARTITION})
PASSING = frozenset({Reported._ALL_BROKERS_DOWN, Reported._TRANSPORT, Reported._TIMED_OUT, Reported._RESOLVE})
"""Errors from which librdkafka recovers by itself; it logs them."""


class TopicReader:
    """Implements `port.Consumer`. For one thread."""

    def __init__(self, settings: Settings, admin: Admin) -> None:
        self._admin = admin
        self._consumer = new_consumer(settings, {"fetch.wait.max.ms": FETCH_WAIT_MS})
        self._positions: dict[Partition, int] = {}
        self._at_end: set[Partition] = set()
        self._problem: KafkaError | None = None

    @property
    def positions(self) -> Mapping[Partition, int]:
        """The next offset of each followed partition."""
        return dict(self._positions)

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Follow exactly these partitions from now on."""
        self.remove(self._positions.keys() - positions.keys())
        self.seek(positions)

    def seek(self, positions: Mapping[Partition, int]) -> None:
        """Continue these partitions at other positions; those not yet followed are added."""
        moving = {partition: at for partition, at in positions.items() if self._positions.get(partition) != at}
        if not moving:
            return
        # Without this, a new partition is noticed after minutes, and a new topic after a second.
        load_metadata(self._consumer, {topic for topic, _ in moving.keys() - self._positions.keys()})
        self.remove(moving.keys() & self._positions.keys())
        self._consumer.incremental_assign([TopicPartition(topic, part, at) for (topic, part), at in moving.items()])
        self._positions |= moving

    def remove(self, partitions: Iterable[Partition]) -> None:
        """Stop following these partitions."""
        leaving = [partition for partition in partitions if partition in self._positions]
        if leaving:
            self._consumer.incremental_unassign([TopicPartition(topic, part) for topic, part in leaving])
        for partition in leaving:
            del self._positions[partition]
            self._at_end.discard(partition)

    def poll(self, max_records: int, timeout: float) -> Fetched:
        """The next records: waits up to `timeout` seconds for the first one, and not for a second.

        May return earlier without records, when only positions moved.
        """
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem
        messages = self._consumer.consume(1, timeout)
        if not messages:
            return Fetched()
        if max_records > 1:
            messages += self._consumer.consume(min(max_records - 1, 1_000_000), 0)
        records = [message for message in messages if message.error() is None]
        moved: dict[Partition, int] = {}
        lost: dict[Partition, TopicChanged | TopicProblem] = {}
        # In order: an end-of-partition event may precede records that arrived after it.
        for message in messages:
            if message.error() is None:
                partition = partition_of(message)
                moved[partition] = (message.offset() or 0) + 1
                self._at_end.discard(partition)
            else:
                try:
                    self._take_event(message, moved, lost)
                except KafkaError as problem:
                    # The records of this poll must not be lost: the next poll raises it.
                    self._problem = problem
        self._positions |= {partition: at for partition, at in moved.items() if partition in self._positions}
        self.remove(lost)
        changed = {partition: error for partition, error in lost.items() if isinstance(error, TopicChanged)}
        refused = {partition: error for partition, error in lost.items() if isinstance(error, TopicProblem)}
        return Fetched(to_arrow(records), moved, changed, refused)

    def backlog(self) -> Mapping[Partition, int]:
        """An estimate of how many offsets each partition is behind, from the last fetches.

        Too low by at most what arrived since; too high while a transaction is open.
        """
        return {partition: self._behind(partition, at) for partition, at in self._positions.items()}

    def ends(self) -> Mapping[Partition, int]:
        """The last stable offset of each followed partition; those of topics with a problem are left out."""
        return self._admin.ends_each(self._positions, patience=0.0).found

    def close(self) -> None:
        self._consumer.close()

    def _behind(self, partition: Partition, at: int) -> int:
        if partition in self._at_end:
            return 0
        marks = self._consumer.get_watermark_offsets(TopicPartition(*partition), cached=True)
        return max(0, marks[1] - at) if marks else 0

    def _take_event(
        self, message: Message, moved: dict[Partition, int], lost: dict[Partition, TopicChanged | TopicProblem]
    ) -> None:
        error = message.error()
        if error is None or error.code() in PASSING:
            return
        partition = partition_of(message)
        if error.code() == Reported._PARTITION_EOF:
            moved[partition] = message.offset() or 0
            self._at_end.add(partition)
        elif error.code() in GONE:
            try:
                at = self._positions.get(partition, message.offset() or 0)
                lost[partition] = truncation(self._admin, partition, at)
            except TopicProblem as problem:
                lost[partition] = problem
        elif message.topic() is None:
            raise translate("Kafka cannot be read", error)
        else:
            refused = translate_topic(f'topic "{partition[0]}" cannot be read', partition[0], error)
            if not isinstance(refused, TopicProblem):
                raise refused
            lost[partition] = refused


class RangeConsumer:
    """Reads one range of offsets at a time."""

    def __init__(self, settings: Settings, admin: Admin) -> None:
        self._admin = admin
        self._consumer = new_consumer(settings, {"fetch.wait.max.ms": 5, "queued.max.messages.kbytes": 16_384})
        self._known: set[Partition] = set()

    def read(self, ranges: Mapping[Partition, tuple[int, int]], timeout: float) -> pa.Table:
        load_metadata(self._consumer, {topic for topic, _ in ranges.keys() - self._known}, timeout)
        self._known |= ranges.keys()
        self._consumer.assign([TopicPartition(*partition, start) for partition, (start, _) in ranges.items()])
        try:
            left = {partition: end for partition, (_, end) in ranges.items()}
            return to_arrow(self._read(ranges, left, timeout))
        finally:
            self._consumer.unassign()

    def close(self) -> None:
        self._consumer.close()

    def _read(
        self, ranges: Mapping[Partition, tuple[int, int]], left: dict[Partition, int], timeout: float
    ) -> Sequence[Message]:
        records: list[Message] = []
        received_at = time.monotonic()
        while left:
            messages = self._consumer.consume(1, 0.5)
            messages += self._consumer.consume(10_000, 0) if messages else []
            for message in messages:
                if self._take(message, ranges, left):
                    records.append(message)
            if messages:
                received_at = time.monotonic()
            elif time.monotonic() - received_at > timeout:
                detail = f"No record came within {timeout:.0f} s."
                raise TopicSilent(next(iter(left))[0], detail=detail, hint=HINTS[Reported._TIMED_OUT])
        return records

    def _take(self, message: Message, ranges: Mapping[Partition, tuple[int, int]], left: dict[Partition, int]) -> bool:
        """Whether the message belongs to its range; strikes the range off once it is read."""
        partition, offset, error = partition_of(message), message.offset() or 0, message.error()
        if partition not in left or (error is not None and error.code() in PASSING):
            return False
        end = left[partition]
        if error is None:
            if offset >= end - 1:
                del left[partition]
            return offset < end
        if error.code() in GONE:
            raise truncation(self._admin, partition, ranges[partition][0])
        if error.code() != Reported._PARTITION_EOF:
            raise translate_topic(f'topic "{partition[0]}" cannot be read', partition[0], error)
        if offset >= end:
            del left[partition]
        elif self._admin.written([partition])[partition] < end:
            raise truncation(self._admin, partition, end)
        # Otherwise the markers of a new commit are not written yet.
        return False


class RangeReader:
    """Implements `port.Ranges`. From any thread; as many reads at a time as it has consumers."""

    def __init__(self, settings: Settings, admin: Admin) -> None:
        self._settings, self._admin = settings, admin
        self._free = threading.BoundedSemaphore(CONSUMERS)
        """How many consumers are idle, or not created yet."""
        self._idle: list[RangeConsumer] = []

    def read(self, ranges: Mapping[Partition, tuple[int, int]], *, timeout: float = 60.0) -> pa.Table:
        """The committed records of each ``[start, end)``, each partition's in order.

        An end must be one that the partition has had; a range that is no longer complete is a `TopicChanged`.
        """
        wanted = {partition: range_ for partition, range_ in ranges.items() if range_[0] < range_[1]}
        if not wanted:
            return NO_RECORDS
        if not self._free.acquire(timeout=timeout):
            detail = f"All {CONSUMERS} consumers read other ranges for {timeout:.0f} s."
            raise TopicSilent(next(iter(wanted))[0], detail=detail)
        try:
            consumer = self._idle_consumer() or RangeConsumer(self._settings, self._admin)
            try:
                return consumer.read(wanted, timeout)
            finally:
                self._idle.append(consumer)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close the consumers; one that reads is waited for, but not long."""
        deadline = time.monotonic() + CLOSE_SECONDS
        for _ in range(CONSUMERS):
            is_free = self._free.acquire(timeout=max(0.0, deadline - time.monotonic()))
            if is_free and (consumer := self._idle_consumer()) is not None:
                consumer.close()

    def _idle_consumer(self) -> RangeConsumer | None:
        with suppress(IndexError):
            return self._idle.pop()
        return None


def new_consumer(settings: Settings, more: Mapping[str, str | int]) -> Consumer:
    """A consumer that is only ever assigned partitions: its group has no members and commits nothing."""
    return Consumer(
        {
            **kafka_client(settings),
            "group.id": f"holdfast-{settings.service_id}",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "allow.auto.create.topics": False,
            "fetch.error.backoff.ms": 20,
            # After a full queue librdkafka would not fetch anything, of any topic, for a second.
            "fetch.queue.backoff.ms": 10,
            "queued.max.messages.kbytes": 32_768,
            **more,
        },
        logger=client_log,
    )


def load_metadata(consumer: Consumer, topics: Iterable[TopicName], timeout: float = METADATA_SECONDS) -> None:
    for topic in topics:
        try:
            consumer.list_topics(topic, timeout=min(timeout, METADATA_SECONDS))
        except KafkaException as cause:
            error = translate(f'topic "{topic}" cannot be read', cause)
            if timeout < METADATA_SECONDS and reported(cause).code() in OUT_OF_REACH:
                raise TopicSilent(topic, detail=error.detail, hint=error.hint) from cause
            raise error from cause


def partition_of(message: Message) -> Partition:
    return TopicName(message.topic() or ""), message.partition() or 0


def truncation(admin: Admin, partition: Partition, at: int) -> TopicChanged:
    """The error of a partition that no longer has the offset `at`."""
    return truncated(partition, at, admin.starts([partition])[partition], admin.ends([partition])[partition])
