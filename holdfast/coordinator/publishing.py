"""Publishes the outboxes beside the ticks: each row exactly once, each outbox in the order of time.

Two lanes publish. The main lane takes the outboxes of all topics that take records, many ticks in one transaction. A
topic that refuses a record moves to the retry lane, with all outboxes that write to it: there it is tried alone, with
growing pauses, and it moves back once nothing of it is pending. A topic changes lanes only after its transaction has
ended and its markers were read.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from threading import Lock

from holdfast import metrics
from holdfast.coordinator.outbox_batch import Batch, OutboxReader, OutboxStore
from holdfast.errors import HoldfastError, KafkaError, StaleStore, StoreEnded
from holdfast.kafka.lane import Lane
from holdfast.kafka.markers import Marker, MarkerTopic
from holdfast.kafka.port import Fenced, RecordRefused, Topic, TopicAdmin, TopicProblem, TransactionAborted
from holdfast.kafka.records import Partition
from holdfast.names import QueryId, TopicName
from holdfast.runtime.program import Sink
from holdfast.runtime.store.port import EndOffset, Time
from holdfast.wall_clock import WallClock
from holdfast.worker import Worker

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 30.0
"""The pause between two attempts at a topic doubles up to this."""
PAUSE_SECONDS = 2.0
"""How long the coordinator waits for a transaction to end."""
MAX_ABORTS = 2
"""After this many aborts without a known cause, the topics of a transaction are tried one by one."""


@dataclass(slots=True)
class Blocked:
    """A topic that does not take records. `rows` is how many are tried at once, `retry_at` infinite for never."""

    reason: str
    retry_at: float
    rows: int
    failures: int = 1


@dataclass(slots=True)
class LaneState:
    """A lane, and what is to be done before it publishes again."""

    lane: Lane
    turn: Lock = field(default_factory=Lock)
    """Held by whoever publishes, or needs that nothing is published."""
    is_broken: bool = False
    upto: dict[QueryId, Time] = field(default_factory=dict)
    ends: dict[Partition, int] = field(default_factory=dict)
    """What is published and not yet marked in the store."""
    in_doubt: set[TopicName] = field(default_factory=set)
    """Topics whose ends only Kafka knows."""


@dataclass(frozen=True, slots=True)
class SkippedRecord:
    """A record that a topic refused, and that was skipped."""

    query: QueryId
    topic: TopicName
    reason: str


class Publishing:
    """Publishes pending rows: `publish_pending` at once, the threads of `start` whenever they are woken."""

    def __init__(
        self,
        store: OutboxStore,
        lanes: tuple[Lane, Lane],
        markers: MarkerTopic,
        admin: TopicAdmin,
        sinks: Callable[[], Mapping[QueryId, Sink]],
        barriers: Callable[[], Mapping[TopicName, Time]],
        skips: Callable[[QueryId], bool],
        uncreated: Callable[[], Set[TopicName]],
        clock: WallClock,
        *,
        transaction_rows: int,
        ended: Callable[[HoldfastError], None],
        published: Callable[[], None],
    ) -> None:
        """`sinks` gives the sink of each query now, `barriers` the time up to which a topic may be published.

        `skips` says whether a query skips refused records instead of failing, `uncreated` which topics are still to be
        created. `ended` is called when another server publishes for this service id, or the store has failed for good;
        `published` after rows were.
        """
        self._store, self._marker_topic, self._admin, self._sinks = store, markers, admin, sinks
        self._skips, self._uncreated, self._clock, self._transaction_rows = skips, uncreated, clock, transaction_rows
        self._on_ended, self._on_published = ended, published
        self._markers: dict[QueryId, Marker] = {}
        self._reader = OutboxReader(store, admin, sinks, barriers, self._markers)
        self._main, self._retry = (LaneState(lane) for lane in lanes)
        self._lock = Lock()
        """Protects the fields that follow."""
        self._blocked: dict[TopicName, Blocked] = {}
        self._failures: dict[QueryId, str] = {}
        self._skipped: list[SkippedRecord] = []
        self._aborts = 0
        self._is_started = False
        self._workers = (
            Worker("publisher", self._publish_main, interval=1.0),
            Worker("publisher-retry", self._publish_blocked, interval=1.0),
        )

    # -- the start and the end

    def fence(self, *, republish: bool = False) -> Time:
        """Fence the previous process; returns up to which time it had published. Before any tick.

        A tick is committed before it is published. When more is published than was committed, the store is an older
        copy, which would compute and publish everything since then again. That is refused unless `republish` is set.
        """
        self._marker_topic.create()
        for state in (self._main, self._retry):
            state.lane.start()
        self._markers |= self._marker_topic.read(self._store.id)
        latest = max((marker.time for marker in self._markers.values()), default=Time(0))
        committed = self._store.committed_time()
        if latest > committed and not republish:
            raise StaleStore(
                "the sink topics have rows that this store has not yet computed",
                detail=f"The store ends at time {committed}; another copy of it has published up to {latest}.",
                hint="Use the newer copy. To continue from this one, start once with --republish: what was read since "
                "is computed again, and its rows are written a second time.",
            )
        return latest

    def recover(self) -> None:
        """Drop from the outboxes what the previous process had published. Once all sinks are known, before `start`."""
        with self._main.turn:
            published = self._reader.next(lambda _topic: True, rows=0)
            if published:
                self._send(self._main, published)

    def start(self) -> None:
        self._is_started = True
        for worker in self._workers:
            worker.start()

    def wake(self) -> None:
        for worker in self._workers:
            worker.wake()

    def stop(self, *, drain_seconds: float = 10.0) -> None:
        """Publish what is pending, as far as the time allows, and end."""
        for worker in self._workers:
            worker.stop(drain_seconds)
        for state in (self._main, self._retry):
            state.lane.close()

    # -- what others ask

    def flush(self) -> None:
        """Publish what is pending soon; without threads, now, if Kafka takes it."""
        if self._is_started:
            self.wake()
        else:
            with suppress(KafkaError):
                self.publish_pending()

    def publish_pending(self) -> bool:
        """Publish all pending rows now; raises when Kafka does not take them. False when there were none."""
        published = self._publish(self._main)
        return self._retry_blocked() or published

    @property
    def problem(self) -> str | None:
        """Why publishing fails, or which topics are blocked, while that is so."""
        found = [worker.problem for worker in self._workers if worker.problem]
        with self._lock:
            found += [f"blocked: {blocked.reason}" for _, blocked in sorted(self._blocked.items())]
        return "\n".join(found) or None

    def blocked(self, query: QueryId) -> str | None:
        """Why the rows of a query cannot be published, while that is so."""
        sink = self._sinks().get(query)
        with self._lock:
            found = None if sink is None else self._blocked.get(sink.topic)
        return None if found is None else f"blocked: {found.reason}"

    def take_failures(self) -> dict[QueryId, str]:
        """Queries that failed because a topic refused their records; each is returned once."""
        with self._lock:
            taken, self._failures = self._failures, {}
            return taken

    def take_skipped(self) -> list[SkippedRecord]:
        """Records that were skipped; each is returned once."""
        with self._lock:
            taken, self._skipped = self._skipped, []
            return taken

    def retry(self, query: QueryId) -> None:
        """Try the topic of a query again now: it was resumed."""
        sink = self._sinks().get(query)
        with self._lock:
            found = None if sink is None else self._blocked.get(sink.topic)
            if found is not None:
                found.retry_at, found.failures, found.rows = -inf, 0, self._transaction_rows
        self.wake()

    def unblock(self, topic: TopicName) -> None:
        """Forget a topic that nothing is published to any more."""
        with self._lock:
            self._blocked.pop(topic, None)

    @contextmanager
    def paused(self, topics: Iterable[TopicName]) -> Iterator[bool]:
        """Publish nothing to some topics within the block; False when a transaction with them does not end now."""
        with _turn(self._main, PAUSE_SECONDS) as main_paused:
            with self._lock:
                is_retried = not self._blocked.keys().isdisjoint(topics)
            if main_paused and is_retried:
                with _turn(self._retry, PAUSE_SECONDS) as paused:
                    yield paused
            else:
                yield main_paused

    def sink_ends(self, topics: Iterable[TopicName] | None = None) -> list[EndOffset]:
        """The ends of sink topics, while nobody publishes to them.

        The ends of what is written, not of what is stable: a commit returns before the brokers have marked it
        everywhere.
        """
        wanted = {sink.topic for sink in self._sinks().values()} if topics is None else set(topics)
        return self._written(self._admin.describe(wanted).values())

    def _written(self, topics: Iterable[Topic]) -> list[EndOffset]:
        ends = self._admin.written([(topic.name, p) for topic in topics for p in range(topic.partitions)])
        return [EndOffset(topic, partition, end) for (topic, partition), end in ends.items()]

    # -- the main lane

    def _publish_main(self) -> bool:
        return self._until_ended(lambda: self._publish(self._main))

    def _publish(self, state: LaneState) -> bool:
        """Publish everything that is pending for the topics of the main lane."""
        with state.turn:
            published, batch = False, Batch([], {})
            self._prepare(state)
            while True:
                try:
                    batch = self._reader.next(self._is_main, rows=self._transaction_rows)
                    if not batch:
                        return published
                    self._send(state, batch)
                    published, self._aborts = True, 0
                except RecordRefused as error:
                    if error.topic == self._marker_topic.name:
                        raise
                    self._block([error.topic], error, retry_now=True)
                except TransactionAborted as error:
                    self._block(self._suspects(batch), error, retry_now=True)

    def _suspects(self, batch: Batch) -> Set[TopicName]:
        """The topics that may have aborted a transaction: those that are gone or denied; after several aborts, all."""
        topics = {part.outgoing.topic for part in batch.parts}
        missing = topics - self._admin.describe_each(topics).found.keys()
        self._aborts = 0 if missing else self._aborts + 1
        if missing or self._aborts < MAX_ABORTS:
            return missing
        self._aborts = 0
        return topics

    def _is_main(self, topic: TopicName) -> bool:
        with self._lock:
            return topic not in self._blocked

    # -- the retry lane

    def _publish_blocked(self) -> bool:
        return self._until_ended(self._retry_blocked)

    def _retry_blocked(self) -> bool:
        """Try the blocked topics that are due, one at a time."""
        published = False
        for topic in self._due():
            with self._retry.turn:
                published |= self._retry_topic(topic)
        return published

    def _due(self) -> list[TopicName]:
        now = self._clock.monotonic()
        with self._lock:
            return sorted(topic for topic, blocked in self._blocked.items() if blocked.retry_at <= now)

    def _retry_topic(self, topic: TopicName) -> bool:
        """Publish what is pending for a blocked topic; it is blocked no more once all is."""
        published = False
        while True:
            self._prepare(self._retry)
            with self._lock:
                blocked = self._blocked.get(topic)
            if blocked is None:  # Unblocked meanwhile: the topic is the main lane's.
                return published
            batch = Batch([], {})
            try:
                batch = self._reader.next(topic.__eq__, rows=blocked.rows)
                if not batch:
                    self.unblock(topic)
                    self.wake()
                    return published
                self._send(self._retry, batch)
                if topic not in self._due():  # Its end cannot be read.
                    return published
                published = True
            except TransactionAborted as error:
                if not self._narrow(topic, batch, error):
                    return published

    def _narrow(self, topic: TopicName, batch: Batch, error: TransactionAborted) -> bool:
        """After a refusal: fail the queries, or find the refused record and skip it. False when that has to wait."""
        if not error.lasting or topic in self._uncreated():
            self._block([topic], error)
            return False
        writers = [part.query for part in batch.parts] or [
            q for q, sink in self._sinks().items() if sink.topic == topic
        ]
        failing = [query for query in writers if not batch.parts or not self._skips(query)]
        if failing:
            with self._lock:
                self._failures |= dict.fromkeys(failing, _reason(error))
            self._block([topic], error, retry_at=inf)
            self._on_published()
            return False
        if batch.count > 1:
            with self._lock:
                self._blocked[topic].rows = max(1, batch.count // 2)
            return True
        [part] = batch.parts
        self._send(self._retry, Batch([part.without_rows()], {}))
        log.warning("record skipped: query=%s topic=%s reason=%s", part.query, topic, error.message)
        metrics.RECORDS_REFUSED.labels(topic).inc()
        with self._lock:
            self._skipped.append(SkippedRecord(part.query, topic, _reason(error)))
            self._blocked[topic].rows = self._transaction_rows
        return True

    def _block(
        self,
        topics: Iterable[TopicName],
        error: HoldfastError,
        *,
        retry_at: float | None = None,
        retry_now: bool = False,
    ) -> None:
        now = self._clock.monotonic()
        with self._lock:
            for topic in topics:
                known = self._blocked.get(topic)
                failures = known.failures + 1 if known is not None else 1
                pause = min(RETRY_SECONDS * 2 ** min(failures - 1, 10), LONGEST_RETRY_SECONDS)
                due = now if retry_now else retry_at if retry_at is not None else now + pause
                if known is None or known.reason != _reason(error):
                    log.warning("topic blocked: topic=%s reason=%s", topic, _reason(error))
                rows = known.rows if known is not None else self._transaction_rows
                self._blocked[topic] = Blocked(_reason(error), due, rows, failures)
        self.wake()

    # -- both lanes

    def _send(self, state: LaneState, batch: Batch) -> None:
        """Publish a batch in one transaction and mark it in the store."""
        topics = {part.outgoing.topic for part in batch.parts}
        try:
            ends = state.lane.publish(self._store.id, batch.parts) if batch.parts else {}
        except BaseException as error:
            state.is_broken = True
            state.in_doubt |= topics
            if isinstance(error, TransactionAborted):
                self._prepare(state)
            raise
        for part in batch.parts:
            self._markers[part.query] = part.marker(self._store.id)
            state.upto[part.query] = part.time if part.complete else Time(part.time - 1)
            metrics.RECORDS_PUBLISHED.labels(part.outgoing.topic).inc(part.outgoing.rows.num_rows)
        state.upto |= batch.published
        state.in_doubt |= {topic for query in batch.published if (topic := self._topic(query)) is not None}
        state.ends |= ends
        self._settle(state)

    def _prepare(self, state: LaneState) -> None:
        """After a failure, end the transaction and read how far publishing really came; mark what is published."""
        if state.is_broken:
            for query, marker in state.lane.recover(self._store.id).items():
                # The last stable offset may be behind what is known to be committed.
                self._markers[query] = max(marker, self._markers.get(query, marker))
            state.is_broken = False
            self._reader.forget_partitions()
        self._settle(state)

    def _settle(self, state: LaneState) -> None:
        """Drop published rows from the outboxes."""
        if not state.upto and not state.ends:
            return
        if state.in_doubt:
            self._find_ends(state)
        ends = [EndOffset(topic, partition, end) for (topic, partition), end in state.ends.items()]
        self._store.mark_published(state.upto, ends)
        state.upto, state.ends = {}, {}
        self._on_published()

    def _find_ends(self, state: LaneState) -> None:
        """Find the ends of topics that a failure has left without known ends; nobody else publishes there.

        A topic whose end cannot be read is blocked. The retry lane marks what its markers say is published.
        """
        wanted = {topic for topic in state.in_doubt if state is self._retry or self._is_main(topic)}
        described = self._admin.describe_each(wanted)
        problems = dict(described.problems)
        for topic in described.found.values():
            try:
                state.ends |= {(end.topic, end.partition): end.offset for end in self._written([topic])}
            except TopicProblem as error:
                problems[topic.name] = error
        for name, problem in problems.items():
            self._block([name], problem)
        unknown = (state.in_doubt - wanted) | problems.keys()
        state.upto = {query: time for query, time in state.upto.items() if self._topic(query) not in unknown}
        state.ends = {partition: end for partition, end in state.ends.items() if partition[0] not in unknown}
        state.in_doubt = set()

    def _topic(self, query: QueryId) -> TopicName | None:
        sink = self._sinks().get(query)
        return None if sink is None else sink.topic

    def _until_ended(self, publish: Callable[[], bool]) -> bool:
        try:
            publish()
        except (Fenced, StoreEnded) as error:
            self._on_ended(error)
            return False
        return True


@contextmanager
def _turn(state: LaneState, timeout: float) -> Iterator[bool]:
    acquired = state.turn.acquire(timeout=timeout)
    try:
        yield acquired
    finally:
        if acquired:
            state.turn.release()


def _reason(error: HoldfastError) -> str:
    return " ".join(part for part in (f"{error.message}.", error.detail, error.hint) if part)
