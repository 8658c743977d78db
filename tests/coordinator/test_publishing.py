"""What publishing tells the store after a failure."""

import time
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from holdfast.coordinator.publishing import Publishing
from holdfast.errors import StaleStore
from holdfast.kafka.partitioning import partition_for
from holdfast.kafka.problems import TransactionAborted
from holdfast.kafka.publisher import Marker
from holdfast.kafka.records import Partition
from holdfast.names import QueryId, StoreId, TopicName
from holdfast.runtime.plan.windows import WindowInfo, WindowType
from holdfast.runtime.store.port import Moved, Owed, Time

OURS, OTHER = StoreId("ours"), StoreId("other")
A, B = TopicName("a"), TopicName("b")
SINKS = {
    QueryId(topic): SimpleNamespace(topic=topic, encoder=SimpleNamespace(encode=lambda rows, _store: rows, window=None))
    for topic in (A, B)
}


def rows(*values: str) -> pa.Table:
    return pa.table({"value": list(values)})


class Outbox:
    """Owes one row to `a` at time 1 and one to `b` at time 2, until it is told that they are there."""

    id = OURS

    def __init__(self) -> None:
        self.rows = {(QueryId(A), Time(1)): rows("first"), (QueryId(B), Time(2)): rows("second")}
        self.settled: list[tuple[Time, list[Moved]]] = []

    def committed_time(self) -> Time:
        return Time(2)

    def owed(self) -> list[Owed]:
        return [Owed(time, query, owed.num_rows) for (query, time), owed in self.rows.items()]

    def owed_rows(self, query: QueryId, time: Time) -> Any:
        return self.rows[query, time]

    def settle(self, time: Time, ends: Iterable[Moved]) -> None:
        self.rows = {(query, at): owed for (query, at), owed in self.rows.items() if at > time}
        self.settled.append((time, list(ends)))


class Topics:
    """A publisher and the topics it writes; `failing` are the times whose first transaction is aborted."""

    def __init__(self, *failing: int, marker: Marker | None = None) -> None:
        self.failing = set(failing)
        self.marker = marker
        self.written: dict[TopicName, list[str]] = {A: [], B: []}

    def start(self) -> Marker | None:
        return self.marker

    def last_marker(self) -> Marker | None:
        return self.marker

    def abort(self) -> None: ...

    def close(self) -> None: ...

    def publish(
        self, store: StoreId, time: Time, outgoing: Sequence[Any], *, published: Marker | None
    ) -> dict[Partition, int]:
        if published is not None and published.time >= time:
            return {}
        if time in self.failing:
            self.failing.remove(time)
            raise TransactionAborted("the transaction was aborted")
        for out in outgoing:
            self.written[out.topic] += out.rows.column("value").to_pylist()
        self.marker = Marker(store, time, rows=0, chunk=0, complete=True)
        return {(out.topic, 0): len(self.written[out.topic]) for out in outgoing}

    # What an Admin is asked.

    def describe(self, topics: Iterable[TopicName]) -> dict[TopicName, Any]:
        return {topic: SimpleNamespace(name=topic, partitions=1) for topic in sorted(topics)}

    def written_ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return {(topic, part): len(self.written[topic]) for topic, part in partitions}


def published(outbox: Outbox, topics: Topics) -> None:
    """Run a publisher until nothing is owed."""
    admin = SimpleNamespace(describe=topics.describe, written=topics.written_ends)
    publishing = Publishing(outbox, topics, admin, lambda: SINKS, pytest.fail, lambda: None)
    publishing.fence()
    publishing.start()
    publishing.wake()
    publishing.stop()
    assert outbox.rows == {}


def test_every_tick_is_published_once_and_its_ends_are_told():
    outbox, topics = Outbox(), Topics()
    published(outbox, topics)
    assert topics.written == {A: ["first"], B: ["second"]}
    assert outbox.settled == [(Time(2), [Moved(A, 0, 1), Moved(B, 0, 1)])]


def test_the_ends_of_what_was_published_before_a_failure_are_told_too():
    """The first tick is in Kafka when the second fails: it is not sent again, yet the store must learn its end."""
    outbox, topics = Outbox(), Topics(2)
    published(outbox, topics)
    assert topics.written == {A: ["first"], B: ["second"]}
    assert outbox.settled == [(Time(2), [Moved(A, 0, 1), Moved(B, 0, 1)])]


@pytest.mark.parametrize("failing", [(), (1,), (2,)])
def test_the_marker_of_a_store_that_was_given_up_says_nothing(failing: tuple[int, ...]):
    """Its times are those of another store: rows that are owed now are not in Kafka, however late its last one was."""
    outbox, topics = Outbox(), Topics(*failing, marker=Marker(OTHER, Time(99), rows=0, chunk=0, complete=True))
    published(outbox, topics)
    assert topics.written == {A: ["first"], B: ["second"]}


@pytest.mark.parametrize(
    ("type_", "window"), [(WindowType.TUMBLING, b"8 bytes."), (WindowType.SESSION, b"8 bytes." * 2)]
)
def test_a_windowed_record_is_in_the_partition_of_its_key(type_: WindowType, window: bytes):
    keys = [b"ann", b"bob", b"cay", None]
    records = pa.table({"key": [None if key is None else key + window for key in keys]})
    encoder = SimpleNamespace(window=WindowInfo(type=type_))
    admin = SimpleNamespace(describe=lambda topics: {t: SimpleNamespace(name=t, partitions=5) for t in topics})
    publishing = Publishing(Outbox(), Topics(), admin, lambda: SINKS, pytest.fail, lambda: None)
    placed = publishing._placed(SimpleNamespace(topic=A, encoder=encoder), records)
    expected = [None if key is None else partition_for(key, 5) for key in keys]
    assert len(set(expected)) > 2
    assert placed.column("partition").to_pylist() == expected


def fenced(marker: Marker, **more: bool) -> Time:
    topics = Topics(marker=marker)
    return Publishing(Outbox(), topics, SimpleNamespace(), lambda: SINKS, pytest.fail, lambda: None).fence(**more)


def test_a_store_that_is_older_than_what_it_published_is_refused():
    """A tick is committed before it is published, so only a copy of an earlier time finds more published."""
    assert fenced(Marker(OURS, Time(2), rows=0, chunk=0, complete=True)) == 2
    with pytest.raises(StaleStore, match="has not yet computed") as told:
        fenced(Marker(OURS, Time(3), rows=1, chunk=1, complete=False))
    assert "ends at time 2" in told.value.detail
    assert "--republish" in told.value.hint


def test_an_older_store_goes_on_when_that_is_wanted_and_is_told_the_time_to_be_above():
    assert fenced(Marker(OURS, Time(3), rows=0, chunk=0, complete=True), republish=True) == 3


def test_a_record_that_is_refused_again_and_again_is_told_and_not_tried_without_pause():
    class Refusing(Topics):
        attempts = 0

        def publish(self, store, time, outgoing, *, published):
            del store, time, outgoing, published
            self.attempts += 1
            raise TransactionAborted("the record is too large")

    outbox, topics = Outbox(), Refusing()
    admin = SimpleNamespace(describe=topics.describe, written=topics.written_ends)
    publishing = Publishing(outbox, topics, admin, lambda: SINKS, pytest.fail, lambda: None)
    publishing.fence()
    publishing.start()
    publishing.wake()
    deadline = time.monotonic() + 30
    while publishing.problem is None and time.monotonic() < deadline:
        time.sleep(0.05)
    publishing.stop()
    assert publishing.problem == "the record is too large"
    assert 2 <= topics.attempts <= 4
