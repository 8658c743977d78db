import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pyarrow as pa
import pytest

from holdfast.errors import KafkaError
from holdfast.kafka.problems import Fenced, TransactionAborted
from holdfast.kafka.publisher import Marker, Outgoing, TransactionalPublisher, chunks
from holdfast.names import StoreId, TopicName
from holdfast.runtime.store.port import Time

STORE = StoreId("store")


def rows(*values: bytes | None, key: bytes | None = b"k", timestamp: int = 1) -> pa.Table:
    return pa.table(
        {
            "key": pa.array([key] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array([timestamp] * len(values), pa.int64()),
        }
    )


@pytest.fixture
def publishers(settings, admin, ranges):
    opened = []

    def open_one(**changed) -> TransactionalPublisher:
        opened.append(TransactionalPublisher(replace(settings, **changed), admin, ranges))
        return opened[-1]

    yield open_one
    for publisher in opened:
        publisher.close()


def everything(admin, ranges, topic, partitions=1) -> pa.Table:
    every = [(topic, number) for number in range(partitions)]
    return ranges.read({partition: (0, end) for partition, end in admin.ends(every).items()})


def test_a_tick_is_published_in_order_with_tombstones_timestamps_and_a_marker(publishers, ranges, new_topic):
    topic, other = new_topic(3), new_topic()
    publisher = publishers()
    assert publisher.start() is None
    keys = [f"k{n % 20}".encode() for n in range(2000)]
    many = pa.table(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array([None if n % 7 == 0 else str(n).encode() for n in range(2000)], pa.binary()),
            "timestamp": pa.array(range(1000, 3000), pa.int64()),
        }
    )
    ends = publisher.publish(STORE, Time(5), [Outgoing(topic, many), Outgoing(other, rows(b"x", key=None))])
    assert sum(end for (name, _), end in ends.items() if name == topic) == 2000
    read = ranges.read({partition: (0, end) for partition, end in ends.items()}).to_pylist()
    for key in set(keys):
        written = [row for row in many.to_pylist() if row["key"] == key]
        got = [row for row in read if row["key"] == key]
        assert len({row["partition"] for row in got}) == 1
        assert [(row["value"], row["timestamp"]) for row in got] == [
            (row["value"], row["timestamp"]) for row in written
        ]
    assert [row["key"] for row in read if row["topic"] == other] == [None]
    assert publishers().start() == Marker(STORE, Time(5), 2001, 1, complete=True)


def test_partitions_and_headers_can_be_given(publishers, ranges, new_topic):
    topic = new_topic(3)
    publisher = publishers()
    publisher.start()
    headers = [[{"key": "h", "value": b"1"}], []]
    given = rows(b"a", b"b").append_column("partition", pa.array([2, None], pa.int32()))
    given = given.append_column(
        "headers", pa.array(headers, pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})))
    )
    ends = publisher.publish(STORE, Time(1), [Outgoing(topic, given)])
    read = {row["value"]: row for row in ranges.read({at: (0, end) for at, end in ends.items()}).to_pylist()}
    assert read[b"a"]["partition"] == 2
    assert read[b"a"]["headers"] == headers[0]
    assert read[b"b"]["headers"] == []


def test_a_large_tick_goes_on_after_its_last_committed_chunk(publishers, admin, ranges, new_topic):
    one, two = new_topic(), new_topic()
    outgoing = [Outgoing(one, rows(*[str(n).encode() for n in range(25)])), Outgoing(two, rows(b"a", b"b"))]
    first = publishers(transaction_rows=10)
    first.start()
    batches = chunks(outgoing, after=0, size=10)
    first.begin()
    for part in next(batches):
        first.produce(part)
    first.commit(Marker(STORE, Time(3), 10, 1, complete=False))
    first.begin()
    for part in next(batches):
        first.produce(part)
    # It dies here: the second chunk is written, and not committed.

    second = publishers(transaction_rows=4)
    marker = second.start()
    assert marker == Marker(STORE, Time(3), 10, 1, complete=False)
    second.publish(STORE, Time(2), outgoing, published=marker)
    second.publish(STORE, Time(3), outgoing, published=marker)
    third = publishers()
    marker = third.start()
    assert third.publish(STORE, Time(3), outgoing, published=marker) == {}
    assert marker == Marker(STORE, Time(3), 27, 6, complete=True)
    assert everything(admin, ranges, one)["value"].to_pylist() == [str(n).encode() for n in range(25)]
    assert everything(admin, ranges, two)["value"].to_pylist() == [b"a", b"b"]


def test_an_empty_tick_still_leaves_its_marker(publishers):
    publisher = publishers()
    publisher.start()
    assert publisher.publish(STORE, Time(9), []) == {}
    assert publishers().start() == Marker(STORE, Time(9), 0, 1, complete=True)


def test_the_last_marker_is_found_behind_many_aborted_ones(publishers):
    publisher = publishers()
    publisher.start()
    publisher.publish(STORE, Time(1), [])
    publisher.begin()
    for _ in range(700):
        publisher._producer.produce(publisher._marker_topic, b"{}", b"x", partition=0)
    publisher._producer.flush()
    publisher.abort()
    assert publishers().start() == Marker(STORE, Time(1), 0, 1, complete=True)


def test_a_newer_publisher_fences_the_older(publishers, new_topic):
    topic = new_topic()
    old, new = publishers(), publishers()
    old.start()
    old.publish(STORE, Time(1), [Outgoing(topic, rows(b"1"))])
    new.start()
    with pytest.raises(Fenced) as raised:
        old.publish(STORE, Time(2), [Outgoing(topic, rows(b"2"))])
    assert raised.value.hint
    new.publish(STORE, Time(2), [Outgoing(topic, rows(b"2"))])


def test_a_record_that_the_topic_refuses_aborts_the_transaction_with_the_reason(publishers, admin, ranges, new_topic):
    topic = new_topic(**{"max.message.bytes": "1000"})
    publisher = publishers()
    publisher.start()
    with pytest.raises(TransactionAborted) as raised:
        publisher.publish(STORE, Time(1), [Outgoing(topic, rows(b"small", os.urandom(100_000)))])
    assert "large" in (raised.value.detail or "").lower()
    assert publisher.last_marker() is None
    publisher.publish(STORE, Time(1), [Outgoing(topic, rows(b"small"))])
    assert publishers().start() is not None
    assert everything(admin, ranges, topic)["value"].to_pylist() == [b"small"]


def test_a_topic_that_is_not_there_is_told(publishers):
    publisher = publishers()
    publisher.start()
    with pytest.raises(KafkaError):
        publisher.publish(STORE, Time(1), [Outgoing(TopicName("no_such_topic"), rows(b"1"))])


def test_more_than_the_queue_holds_is_published(publishers, new_topic):
    topic = new_topic()
    publisher = publishers(transaction_rows=600_000)
    publisher.start()
    many = pa.table({"key": [b"k"] * 510_000, "value": [b"v"] * 510_000, "timestamp": [1] * 510_000})
    assert publisher.publish(STORE, Time(1), [Outgoing(topic, many)]) == {(topic, 0): 510_000}


KILLED = """
import sys
import pyarrow as pa
from dataclasses import replace
from holdfast.config import load
from holdfast.kafka.admin import Admin
from holdfast.kafka.consumer import RangeReader
from holdfast.kafka.publisher import Outgoing, TransactionalPublisher
bootstrap, service, topic = sys.argv[1:]
settings = replace(load({"service_id": service}, environment={}).at_kafka(bootstrap), transaction_rows=10)
admin = Admin(settings)
publisher = TransactionalPublisher(settings, admin, RangeReader(settings, admin))
marker = publisher.start()
values = [str(n).encode() for n in range(25)]
rows = pa.table({"key": [b"k"] * 25, "value": values, "timestamp": [1] * 25})
publisher.publish("store", 7, [Outgoing(topic, rows)], published=marker)
print("done")
"""


@pytest.mark.parametrize(
    "point", ["before_produce:2", "after_produce:2", "before_transaction_commit:2", "after_transaction_commit:2"]
)
def test_a_killed_publisher_leaves_no_gap_and_no_repeat(point, settings, admin, ranges, new_topic):
    topic = new_topic()
    command = [sys.executable, "-c", KILLED, settings.kafka or "", settings.service_id, topic]
    killed = subprocess.run(command, env={**os.environ, "HOLDFAST_CRASH": point}, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout == "done\n"
    deadline = time.monotonic() + 5
    while len(got := everything(admin, ranges, topic)["value"].to_pylist()) < 25 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert got == [str(n).encode() for n in range(25)]
