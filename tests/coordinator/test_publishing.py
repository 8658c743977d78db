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
from holdfast.coordinator import publishing as publishing_module
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
from holdfast.runtime.store.port import EndOffset, Layout, Time
from holdfast.types import Scalar

from .outboxes import A, B, Outboxes, encode


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


class Slow(Lane):
    """A lane whose transactions take a while."""

    def publish(self, store: StoreId, batch: Sequence[OutboxRows]) -> Mapping[Partition, int]:
        time.sleep(0.1)
        return super().publish(store, batch)


def test_publishing_is_paused_between_two_transactions_of_a_backlog(world: Outboxes) -> None:
    world.rows = 1
    world.commit(1, Q1=[str(n) for n in range(60)])
    publishing = world.publishing(Slow)
    publishing.fence()
    publishing.start()
    try:
        assert eventually(lambda: bool(world.values(A)))
        started_at = time.monotonic()
        with publishing.paused([A]) as paused:
            assert paused
            assert time.monotonic() - started_at < 1.0
            assert len(world.values(A)) < 30
        assert eventually(lambda: len(world.values(A)) == 60)
    finally:
        publishing.stop()
    assert world.values(A) == [str(n).encode() for n in range(60)]


def test_the_main_lane_goes_on_while_the_retry_lane_is_waited_for(
    world: Outboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing_module, "PAUSE_SECONDS", 1.0)
    publishing = world.publishing()
    publishing.fence()
    publishing._blocked.block([A], KafkaError("busy"))
    answers = list[bool]()

    def pause() -> None:
        with publishing.paused([A]) as paused:
            answers.append(paused)

    world.commit(1, Q2=["x"])
    with publishing._retry.turn:
        waiting = Thread(target=pause)
        waiting.start()
        time.sleep(0.2)
        started_at = time.monotonic()
        publishing._publish()
        assert time.monotonic() - started_at < 0.5
        assert world.values(B) == [b"x"]
        waiting.join()
    assert answers == [False]
    pause()
    assert answers == [False, True]


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


class Answerless(Lane):
    """A lane whose first transaction is committed, but whose answer is lost."""

    transactions = 0

    def publish(self, store: StoreId, batch: Sequence[OutboxRows]) -> Mapping[Partition, int]:
        ends = super().publish(store, batch)
        self.transactions += 1
        if self.transactions == 1:
            raise KafkaError("the answer is lost")
        return ends


def pending_and_ends(world: Outboxes) -> int:
    """How many rows of topic A a reader finds that takes what is published of it, and then what is pending."""
    of_a = [query for query, topic in world.queries.items() if topic == A]
    end = max((end.offset for end in world.store.published_ends() if end.topic == A), default=0)
    published = [record for record in world.broker.records(A) if record.offset < end]
    return len(published) + sum(each.rows for each in world.store.pending(of_a))


def test_rows_of_a_transaction_in_doubt_are_marked_with_those_that_follow(world: Outboxes) -> None:
    """The next transaction finds the first tick published, and publishes the second one."""
    world.rows = 2
    publishing = world.publishing(Answerless)
    publishing.fence()
    world.commit(1, Q1=["1"])
    with pytest.raises(KafkaError, match="lost"):
        publishing.publish_pending()
    world.commit(2, Q1=["2", "3"])
    world.commit(3, Q1=["4"])
    failing: list[int] = []
    publish = publishing._main.lane.publish

    def once(*arguments: Any) -> Any:
        failing.append(1)
        if len(failing) > 1:
            raise KafkaError("Kafka is away")
        return publish(*arguments)

    publishing._main.lane.publish = once  # type: ignore[method-assign]
    with pytest.raises(KafkaError, match="away"):
        publishing.publish_pending()
    assert world.values(A) == [b"1", b"2", b"3"]
    assert pending_and_ends(world) == 4


@pytest.mark.parametrize("restarted", [True, False])
def test_all_writers_of_a_topic_are_marked_where_its_end_is(settings: Settings, restarted: bool) -> None:
    """Between two published outboxes of a topic is one that is not published."""
    q1, q2, q3 = (QueryId(name) for name in ("Q1", "Q2", "Q3"))
    world = Outboxes(settings, rows=2, queries={q1: A, q2: A, q3: A})
    publishing = world.publishing(Answerless)
    publishing.fence()
    world.commit(1, Q1=["1"])
    world.commit(2, Q2=["2a", "2b"])
    world.commit(3, Q3=["3"])
    publishing._blocked.stop(q2, "its record is refused")
    with pytest.raises(KafkaError, match="lost"):
        publishing.publish_pending()
    assert world.values(A) == [b"1", b"3"]
    if restarted:
        publishing = world.publishing()
        publishing.fence()
        publishing.recover()
        assert pending_and_ends(world) == 4
    else:
        publishing.retry(q2)
        mark, found = world.store.mark_published, list[int]()

        def marked(*arguments: Any) -> None:
            mark(*arguments)
            found.append(pending_and_ends(world))

        world.store.mark_published = marked  # type: ignore[method-assign]
        publishing.publish_pending()
        assert set(found) == {4}
    publishing.publish_pending()
    assert world.values(A) == [b"1", b"3", b"2a", b"2b"]
    assert world.store.pending() == []


def test_the_retry_lane_marks_all_writers_of_a_topic(settings: Settings) -> None:
    """The outbox whose publishing was in doubt is not the one that is published next."""
    q1, q2 = QueryId("Q1"), QueryId("Q2")
    world = Outboxes(settings, queries={q1: A, q2: A})
    publishing = world.publishing(Answerless)
    publishing.fence()
    publishing._blocked.block([A], KafkaError("busy"), now=True)
    world.commit(2, Q2=["2"])
    with pytest.raises(KafkaError, match="lost"):
        publishing.publish_pending()
    world.commit(1, Q1=["1"])
    mark, found = world.store.mark_published, list[int]()

    def marked(*arguments: Any) -> None:
        mark(*arguments)
        found.append(pending_and_ends(world))

    world.store.mark_published = marked  # type: ignore[method-assign]
    publishing.publish_pending()
    assert world.values(A) == [b"2", b"1"]
    assert set(found) == {2}


def test_a_tick_that_commits_behind_a_barrier_while_the_outboxes_are_read_is_not_published(world: Outboxes) -> None:
    """The coordinator puts the barrier of a query that stops, and then commits the tick that leaves it out."""
    pending = world.store.pending

    def hooked(*of: Any) -> Any:
        world.barriers = {A: Time(1)}
        if not any(each.time == 2 for each in pending()):
            world.commit(2, Q1=["2"])
        return pending(*of)

    world.commit(1, Q1=["1"])
    publishing = world.publishing()
    publishing.fence()
    world.store.pending = hooked  # type: ignore[method-assign]
    publishing.publish_pending()
    assert world.values(A) == [b"1"]


def test_the_rest_of_a_tick_is_read_again_once_its_query_was_replaced(world: Outboxes) -> None:
    world.rows = 2
    world.commit(1, Q1=["1", "2", "3", "4", "5", "6"])
    publishing = world.publishing()
    publishing.fence()
    publish = publishing._main.lane.publish

    def once(*arguments: Any) -> Any:
        publishing._main.lane.publish = publish  # type: ignore[method-assign]
        ends = publish(*arguments)
        world.store.create_outbox(QueryId("Q1"), Layout((), (Scalar.STRING, Scalar.STRING)))
        world.encode = with_second_column
        world.replace_sinks()
        return ends

    publishing._main.lane.publish = once  # type: ignore[method-assign]
    publishing.publish_pending()
    assert world.values(A) == [b"1", b"2", b"3/None", b"4/None", b"5/None", b"6/None"]


def with_second_column(rows: pa.Table, store: Any) -> pa.Table:
    texts = [f"{one}/{two}" for one, two in zip(rows["c0"].to_pylist(), rows["c1"].to_pylist(), strict=True)]
    return encode(rows.set_column(rows.column_names.index("c0"), "c0", [texts]), store)
