"""Publishes the outbox beside the ticks: each tick's rows once, in the order of time."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import groupby
from threading import Event, Lock, Thread
from typing import Protocol

import pyarrow as pa

from holdfast import metrics
from holdfast.errors import HoldfastError, KafkaError, StaleStore
from holdfast.kafka.admin import Admin
from holdfast.kafka.partitioning import partitions_for
from holdfast.kafka.problems import Fenced, TransactionAborted
from holdfast.kafka.publisher import Marker, Outgoing, TransactionalPublisher
from holdfast.kafka.records import Partition
from holdfast.names import QueryId, TopicName
from holdfast.runtime.program import Sink
from holdfast.runtime.serdes.window import unwindowed
from holdfast.runtime.store.port import Moved, SqlReader, Store, Time

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 30.0
"""Between two attempts there is twice the time that was before, up to this."""


class OutboxStore(Store, SqlReader, Protocol):
    """What publishing needs of a store."""


class Publishing:
    """A thread that empties the outbox. `sinks` says, now, where each query's rows go."""

    def __init__(
        self,
        store: OutboxStore,
        publisher: TransactionalPublisher,
        admin: Admin,
        sinks: Callable[[], Mapping[QueryId, Sink]],
        fenced: Callable[[HoldfastError], None],
        published: Callable[[], None],
    ) -> None:
        self._store = store
        self._publisher = publisher
        self._admin = admin
        self._sinks = sinks
        self._fenced = fenced
        self._on_published = published
        self._published: Marker | None = None
        self._partitions: dict[TopicName, int] = {}
        self._in_doubt = False
        self._ends_in_doubt = False
        self._failures = 0
        self._wake = Event()
        self._stopping = Event()
        self._turn = Lock()
        self._thread = Thread(target=self._loop, name="publisher", daemon=True)
        self.problem: str | None = None

    def fence(self, *, republish: bool = False) -> Time:
        """Fence the process before this one, and learn up to which time it had published. Before any tick.

        A tick is committed before it is published: when more is published than was committed, the store is an older
        copy, and would compute and publish all since then once more. That is refused unless it is wanted.
        """
        found = self._own(self._publisher.start())
        committed = self._store.committed_time()
        if found is not None and found.time > committed and not republish:
            raise StaleStore(
                "the sink topics have rows that this store has not yet computed",
                detail=f"The store ends at time {committed}; another copy of it has published up to {found.time}.",
                hint="Use the newer copy. To go on from this one, start once with --republish: what was read since is "
                "computed again, and its rows are written a second time.",
            )
        self._published = found
        self._ends_in_doubt = found is not None
        return found.time if found is not None else Time(0)

    def recover(self) -> None:
        """Forget what the process before this one had published. Once all sinks are known, before `start`."""
        if self._published is not None and self._published.complete:
            self._store.settle(self._published.time, self.sink_ends())

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is published meanwhile; what was is settled."""
        with self._turn:
            yield

    @contextmanager
    def flushed(self) -> Iterator[None]:
        """All that is owed is published and settled, and nothing is published meanwhile; raises when Kafka cannot."""
        with self._turn:
            self._publish_all()
            yield

    def drop(self, query: QueryId) -> None:
        """Publish what a query that ends still owes, if Kafka takes it now."""
        with self._turn:
            self._partitions.clear()
            if any(owed.sink == query for owed in self._store.owed()):
                try:
                    self._publish_all()
                except KafkaError as error:
                    log.warning("the last rows of %s were not published: %s", query, error)

    def stop(self, *, drain_seconds: float = 10.0) -> None:
        """Publish what is owed, as far as the time allows, and end."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(drain_seconds)
        self._publisher.close()

    def _loop(self) -> None:
        while True:
            self._wake.wait(1.0)
            self._wake.clear()
            try:
                with self._turn:
                    self._publish_all()
                self.problem, self._failures = None, 0
            except Fenced as error:
                self._fenced(error)
                return
            except KafkaError as error:
                self._in_doubt = True
                self._partitions.clear()
                self._wake.set()
                if not self._wait_out(error):
                    return
            if self._stopping.is_set() and not self._wake.is_set():
                return

    def _wait_out(self, error: KafkaError) -> bool:
        """Wait after a failure, each time longer; False when it is time to end.

        A transaction that was aborted is tried again at once the first time: that happens when brokers change.
        """
        self._failures += 1
        if self._failures == 1 and isinstance(error, TransactionAborted):
            return True
        self.problem = str(error)
        seconds = min(RETRY_SECONDS * 2 ** min(self._failures - 1, 10), LONGEST_RETRY_SECONDS)
        log.warning("publishing failed, trying again in %.0f s: %s", seconds, error)
        return not self._stopping.wait(seconds)

    def _publish_all(self) -> None:
        if self._in_doubt:
            self._look_again()
        last: Time | None = None
        ends: dict[Partition, int] = {}
        owed = sorted(self._store.owed(), key=lambda o: (o.time, o.sink))
        for time, parts in groupby(owed, key=lambda o: o.time):
            sinks = self._sinks()
            outgoing = []
            for part in parts:
                sink = sinks.get(part.sink)
                if sink is not None:
                    rows = self._store.owed_rows(part.sink, time)
                    outgoing.append(Outgoing(sink.topic, self._placed(sink, sink.encoder.encode(rows, self._store))))
            ends |= self._publisher.publish(self._store.id, time, outgoing, published=self._published)
            self._published = Marker(self._store.id, time, rows=0, chunk=0, complete=True)
            for part_of in outgoing:
                metrics.RECORDS_PUBLISHED.labels(part_of.topic).inc(part_of.rows.num_rows)
            last = time
        if last is not None:
            published = [Moved(topic, partition, end) for (topic, partition), end in ends.items()]
            # What was published before a failure is not in `ends`; nobody else publishes, so Kafka can be asked.
            self._store.settle(last, self.sink_ends() if self._ends_in_doubt else published)
            self._ends_in_doubt = False
            self._on_published()

    def _look_again(self) -> None:
        """After a failure: give up what was begun, and ask Kafka how far publishing really came."""
        with suppress(KafkaError):
            self._publisher.abort()
        self._published = self._own(self._publisher.last_marker())
        self._in_doubt, self._ends_in_doubt = False, True

    def _placed(self, sink: Sink, records: pa.Table) -> pa.Table:
        """Records of a windowed topic with the partition of their key alone, as Kafka Streams has them."""
        window = sink.encoder.window
        if window is None:
            return records
        if sink.topic not in self._partitions:
            self._partitions |= {t.name: t.partitions for t in self._admin.describe([sink.topic]).values()}
        count = self._partitions.get(sink.topic)
        if count is None:  # The topic is not there, which the producer will say.
            return records
        keys = unwindowed(records.column("key"), window.type)
        return records.append_column("partition", partitions_for(keys, count))

    def _own(self, marker: Marker | None) -> Marker | None:
        """A marker of this store: one of a store that was given up says nothing of this one."""
        return marker if marker is not None and marker.store == self._store.id else None

    def sink_ends(self) -> list[Moved]:
        """Where the sink topics end, when nobody is publishing.

        Asked for as written, not as stable: a commit returns before the brokers have marked it everywhere.
        """
        topics = self._admin.describe({sink.topic for sink in self._sinks().values()})
        partitions = [(t.name, p) for t in topics.values() for p in range(t.partitions)]
        return [Moved(topic, partition, end) for (topic, partition), end in self._admin.written(partitions).items()]
