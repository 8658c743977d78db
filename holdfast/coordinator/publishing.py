"""Publishes the outboxes beside the ticks: each row exactly once, each outbox in the order of time.

Two lanes publish. The main lane takes the outboxes of all topics that take records, many ticks in one transaction. A
topic that refuses a record moves to the retry lane, with all outboxes that write to it: there it is tried alone, with
growing pauses, and it moves back once nothing of it is pending. A topic changes lanes only after its transaction has
ended and its markers were read. An outbox whose next record is refused for good is in no lane until its query is
resumed; the others of its topic go on.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext, suppress

from holdfast.coordinator.blocked_topics import BlockedTopics
from holdfast.coordinator.outbox_batch import Batch, OutboxReader, OutboxStore
from holdfast.coordinator.outbox_lane import OutboxLane, SinkTopics
from holdfast.coordinator.retry_lane import RetryLane
from holdfast.coordinator.skipped_records import SkippedRecord, SkippedRecords
from holdfast.errors import HoldfastError, KafkaError, StaleStore, StoreEnded
from holdfast.kafka.lane import Lane
from holdfast.kafka.markers import Marker, MarkerTopic
from holdfast.kafka.port import Fenced, RecordRefused, TopicAdmin, TransactionAborted
from holdfast.names import QueryId, TopicName
from holdfast.runtime.program import Sink
from holdfast.runtime.store.port import EndOffset, Time
from holdfast.wall_clock import WallClock
from holdfast.worker import Worker

PAUSE_SECONDS = 2.0
"""How long the coordinator waits for a transaction to end."""
MAX_ABORTS = 2
"""After this many aborts without a known cause, the topics of a transaction are tried one by one."""


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
        self._store, self._marker_topic = store, markers
        self._transaction_rows, self._on_ended, self._on_published = transaction_rows, ended, published
        self._markers: dict[QueryId, Marker] = {}
        self._reader = OutboxReader(store, admin, sinks, barriers, self._markers)
        self._topics, self._skipped = SinkTopics(admin, sinks), SkippedRecords(store)
        self._blocked = BlockedTopics(clock, transaction_rows=transaction_rows)
        shared = (store, self._reader, self._markers, self._topics, self._blocked)
        self._main = OutboxLane(
            lanes[0], *shared, has=lambda topic: topic not in self._blocked, published=self._on_published
        )
        self._retry = OutboxLane(lanes[1], *shared, has=self._blocked.__contains__, published=self._on_published)
        self._retries = RetryLane(
            self._retry, self._reader, self._markers, self._topics, self._blocked, self._skipped,
            skips=skips, uncreated=uncreated, freed=self.wake,
        )  # fmt: skip
        self._aborts = 0
        self._is_started = False
        self._workers = (
            Worker("publisher", lambda: self._until_ended(self._publish), interval=1.0),
            Worker("publisher-retry", lambda: self._until_ended(self._retries.publish), interval=1.0),
        )

    # -- the start and the end

    def fence(self, *, republish: bool = False) -> Time:
        """Fence the previous process; returns up to which time it had published. Before any tick.

        A tick is committed before it is published. When more is published than was committed, the store is an older
        copy, which would compute and publish everything since then again. That is refused unless `republish` is set.
        """
        self._marker_topic.create()
        for each in (self._main, self._retry):
            each.lane.start()
        self._markers |= self._marker_topic.read(self._store.id)
        self._skipped.decide(self._markers)
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
            published = self._reader.next(lambda _query, _topic: True, rows=0)
            if published:
                self._main.send(published)

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
        for each in (self._main, self._retry):
            each.lane.close()

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
        published = self._publish()
        return self._retries.publish() or published

    @property
    def problem(self) -> str | None:
        """Why publishing fails, or which topics are blocked, while that is so."""
        found = [worker.problem for worker in self._workers if worker.problem]
        found += [f"blocked: {reason}" for reason in self._blocked.reasons()]
        return "\n".join(found) or None

    def blocked(self, query: QueryId) -> str | None:
        """Why the rows of a query cannot be published, while that is so."""
        reason = self._blocked.reason(query, self._topics.of(query))
        return None if reason is None else f"blocked: {reason}"

    def failures(self) -> Mapping[QueryId, str]:
        """Queries whose records were refused and that are still to be set to ERROR, with the reasons."""
        return self._blocked.failures()

    def failed(self, query: QueryId) -> None:
        """A query of `failures` was set to ERROR."""
        self._blocked.failed(query)

    def skipped(self) -> Sequence[SkippedRecord]:
        """Records that were skipped and are still to be logged."""
        return self._skipped.done()

    def logged(self, records: Iterable[SkippedRecord]) -> None:
        """Records of `skipped` were logged."""
        self._skipped.forget(records)

    def retry(self, query: QueryId) -> None:
        """Try the outbox of a query again now: it was resumed, or is to be published to its end."""
        self._blocked.retry(query, self._topics.of(query))
        self.wake()

    def forget(self, query: QueryId, topic: TopicName | None) -> None:
        """Forget a dropped outbox, and its topic unless others write to it."""
        self._blocked.forget(query)
        if topic is not None and not self._topics.writers(topic):
            self._blocked.unblock(topic)

    @contextmanager
    def paused(self, topics: Iterable[TopicName]) -> Iterator[bool]:
        """Publish nothing to some topics within the block; False when a transaction with them does not end now.

        The main lane goes on while the retry lane is waited for.
        """
        wanted = set(topics)
        is_blocked = self._blocked.contains_any(wanted)
        with self._retry.turn.within(PAUSE_SECONDS) if is_blocked else nullcontext(True) as retry_paused:
            if not retry_paused:
                yield False
                return
            with self._main.turn.within(PAUSE_SECONDS) as main_paused:
                # A topic that is blocked meanwhile is the retry lane's.
                yield main_paused and (is_blocked or not self._blocked.contains_any(wanted))

    @property
    def is_settled(self) -> bool:
        """Whether the outcome of every transaction is known. While publishing is paused."""
        return self._main.is_settled and self._retry.is_settled

    def published(self, topic: TopicName) -> Mapping[QueryId, Time]:
        """Up to which times the outboxes of a topic are published, as far as their rows are still pending."""
        return self._reader.published({topic})

    def forget_partitions(self) -> None:
        """A topic may have been created again with another number of partitions."""
        self._reader.forget_partitions()

    def sink_ends(self) -> list[EndOffset]:
        """The ends of all sink topics, while nobody publishes to them."""
        return self._topics.ends(self._topics.all())

    # -- the main lane

    def _publish(self) -> bool:
        """Publish everything that is pending for the topics of the main lane."""
        published = False
        while (sent := self._publish_batch()) is not None:
            published |= sent
        return published

    def _publish_batch(self) -> bool | None:
        """Try one transaction; None when nothing is pending. Others get the turn between two of them."""
        with self._main.turn:
            batch = Batch([], {})
            self._main.prepare()
            try:
                batch = self._reader.next(self._is_main, rows=self._transaction_rows)
                if not batch:
                    return None
                self._main.send(batch)
                self._aborts = 0
                return True
            except RecordRefused as error:
                if error.topic == self._marker_topic.name:
                    raise
                self._move_to_retry([error.topic], error)
            except TransactionAborted as error:
                self._move_to_retry(self._suspects(batch), error)
            return False

    def _move_to_retry(self, topics: Iterable[TopicName], error: TransactionAborted) -> None:
        self._blocked.block(topics, error, now=True)
        self.wake()

    def _suspects(self, batch: Batch) -> Set[TopicName]:
        """The topics that may have aborted a transaction: those that are gone or denied; after several aborts, all."""
        topics = {part.outgoing.topic for part in batch.parts}
        missing = self._topics.missing(topics)
        self._aborts = 0 if missing else self._aborts + 1
        if missing or self._aborts < MAX_ABORTS:
            return missing
        self._aborts = 0
        return topics

    def _is_main(self, query: QueryId, topic: TopicName) -> bool:
        return topic not in self._blocked and not self._blocked.is_stopped(query)

    def _until_ended(self, publish: Callable[[], bool]) -> bool:
        try:
            publish()
        except (Fenced, StoreEnded) as error:
            self._on_ended(error)
            return False
        return True
