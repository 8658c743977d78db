"""A lane over the outboxes: publishes batches, and marks in the store what is published."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from types import TracebackType

from holdfast import metrics
from holdfast.coordinator.blocked_topics import BlockedTopics
from holdfast.coordinator.outbox_batch import Batch, OutboxReader, OutboxStore
from holdfast.kafka.lane import Lane
from holdfast.kafka.markers import Marker
from holdfast.kafka.port import Topic, TopicAdmin, TopicProblem, TransactionAborted
from holdfast.kafka.records import Partition
from holdfast.names import QueryId, TopicName
from holdfast.runtime.program import Sink
from holdfast.runtime.store.port import EndOffset, Time


class Turn:
    """A lock that the thread that releases it gets again only after the one that waits for it."""

    def __init__(self) -> None:
        self._next, self._lock = Lock(), Lock()

    def __enter__(self) -> None:
        with self._next:
            self._lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._lock.release()

    @contextmanager
    def within(self, seconds: float) -> Iterator[bool]:
        """Wait for the turn up to `seconds`; False without it."""
        acquired = False
        if self._next.acquire(timeout=seconds):
            try:
                acquired = self._lock.acquire(timeout=seconds)
            finally:
                self._next.release()
        try:
            yield acquired
        finally:
            if acquired:
                self._lock.release()


class SinkTopics:
    """The topics of the queries' sinks, and where they end."""

    def __init__(self, admin: TopicAdmin, sinks: Callable[[], Mapping[QueryId, Sink]]) -> None:
        self._admin, self._sinks = admin, sinks

    def of(self, query: QueryId) -> TopicName | None:
        sink = self._sinks().get(query)
        return None if sink is None else sink.topic

    def writers(self, topic: TopicName) -> list[QueryId]:
        return [query for query, sink in self._sinks().items() if sink.topic == topic]

    def all(self) -> set[TopicName]:
        return {sink.topic for sink in self._sinks().values()}

    def missing(self, topics: set[TopicName]) -> set[TopicName]:
        """The topics that do not exist, or that this user may not describe."""
        return topics - self._admin.describe_each(topics).found.keys()

    def ends(self, topics: Iterable[TopicName]) -> list[EndOffset]:
        """The ends of topics, while nobody publishes to them.

        The ends of what is written, not of what is stable: a commit returns before the brokers have marked it
        everywhere.
        """
        return self._written(self._admin.describe(topics).values())

    def ends_each(self, topics: Iterable[TopicName]) -> tuple[list[EndOffset], dict[TopicName, TopicProblem]]:
        """The same for each topic by itself, with the problems of the others."""
        described = self._admin.describe_each(topics)
        ends, problems = list[EndOffset](), dict(described.problems)
        for topic in described.found.values():
            try:
                ends += self._written([topic])
            except TopicProblem as problem:
                problems[topic.name] = problem
        return ends, problems

    def _written(self, topics: Iterable[Topic]) -> list[EndOffset]:
        ends = self._admin.written([(topic.name, p) for topic in topics for p in range(topic.partitions)])
        return [EndOffset(topic, partition, end) for (topic, partition), end in ends.items()]


class OutboxLane:
    """Publishes the outboxes of its topics. Its methods need its turn."""

    def __init__(
        self,
        lane: Lane,
        store: OutboxStore,
        reader: OutboxReader,
        markers: dict[QueryId, Marker],
        topics: SinkTopics,
        blocked: BlockedTopics,
        *,
        has: Callable[[TopicName], bool],
        published: Callable[[], None],
    ) -> None:
        """`markers` are those of all lanes. `has` says whether a topic is the lane's; `published` follows each mark."""
        self.lane, self.turn = lane, Turn()
        self._store, self._reader, self._markers, self._topics = store, reader, markers, topics
        self._blocked, self._has, self._on_published = blocked, has, published
        self._is_broken = False
        self._upto: dict[QueryId, Time] = {}
        self._ends: dict[Partition, int] = {}
        """What is published and not yet marked in the store."""
        self._in_doubt: set[TopicName] = set()
        """Topics whose ends only Kafka knows."""

    @property
    def is_settled(self) -> bool:
        """Whether the outcome of every transaction is known, and marked in the store if it was returned."""
        return not (self._is_broken or self._upto or self._ends)

    def send(self, batch: Batch) -> None:
        """Publish a batch in one transaction and mark it in the store."""
        try:
            ends = self.lane.publish(self._store.id, batch.parts) if batch.parts else {}
        except BaseException as error:
            self._is_broken = True
            self._in_doubt |= {part.outgoing.topic for part in batch.parts}
            if isinstance(error, TransactionAborted):
                self.prepare()
            raise
        self._mark(batch.published)
        for part in batch.parts:
            self._markers[part.query] = part.marker(self._store.id)
            self._mark({part.query: part.time if part.complete else Time(part.time - 1)})
            metrics.RECORDS_PUBLISHED.labels(part.outgoing.topic).inc(part.outgoing.rows.num_rows)
        self._in_doubt |= {topic for query in batch.published if (topic := self._topics.of(query)) is not None}
        self._ends |= ends
        self._settle()

    def prepare(self) -> None:
        """After a failure, end the transaction and read how far publishing really came; mark what is published."""
        if self._is_broken:
            for query, marker in self.lane.recover(self._store.id).items():
                # The last stable offset may be behind what is known to be committed.
                self._markers[query] = max(marker, self._markers.get(query, marker))
            self._is_broken = False
            self._reader.forget_partitions()
        self._settle()

    def _mark(self, published: Mapping[QueryId, Time]) -> None:
        for query, time in published.items():
            self._upto[query] = max(time, self._upto.get(query, time))

    def _settle(self) -> None:
        """Drop published rows from the outboxes.

        Where a topic ends and what is pending for it are stored together: whoever reads both sees each row once.
        """
        if not self._upto and not self._ends:
            return
        if self._in_doubt:
            self._find_ends()
        self._mark(self._reader.published({topic for topic, _ in self._ends}))
        ends = [EndOffset(topic, partition, end) for (topic, partition), end in self._ends.items()]
        self._store.mark_published(self._upto, ends)
        self._upto, self._ends = {}, {}
        self._on_published()

    def _find_ends(self) -> None:
        """Find the ends of topics that a failure has left without known ends; nobody else publishes there.

        A topic whose end cannot be read is blocked. The retry lane marks what its markers say is published.
        """
        wanted = {topic for topic in self._in_doubt if self._has(topic)}
        found, problems = self._topics.ends_each(wanted)
        self._ends |= {(end.topic, end.partition): end.offset for end in found}
        for topic, problem in problems.items():
            self._blocked.block([topic], problem)
        unknown = (self._in_doubt - wanted) | problems.keys()
        self._upto = {query: time for query, time in self._upto.items() if self._topics.of(query) not in unknown}
        self._ends = {partition: end for partition, end in self._ends.items() if partition[0] not in unknown}
        self._in_doubt = set()
