"""What publishing knows after a start, and how its threads go on after failures."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from holdfast.config import Settings
from holdfast.coordinator import outbox_batch
from holdfast.coordinator.outbox_batch import OutboxReader
from holdfast.coordinator.outbox_lane import Turn
from holdfast.coordinator.publishing import Publishing
from holdfast.errors import KafkaError, StaleStore, StoreError
from holdfast.kafka.lane import Lane, OutboxRows
from holdfast.kafka.markers import Marker
from holdfast.kafka.partitioner import partition_for
from holdfast.kafka.port import Fenced
from holdfast.kafka.records import Partition
from holdfast.names import QueryId, StoreId
from holdfast.runtime.plan.windows import WindowInfo, WindowTopic, WindowType
from holdfast.runtime.store.memory.store import MemoryStore
from holdfast.runtime.store.port import EndOffset, Time

from .outboxes import A, B, Outboxes


@pytest.fixture
def world(settings: Settings) -> Outboxes:
    return Outboxes(settings)


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


@pytest.fixture
def started(world: Outboxes) -> Iterator[Publishing]:
    publishing = world.publishing()
    publishing.fence()
    publishing.start()
    yield publishing
    publishing.stop()


def test_many_ticks_are_one_transaction(world: Outboxes) -> None:
    for at in range(1, 20):
        world.commit(at, Q1=[f"{at}a", f"{at}b"], Q2=[f"{at}c"])
    publishing = world.publishing()
    publishing.fence()
    publishing.publish_pending()
    assert world.values(A) == [f"{at}{x}".encode() for at in range(1, 20) for x in "ab"]
    assert world.store.pending() == []
    assert set(world.store.published_ends()) == {EndOffset(A, 0, 38), EndOffset(B, 0, 19)}
    assert world.kafka.topics.written([(A, 0), (B, 0)]) == {(A, 0): 39, (B, 0): 20}, "one marker of one transaction"


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])
def test_rows_are_counted_by_outbox_wherever_a_transaction_ends(world: Outboxes, limit: int) -> None:
    world.rows = limit
    world.commit(1, Q1=["1", "2", "3"], Q2=["x"])
    world.commit(2, Q1=["4"], Q2=["y", "z"])
    publishing = world.publishing()
    publishing.fence()
    marks, mark = [], world.store.mark_published

    def crash(*arguments: Any) -> None:
        marks.append(arguments)
        raise StoreError("the process dies here")

    world.store.mark_published = crash
    with pytest.raises(StoreError):
        publishing.publish_pending()
    world.store.mark_published = mark
    # The next server knows from the markers alone what is published.
    again = world.publishing()
    again.fence()
    again.recover()
    again.publish_pending()
    assert world.values(A) == [b"1", b"2", b"3", b"4"]
    assert world.values(B) == [b"x", b"y", b"z"]
    assert world.store.pending() == []
    assert len(marks) == 1


class Lagging(Lane):
    """A lane that fails before its second transaction; the last stable offset is then before its first marker."""

    transactions = 0

    def publish(self, store: StoreId, batch: Sequence[OutboxRows]) -> Mapping[Partition, int]:
        self.transactions += 1
        if self.transactions == 2:
            raise KafkaError("Kafka is away")
        return super().publish(store, batch)

    def recover(self, store: StoreId) -> Mapping[QueryId, Marker]:
        return dict.fromkeys(super().recover(store), Marker(Time(1), 0, store))


def test_a_marker_that_is_older_than_a_known_one_does_not_replace_it(world: Outboxes) -> None:
    world.rows = 1
    world.commit(1, Q1=["1", "2", "3"])
    publishing = world.publishing(Lagging)
    publishing.fence()
    with pytest.raises(KafkaError, match="away"):
        publishing.publish_pending()
    assert world.values(A) == [b"1"]
    publishing.publish_pending()
    assert world.values(A) == [b"1", b"2", b"3"]
    assert world.store.pending() == []


def test_nothing_beyond_a_barrier_is_published(world: Outboxes) -> None:
    world.barriers[A] = Time(1)
    world.commit(1, Q1=["1"], Q2=["x"])
    world.commit(2, Q1=["2"], Q2=["y"])
    publishing = world.publishing()
    publishing.fence()
    publishing.publish_pending()
    assert (world.values(A), world.values(B)) == ([b"1"], [b"x", b"y"])
    world.barriers.clear()
    publishing.publish_pending()
    assert world.values(A) == [b"1", b"2"]


def test_the_marker_of_an_abandoned_store_says_nothing(world: Outboxes) -> None:
    world.commit(1, Q1=["1"])
    other = Outboxes(world.settings)
    other.kafka, other.broker, other.markers = world.kafka, world.broker, world.markers
    other.commit(99, Q1=["other"])
    first = other.publishing()
    first.fence()
    first.publish_pending()
    publishing = world.publishing()
    assert publishing.fence() == 0
    publishing.publish_pending()
    assert world.values(A) == [b"other", b"1"]


def test_a_store_that_is_older_than_what_it_published_is_refused(world: Outboxes) -> None:
    """A tick is committed before it is published, so only a copy of an earlier time finds more published."""
    world.commit(2, Q1=["1"])
    producer = world.kafka.producer("test")
    world.markers.create()
    producer.start()
    producer.begin()
    producer.produce(world.markers.name, Marker(Time(3), 1, world.store.id).encode(), b"Q1", partition=0)
    producer.commit()
    with pytest.raises(StaleStore, match="has not yet computed") as raised:
        world.publishing().fence()
    assert "ends at time 2" in (raised.value.detail or "")
    assert "--republish" in (raised.value.hint or "")
    assert world.publishing().fence(republish=True) == 3


@pytest.mark.parametrize(
    ("type_", "window"), [(WindowType.TUMBLING, b"8 bytes."), (WindowType.SESSION, b"8 bytes." * 2)]
)
def test_a_windowed_record_is_in_the_partition_of_its_key(type_: WindowType, window: bytes) -> None:
    keys = [b"ann", b"bob", b"cay", None]
    records = pa.table({"key": [None if key is None else key + window for key in keys]})
    encoder = SimpleNamespace(window=WindowInfo(type=type_), window_topic=WindowTopic.TOPIC)
    sink: Any = SimpleNamespace(topic=A, encoder=encoder)
    admin: Any = SimpleNamespace(describe=lambda topics: {t: SimpleNamespace(name=t, partitions=5) for t in topics})
    reader = OutboxReader(MemoryStore(), admin, dict, dict, {})  # type: ignore[arg-type]
    expected = [None if key is None else partition_for(key, 5) for key in keys]
    assert len(set(expected)) > 2
    assert reader._with_partitions(sink, records).column("partition").to_pylist() == expected


def test_a_thread_goes_on_after_any_error_and_shows_it(
    world: Outboxes, started: Publishing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.worker.FIRST_PAUSE_SECONDS", 0.3)
    pending, failing = world.store.pending, [True]

    def broken() -> Any:
        if failing:
            raise RuntimeError("nobody expected this")
        return pending()

    world.store.pending = broken  # type: ignore[method-assign]
    world.commit(1, Q1=["1"])
    started.wake()
    assert eventually(lambda: started.problem == "RuntimeError: nobody expected this")
    failing.clear()
    assert eventually(lambda: world.values(A) == [b"1"])
    assert eventually(lambda: started.problem is None)


def test_a_fenced_server_stops_publishing(world: Outboxes, started: Publishing) -> None:
    world.publishing().fence()
    world.commit(1, Q1=["1"])
    started.wake()
    assert eventually(lambda: bool(world.fenced))
    assert isinstance(world.fenced[0], Fenced)
    assert world.values(A) == []


def test_what_is_pending_is_published_before_the_end(world: Outboxes) -> None:
    publishing = world.publishing()
    publishing.fence()
    publishing.start()
    world.commit(1, Q1=["1"])
    publishing.stop()
    assert world.values(A) == [b"1"]


def test_publishing_to_a_topic_is_paused_while_it_must_not_change(world: Outboxes, started: Publishing) -> None:
    with started.paused([A]) as paused:
        assert paused
        world.commit(1, Q1=["1"])
        started.wake()
        time.sleep(0.2)
        assert world.values(A) == []
    assert eventually(lambda: world.values(A) == [b"1"])


def transactions(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Collects how many rows of each outbox a transaction has."""
    found, publish = list[list[int]](), Lane.publish

    def counted(lane: Lane, store: Any, batch: Any) -> Any:
        found.append([part.outgoing.rows.num_rows for part in batch])
        return publish(lane, store, batch)

    monkeypatch.setattr(Lane, "publish", counted)
    return found


def test_wide_rows_take_several_transactions(world: Outboxes, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = transactions(monkeypatch)
    monkeypatch.setattr(outbox_batch, "BATCH_BYTES", 5_000)
    wide = [f"{n}{'x' * 990}" for n in range(10)]
    world.commit(1, Q1=wide, Q2=["a", "b"])
    world.commit(2, Q1=["y" * 20_000])
    world.commit(3, Q1=["last"])
    publishing = world.publishing()
    publishing.fence()
    publishing.publish_pending()
    assert world.values(A) == [value.encode() for value in [*wide, "y" * 20_000, "last"]]
    assert world.values(B) == [b"a", b"b"]
    assert sent[:2] == [[4], [4]]
    assert [1] in sent, "a row that is larger than the limit is alone"
    assert sum(map(sum, sent)) == 14
    assert world.store.pending() == []


def test_a_waiting_thread_gets_the_turn_before_the_one_that_had_it() -> None:
    turn, taken, stopping = Turn(), [0], Event()

    def loop() -> None:
        while not stopping.is_set():
            with turn:
                taken[0] += 1
                time.sleep(0.005)

    thread = Thread(target=loop)
    thread.start()
    try:
        assert eventually(lambda: taken[0] > 0)
        overtaken = 0
        for _ in range(20):
            time.sleep(0.01)
            before = taken[0]
            with turn.within(2.0) as acquired:
                assert acquired
                overtaken += taken[0] - before
        assert overtaken < 20, "a lock alone lets the other thread in about 50 times"
        with turn, turn.within(0.01) as acquired:
            assert not acquired
    finally:
        stopping.set()
        thread.join()
