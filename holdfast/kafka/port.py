"""What the rest of Holdfast needs of Kafka: protocols and value types, no client.

`librdkafka.cluster.KafkaCluster` speaks to brokers; `memory.MemoryKafka` keeps its topics in the process. One suite of
tests runs on both.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from holdfast.errors import KafkaError, TopicChanged
from holdfast.kafka.records import NO_RECORDS, Outgoing, Partition
from holdfast.names import TopicName
from holdfast.runtime.store.port import EndOffset

HeaderList = list[tuple[str, str | bytes | None]]


class Fenced(KafkaError):
    """A newer producer has this transactional id: another server took over, and this one must stop writing."""

    sqlstate = "55006"


class TransactionAborted(KafkaError):
    """A transaction did not happen. Nothing of it will be read; it may be tried again, in vain if it is `lasting`."""

    sqlstate = "40000"

    def __init__(
        self, message: str, *, lasting: bool = False, detail: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.lasting = lasting


class RecordRefused(TransactionAborted):
    """A topic did not take a record, which aborted the transaction.

    `of_record` says that the record is the reason: the topic may take others. Otherwise it takes none, as an aborted
    transaction without a refused record may also mean.
    """

    def __init__(
        self,
        message: str,
        *,
        topic: TopicName,
        lasting: bool,
        of_record: bool = False,
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, lasting=lasting, detail=detail, hint=hint)
        self.topic, self.of_record = topic, of_record


class TopicProblem(KafkaError):
    """Kafka rejects what is asked of one topic. A `lasting` one stays until somebody changes the topic or its ACLs."""

    def __init__(
        self, message: str, *, topic: TopicName, lasting: bool, detail: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.topic, self.lasting = topic, lasting


class TopicSilent(TopicProblem):
    """Kafka sent nothing of a topic for as long as its reader waits."""

    def __init__(self, topic: TopicName, *, detail: str | None, hint: str | None = None) -> None:
        super().__init__(f'topic "{topic}" cannot be read', topic=topic, lasting=False, detail=detail, hint=hint)


@dataclass(frozen=True, slots=True)
class Topic:
    """An existing topic. Its id changes when it is deleted and created again under the same name."""

    name: TopicName
    id: str
    partitions: int
    replicas: tuple[int, ...] = ()
    """The number of replicas of each partition."""
    is_readable: bool = True
    """False when this user may describe it and not read it."""


@dataclass(frozen=True, slots=True)
class Described:
    """The topics that exist, and those of which Kafka does not say whether they do."""

    found: Mapping[TopicName, Topic]
    problems: Mapping[TopicName, TopicProblem]


@dataclass(frozen=True, slots=True)
class Offsets:
    """Offsets of partitions, and the topics of which Kafka does not give them."""

    found: Mapping[Partition, int]
    problems: Mapping[TopicName, TopicProblem]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """A topic to create. Replication of None is the default of the settings or the brokers."""

    name: TopicName
    partitions: int = 1
    replication: int | None = None
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a poll: records, the next offset of each partition, and partitions that are not followed any more.

    `changed` ones no longer have what was to be read next; `refused` ones Kafka does not let this user read now.
    """

    records: pa.Table = field(default_factory=lambda: NO_RECORDS)
    positions: Mapping[Partition, int] = field(default_factory=dict)
    changed: Mapping[Partition, TopicChanged] = field(default_factory=dict)
    refused: Mapping[Partition, TopicProblem] = field(default_factory=dict)

    @property
    def moved(self) -> tuple[EndOffset, ...]:
        return tuple(EndOffset(topic, partition, end) for (topic, partition), end in self.positions.items())


class TopicAdmin(Protocol):
    """Describes, creates and deletes topics. From any thread.

    A method that is asked about several topics raises the `TopicProblem` of any of them; `describe_each` and
    `ends_each` return it beside the others.
    """

    def topics(self) -> Sequence[TopicName]:
        """The names of all topics, in order."""

    def cluster_id(self) -> str:
        """The id of the Kafka cluster."""

    def describe(self, names: Iterable[TopicName]) -> Mapping[TopicName, Topic]:
        """The topics among `names` that exist."""

    def describe_each(self, names: Iterable[TopicName]) -> Described:
        """The topics among `names` that exist, each described by itself."""

    def config(self, name: TopicName) -> Mapping[str, str]:
        """The settings of a topic, including the brokers' defaults."""

    def readers(self) -> Mapping[TopicName, tuple[int, int]]:
        """The numbers of consumers and of consumer groups that read each topic now."""

    def changes(self, ids: Mapping[TopicName, str]) -> Mapping[TopicName, TopicChanged]:
        """The topics that were deleted, or recreated since they had these ids."""

    def exists(self, name: TopicName) -> bool: ...

    def create(self, *specs: TopicSpec) -> None:
        """Create missing topics; an existing one must have the same number of partitions. Visible on return."""

    def check(self, *specs: TopicSpec) -> None:
        """Raise the error that `create` would raise, without creating anything."""

    def delete(self, *names: TopicName) -> None:
        """Delete topics; a missing one is no error."""

    def starts(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """The first offset that each partition still has."""

    def ends(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """Each partition's last stable offset: every record before it is committed or aborted."""

    def ends_each(self, partitions: Iterable[Partition]) -> Offsets:
        """The same for each topic by itself."""

    def written(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """Each partition's end, including uncommitted records."""

    def offsets_at(self, partitions: Iterable[Partition], timestamp: int) -> Mapping[Partition, int]:
        """Each partition's first offset with this timestamp or a later one; a partition without one is left out."""


class Consumer(Protocol):
    """Follows partitions and reads committed records. For one thread. Commits no offsets to Kafka."""

    @property
    def positions(self) -> Mapping[Partition, int]:
        """The next offset of each followed partition."""

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Follow exactly these partitions from now on."""

    def seek(self, positions: Mapping[Partition, int]) -> None:
        """Continue these partitions at other positions; those not yet followed are added."""

    def remove(self, partitions: Iterable[Partition]) -> None:
        """Stop following these partitions."""

    def poll(self, max_records: int, timeout: float) -> Fetched:
        """The next records: waits up to `timeout` seconds for the first one, and not for a second.

        May return earlier without records, when only positions moved.
        """

    def backlog(self) -> Mapping[Partition, int]:
        """An estimate of how many offsets each partition is behind, without a request to the brokers."""

    def ends(self) -> Mapping[Partition, int]:
        """The last stable offset of each followed partition; those of topics with a problem are left out."""

    def close(self) -> None: ...


class Ranges(Protocol):
    """Reads ranges of offsets. From any thread."""

    def read(self, ranges: Mapping[Partition, tuple[int, int]], *, timeout: float = 60.0) -> pa.Table:
        """The committed records of each ``[start, end)``, each partition's in order.

        An end must be one that the partition has had; a range that is no longer complete is a `TopicChanged`. A
        `TopicProblem` says that Kafka does not let it be read; `TopicSilent`, that nothing came for `timeout` seconds.
        """


class Producer(Protocol):
    """A transactional producer. For one thread; a new one with the same id fences this one."""

    id: str

    def start(self) -> None:
        """Fence older producers of this id and complete or abort their unfinished transaction."""

    def begin(self) -> None:
        """Begin a transaction; after a failure, `recover` first."""

    def produce(
        self,
        topic: TopicName,
        value: bytes | None,
        key: bytes | None,
        *,
        timestamp: int = 0,
        partition: int = -1,
        headers: HeaderList | None = None,
    ) -> None:
        """Queue a record. Partition -1 is chosen by key, timestamp 0 is now."""

    def commit(self) -> Mapping[Partition, int]:
        """Commit; returns where the transaction's records end in each partition.

        `TransactionAborted`: nothing of it was or will be committed; `RecordRefused` also names the topic. After any
        other error the outcome is unknown until `recover`.
        """

    def recover(self) -> None:
        """Continue after a failure: no transaction is open then, and one in doubt is committed or never will be.

        Raises while Kafka cannot be reached, and `Fenced` when another server has taken over.
        """

    def close(self) -> None:
        """Drop queued records. The next producer of this id aborts an unfinished transaction."""


class Writer(Protocol):
    """Writes rows that users insert, outside of transactions. From any thread."""

    @property
    def problem(self) -> str | None:
        """Why rows cannot be written, whatever their topic, while that is so."""

    def write(self, outgoing: Outgoing) -> None:
        """Write rows to their topic; durable on return."""

    def close(self) -> None: ...


class Lease(Protocol):
    """The right of one server to run a service id."""

    @property
    def problem(self) -> str | None:
        """Why the lease could not be renewed, while that is so."""

    def acquire(self, owner: str) -> None:
        """Take the lease for `owner` (the store's id) and keep renewing it; `ServiceTaken` names another holder."""

    def confirm(self) -> None:
        """Renew the lease now; `Fenced` when another server has had it since."""

    def release(self) -> None:
        """Give the lease up, so that another server may start at once. A second call does nothing."""


class Kafka(Protocol):
    """A Kafka cluster, as one server uses it."""

    @property
    def topics(self) -> TopicAdmin: ...

    @property
    def ranges(self) -> Ranges:
        """For the coordinator."""

    @property
    def push_ranges(self) -> Ranges:
        """For push queries. Never waits for reads of others."""

    @property
    def internal_ranges(self) -> Ranges:
        """For the service's own topics: commands, markers and the lease. Never waits for reads of others."""

    @property
    def spark_options(self) -> Mapping[str, str]:
        """Options of Spark's own Kafka reader."""

    def consumer(self) -> Consumer: ...

    def producer(self, transactional_id: str, *, confirm: Callable[[], None], linger_ms: int = 5) -> Producer:
        """`confirm` raises unless this server still holds its lease: only then may a producer take its id again."""

    def writer(self) -> Writer: ...

    def lease(self, *, on_lost: Callable[[], None]) -> Lease: ...

    def close(self) -> None: ...
