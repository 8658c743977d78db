"""The topics of an in-memory Kafka: partitions, offsets and transactions, as brokers have them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from threading import Condition
from uuid import uuid4

from holdfast.errors import KafkaError
from holdfast.kafka.partitioner import partition_for
from holdfast.kafka.port import HeaderList, RecordRefused, Topic, TopicProblem, TopicSpec
from holdfast.kafka.records import Partition
from holdfast.names import TopicName
from holdfast.wall_clock import WallClock

Partitioner = Callable[[bytes | None, int], int]
"""Chooses the partition of a key from a number of partitions."""


MAX_MESSAGE_BYTES = 1_048_588
"""The limit of a topic that sets none, as brokers have it."""


@dataclass(slots=True, eq=False)
class Transaction:
    """Records that become visible together, or never."""

    partitions: set[Partition] = field(default_factory=set)
    is_committed: bool = False


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A record, or the marker that ends a transaction. `sequence` is its order among the entries of all partitions."""

    topic: TopicName
    partition: int
    offset: int
    sequence: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: HeaderList = field(default_factory=list)
    transaction: Transaction | None = None
    is_marker: bool = False

    @property
    def is_visible(self) -> bool:
        """Whether a reader of committed records gets it."""
        return not self.is_marker and (self.transaction is None or self.transaction.is_committed)


@dataclass(slots=True)
class PartitionLog:
    """The entries of one partition; those before `start` are deleted."""

    entries: list[LogEntry] = field(default_factory=list)
    start: int = 0
    unstable: dict[Transaction, int] = field(default_factory=dict)
    """The first offset of each open transaction."""

    @property
    def end(self) -> int:
        return len(self.entries)

    @property
    def stable_end(self) -> int:
        """The offset of the first record of an open transaction, or else the end."""
        return min(self.unstable.values(), default=self.end)

    def committed(self, start: int, end: int) -> Iterator[LogEntry]:
        return (self.entries[offset] for offset in range(start, end) if self.entries[offset].is_visible)


@dataclass(slots=True)
class TopicLog:
    """A topic and its partitions."""

    topic: Topic
    config: Mapping[str, str]
    partitions: list[PartitionLog]


def murmur2_partitioner(key: bytes | None, partitions: int) -> int:
    """As Java's producers do; a record without a key goes to the first partition."""
    return 0 if key is None else partition_for(key, partitions)


class MemoryBroker:
    """Keeps topics for as long as the object lives, whichever servers come and go. From any thread."""

    def __init__(
        self, clock: WallClock | None = None, partitioner: Partitioner = murmur2_partitioner, *, replicas: int = 1
    ) -> None:
        """`replicas` is the greatest replication factor that a topic may ask for."""
        self.replicas = replicas
        self.id = uuid4().hex
        self.changed = Condition()
        """Notified of every change; its lock protects all that is below."""
        self.topics: dict[TopicName, TopicLog] = {}
        self.open_transactions: dict[str, Transaction] = {}
        self.epochs: dict[str, int] = {}
        self.leases: dict[str, str] = {}
        self.refusals: dict[TopicName, RecordRefused] = {}
        """Topics that take no record, each with the error."""
        self.problems: dict[TopicName, TopicProblem] = {}
        """Topics that cannot be described or read, each with the error."""
        self.unreadable: dict[TopicName, TopicProblem] = {}
        """Topics that can be described and not read, each with the error."""
        self.is_away = False
        self._clock, self._partitioner = clock or WallClock(), partitioner
        self._sequence = count()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Answer no client during the block."""
        self.is_away = True
        try:
            yield
        finally:
            with self.changed:
                self.is_away = False
                self.changed.notify_all()

    @contextmanager
    def request(self) -> Iterator[None]:
        """Answer a client, with the lock held; raises while the broker is suspended."""
        with self.changed:
            if self.is_away:
                raise KafkaError(
                    "Kafka cannot be reached", detail="It is suspended.", hint="Check that Kafka runs at its address."
                )
            yield

    # -- topics --------------------------------------------------------------------------------------

    def create(self, spec: TopicSpec) -> None:
        with self.changed:
            replicas = (spec.replication or 1,) * spec.partitions
            topic = Topic(spec.name, uuid4().hex, spec.partitions, replicas)
            self.topics[spec.name] = TopicLog(topic, dict(spec.config), [PartitionLog() for _ in replicas])
            self.changed.notify_all()

    def delete(self, topic: TopicName) -> None:
        with self.changed:
            self.topics.pop(topic, None)
            self.changed.notify_all()

    def add_partitions(self, topic: TopicName, partitions: int) -> None:
        with self.changed:
            log = self.topics[topic]
            log.partitions += [PartitionLog() for _ in range(partitions - len(log.partitions))]
            log.topic = Topic(topic, log.topic.id, partitions, (1,) * partitions)
            self.changed.notify_all()

    def delete_records(self, partition: Partition, before: int) -> None:
        """Forget the records of a partition before an offset."""
        with self.changed:
            log = self.log(partition)
            log.start = max(log.start, min(before, log.end))
            self.changed.notify_all()

    def log(self, partition: Partition) -> PartitionLog:
        """The log of a partition; raises for one that does not exist."""
        found = self.find_log(partition)
        if found is None:
            raise unknown_topic(partition[0])
        return found

    def find_log(self, partition: Partition) -> PartitionLog | None:
        topic = self.topics.get(partition[0])
        return topic.partitions[partition[1]] if topic and partition[1] < len(topic.partitions) else None

    # -- records -------------------------------------------------------------------------------------

    def append(
        self,
        topic: TopicName,
        value: bytes | None,
        key: bytes | None = None,
        *,
        timestamp: int = 0,
        partition: int = -1,
        headers: HeaderList | None = None,
        transaction: Transaction | None = None,
    ) -> LogEntry:
        """Write a record. Partition -1 is chosen by key, timestamp 0 is now."""
        with self.changed:
            found = self.topics.get(topic)
            if found is None:
                raise unknown_topic(topic)
            if (refusal := self.refusals.get(topic) or _too_large(found, value, key)) is not None:
                raise refusal
            number = partition if partition >= 0 else self._partitioner(key, len(found.partitions))
            stamped = found.config.get("message.timestamp.type") == "LogAppendTime"
            entry = LogEntry(
                topic=topic,
                partition=number,
                offset=self.log((topic, number)).end,
                sequence=next(self._sequence),
                timestamp=self._clock.now_ms() if stamped or timestamp == 0 else timestamp,
                key=key,
                value=value,
                headers=list(headers or ()),
                transaction=transaction,
            )
            found.partitions[number].entries.append(entry)
            if transaction is not None:
                transaction.partitions.add((topic, number))
                found.partitions[number].unstable.setdefault(transaction, entry.offset)
            self.changed.notify_all()
            return entry

    def records(self, topic: TopicName) -> Sequence[LogEntry]:
        """The committed records of a topic, in the order in which they were written."""
        with self.changed:
            found = self.topics.get(topic)
            logs = found.partitions if found is not None else []
            return sorted((e for log in logs for e in log.committed(log.start, log.end)), key=lambda e: e.sequence)

    def end_transaction(self, id: str, transaction: Transaction, *, commit: bool) -> None:
        """Commit or abort: each partition gets a marker, which takes an offset."""
        with self.changed:
            transaction.is_committed = commit
            self.open_transactions.pop(id, None)
            for partition in sorted(transaction.partitions):
                self._append_marker(partition, transaction)
            self.changed.notify_all()

    def _append_marker(self, partition: Partition, transaction: Transaction) -> None:
        log = self.find_log(partition)
        if log is not None and log.unstable.pop(transaction, None) is not None:
            now, sequence = self._clock.now_ms(), next(self._sequence)
            log.entries.append(LogEntry(*partition, log.end, sequence, now, is_marker=True))


def _too_large(found: TopicLog, value: bytes | None, key: bytes | None) -> RecordRefused | None:
    most = int(found.config.get("max.message.bytes", MAX_MESSAGE_BYTES))
    if len(value or b"") + len(key or b"") <= most:
        return None
    return RecordRefused(
        f'topic "{found.topic.name}" refused a record',
        topic=found.topic.name,
        lasting=True,
        of_record=True,
        detail=f"The record is larger than {most} bytes.",
        hint="Raise max.message.bytes of the topic.",
    )


def unknown_topic(topic: TopicName) -> RecordRefused:
    return RecordRefused(
        f'topic "{topic}" cannot be found',
        topic=topic,
        lasting=True,
        detail="Kafka has no such topic or partition.",
        hint="Create the topic first, or check its name.",
    )


def existing(broker: MemoryBroker, names: Iterable[TopicName]) -> dict[TopicName, TopicLog]:
    return {name: broker.topics[name] for name in dict.fromkeys(names) if name in broker.topics}
