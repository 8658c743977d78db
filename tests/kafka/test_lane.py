"""A lane on a real broker: rows and their markers in one transaction, whatever refuses, stalls or kills it."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pyarrow as pa
import pytest

from holdfast.errors import KafkaError
from holdfast.kafka.lane import Lane, OutboxRows
from holdfast.kafka.librdkafka import producer
from holdfast.kafka.markers import Marker, MarkerTopic
from holdfast.kafka.port import Fenced, RecordRefused, TransactionAborted
from holdfast.kafka.records import Outgoing
from holdfast.names import QueryId, StoreId, TopicName
from holdfast.runtime.store.port import Time

STORE = StoreId("store")
QUERY, OTHER = QueryId("Q"), QueryId("O")


def rows(*values: bytes | None, key: bytes | None = b"k", timestamp: int = 1) -> pa.Table:
    return pa.table(
        {
            "key": pa.array([key] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array([timestamp] * len(values), pa.int64()),
        }
    )


def part(
    topic: TopicName, records: pa.Table, *, query: QueryId = QUERY, at: int = 1, first: int = 0, complete: bool = True
) -> OutboxRows:
    return OutboxRows(query, Time(at), first, complete, Outgoing(topic, records))


def marker(at: int, count: int) -> Marker:
    return Marker(Time(at), count, STORE)


@pytest.fixture
def markers(settings, kafka) -> MarkerTopic:
    topic = MarkerTopic(settings, kafka)
    topic.create()
    return topic


@pytest.fixture
def lanes(settings, kafka, markers):
    opened = []

    def open_one(number: int = 0, confirm=lambda: None) -> Lane:
        opened.append(Lane(settings, kafka, markers, number, confirm))
        opened[-1].start()
        return opened[-1]

    yield open_one
    for lane in opened:
        lane.close()


def everything(admin, ranges, topic, partitions=1) -> pa.Table:
    every = [(topic, number) for number in range(partitions)]
    return ranges.read({partition: (0, end) for partition, end in admin.written(every).items()})


def test_rows_are_published_in_order_with_tombstones_timestamps_and_markers(lanes, markers, ranges, new_topic):
    topic, other = new_topic(3), new_topic()
    lane = lanes()
    assert markers.read(STORE) == {}
    keys = [f"k{n % 20}".encode() for n in range(2000)]
    many = pa.table(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array([None if n % 7 == 0 else str(n).encode() for n in range(2000)], pa.binary()),
            "timestamp": pa.array(range(1000, 3000), pa.int64()),
        }
    )
    ends = lane.publish(STORE, [part(topic, many, at=5), part(other, rows(b"x", key=None), query=OTHER, at=7)])
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
    lanes()
    assert markers.read(STORE) == {QUERY: marker(5, 2000), OTHER: marker(7, 1)}


def test_partitions_and_headers_are_used(lanes, ranges, new_topic):
    topic = new_topic(3)
    headers = [[{"key": "h", "value": b"1"}], []]
    records = rows(b"a", b"b").append_column("partition", pa.array([2, None], pa.int32()))
    records = records.append_column(
        "headers", pa.array(headers, pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})))
    )
    ends = lanes().publish(STORE, [part(topic, records)])
    read = {row["value"]: row for row in ranges.read({at: (0, end) for at, end in ends.items()}).to_pylist()}
    assert read[b"a"]["partition"] == 2
    assert read[b"a"]["headers"] == headers[0]
    assert read[b"b"]["headers"] == []


def test_an_outbox_has_the_latest_of_its_markers_whichever_lane_wrote_it(lanes, markers, new_topic):
    topic = new_topic()
    main, retry = lanes(0), lanes(1)
    main.publish(STORE, [part(topic, rows(b"1", b"2"), complete=False)])
    retry.publish(STORE, [part(topic, rows(b"3"), first=2)])
    main, _ = lanes(0), lanes(1)
    assert markers.read(STORE) == {QUERY: marker(1, 3)}
    main.publish(STORE, [part(topic, rows(b"4"), at=2)])
    lanes(0)
    assert markers.read(STORE) == {QUERY: marker(2, 1)}
    assert markers.read(STORE, lane=1) == {QUERY: marker(1, 3)}
    assert markers.read(StoreId("another")) == {}


def test_skipped_rows_are_in_the_marker_and_not_in_the_topic(lanes, markers, admin, ranges, new_topic):
    topic = new_topic()
    lane = lanes()
    lane.publish(STORE, [replace(part(topic, rows()), skipped=1)])
    lane.publish(STORE, [part(topic, rows(b"next"), at=2)])
    assert everything(admin, ranges, topic)["value"].to_pylist() == [b"next"]
    assert markers.read(STORE) == {QUERY: marker(2, 1)}


def test_an_open_transaction_of_one_lane_does_not_hide_the_markers_of_the_other(lanes, markers, new_topic):
    topic = new_topic()
    main, retry = lanes(0), lanes(1)
    retry._producer.begin()
    retry._producer.produce(markers.name, b"{}", b"x", partition=1)
    retry._producer.flush()
    main.publish(STORE, [part(topic, rows(b"1"))])
    assert main.recover(STORE) == {QUERY: marker(1, 1)}
    retry.recover(STORE)


def test_a_newer_lane_fences_the_older(lanes, new_topic):
    topic = new_topic()
    old = lanes()
    old.publish(STORE, [part(topic, rows(b"1"))])
    new = lanes()
    with pytest.raises(Fenced) as raised:
        old.publish(STORE, [part(topic, rows(b"2"), at=2)])
    assert raised.value.hint
    with pytest.raises(Fenced):
        old.recover(STORE)
    new.publish(STORE, [part(topic, rows(b"2"), at=2)])


def test_a_lane_takes_its_id_again_only_with_the_lease(lanes, new_topic):
    def lost() -> None:
        raise Fenced("another server has taken this service id")

    topic = new_topic(**{"max.message.bytes": "1000"})
    lane = lanes(confirm=lost)
    with pytest.raises(RecordRefused):
        lane.publish(STORE, [part(topic, rows(os.urandom(100_000)))])
    with pytest.raises(Fenced):
        lane.recover(STORE)
    with pytest.raises(Fenced):
        lane.publish(STORE, [part(topic, rows(b"small"))])


def aborted_by_kafka(lane: Lane, admin, topic: TopicName) -> None:
    """Open a transaction for longer than Kafka allows, as a process does that is suspended."""
    lane._producer.begin()
    lane._producer.produce(topic, b"old", b"k")
    lane._producer.flush()
    deadline = time.monotonic() + 60
    while admin.ends([(topic, 0)])[topic, 0] < 2 and time.monotonic() < deadline:
        time.sleep(0.2)


def test_a_transaction_that_kafka_has_aborted_is_no_other_server(lanes, admin, ranges, new_topic, monkeypatch):
    monkeypatch.setattr(producer, "TRANSACTION_MS", 1_000)
    lane, topic, confirmed = lanes(confirm=lambda: confirmed.append(1)), new_topic(), []
    aborted_by_kafka(lane, admin, topic)
    with pytest.raises(KafkaError, match="cannot be committed") as raised:
        lane._producer.commit()
    assert not isinstance(raised.value, Fenced)
    assert "open for longer than 1 s" in (raised.value.detail or "")
    assert lane.recover(STORE) == {}
    assert confirmed
    lane.publish(STORE, [part(topic, rows(b"new"))])
    assert everything(admin, ranges, topic).column("value").to_pylist() == [b"new"]


def test_a_lane_without_the_lease_ends_after_its_transaction_was_aborted(lanes, admin, new_topic, monkeypatch):
    def lost() -> None:
        raise Fenced("another server has taken this service id")

    monkeypatch.setattr(producer, "TRANSACTION_MS", 1_000)
    lane, topic = lanes(confirm=lost), new_topic()
    aborted_by_kafka(lane, admin, topic)
    with pytest.raises(Fenced, match="has taken"):
        lane.recover(STORE)


def test_a_topic_that_takes_no_records_while_others_do_is_named(lanes, markers, admin, ranges, new_topic, monkeypatch):
    """The broker acknowledges none of its records."""
    good, stalled, reports = new_topic(), new_topic(), producer.TransactionalProducer._delivered
    silent = [stalled]
    batch = [part(good, rows(b"1")), part(stalled, rows(b"2"), query=OTHER)]

    def delivered(self, error, message) -> None:
        if message.topic() not in silent:
            reports(self, error, message)

    monkeypatch.setattr(producer.TransactionalProducer, "_delivered", delivered)
    lane = lanes()
    with pytest.raises(RecordRefused, match="does not take records") as raised:
        lane.publish(STORE, batch)
    assert (raised.value.topic, raised.value.lasting, raised.value.of_record) == (stalled, False, False)
    silent.clear()
    assert lane.recover(STORE) == {}
    lane.publish(STORE, batch)
    lanes()
    assert markers.read(STORE) == {QUERY: marker(1, 1), OTHER: marker(1, 1)}
    for topic, value in ((good, b"1"), (stalled, b"2")):
        assert everything(admin, ranges, topic).column("value").to_pylist() == [value]


def test_a_record_that_is_too_large_names_its_topic_and_the_lane_goes_on(lanes, markers, admin, ranges, new_topic):
    small, healthy = new_topic(**{"max.message.bytes": "1000"}), new_topic()
    lane = lanes()
    batch = [part(healthy, rows(b"good"), query=OTHER), part(small, rows(b"small", os.urandom(100_000)))]
    with pytest.raises(RecordRefused) as raised:
        lane.publish(STORE, batch)
    assert (raised.value.topic, raised.value.lasting, raised.value.of_record) == (small, True, True)
    assert "large" in (raised.value.detail or "").lower()
    assert lane.recover(STORE) == {}
    lane.publish(STORE, [batch[0]])
    lane.publish(STORE, [part(small, rows(b"small"))])
    assert everything(admin, ranges, small)["value"].to_pylist() == [b"small"]
    assert everything(admin, ranges, healthy)["value"].to_pylist() == [b"good"]
    assert markers.read(STORE) == {QUERY: marker(1, 1), OTHER: marker(1, 1)}


def test_a_refusal_is_known_while_further_records_are_produced(lanes, new_topic):
    """Brokers refuse the first records of a large transaction before its last ones are queued."""
    topic = new_topic(**{"max.message.bytes": "1000"})
    client = lanes()._producer
    client.begin()
    client.produce(topic, os.urandom(100_000), b"k")
    time.sleep(2)
    with pytest.raises(RecordRefused) as raised:
        client.produce(topic, b"small", b"k")
    assert (raised.value.topic, raised.value.of_record) == (topic, True)
    client.recover()


@pytest.mark.parametrize("was_written", [False, True])
def test_after_a_topic_that_is_gone_the_lane_goes_on(lanes, admin, ranges, new_topic, monkeypatch, was_written):
    monkeypatch.setattr(producer, "PROPAGATION_MS", 1_000)
    healthy = new_topic()
    lane, gone = lanes(), new_topic() if was_written else TopicName("no_such_topic")
    if was_written:
        lane.publish(STORE, [part(gone, rows(b"0"))])
        admin.delete(gone)
    with pytest.raises(TransactionAborted) as raised:
        lane.publish(STORE, [part(healthy, rows(b"1"), query=OTHER, at=2), part(gone, rows(b"1"), at=2)])
    assert raised.value.lasting
    assert "nknown topic" in (raised.value.detail or "")
    lane.recover(STORE)
    lane.publish(STORE, [part(healthy, rows(b"1"), query=OTHER, at=2)])
    assert everything(admin, ranges, healthy)["value"].to_pylist() == [b"1"]


def test_a_commit_in_doubt_is_decided_by_recovery_and_not_retried_without_end(lanes, new_topic):
    """As after an outage in the middle of a commit: librdkafka then refuses to abort, at once and every time."""
    topic = new_topic()
    lane = lanes()
    calls = []
    commit = lane._producer._producer.commit_transaction

    class InDoubt:
        def __getattr__(self, name):
            return getattr(client, name)

        def commit_transaction(self, timeout):
            calls.append(timeout)
            if len(calls) == 1:
                commit(timeout)
            raise producer.KafkaException(producer.Reported(producer.Reported._CONFLICT, retriable=True))

        def abort_transaction(self, timeout):
            calls.append(timeout)
            raise producer.KafkaException(producer.Reported(producer.Reported._CONFLICT, retriable=True))

    client = lane._producer._producer
    lane._producer._producer = InDoubt()
    with pytest.raises(KafkaError):
        lane.publish(STORE, [part(topic, rows(b"1"))])
    assert lane.recover(STORE) == {QUERY: marker(1, 1)}
    assert len(calls) == 3
    lane.publish(STORE, [part(topic, rows(b"2"), at=2)])


def test_calls_that_fail_at_once_are_repeated_with_pauses(monkeypatch):
    slept = []
    monkeypatch.setattr(producer, "sleep", slept.append)

    def call(timeout: float) -> None:
        del timeout
        if len(slept) < 4:
            raise producer.KafkaException(producer.Reported(producer.Reported._TIMED_OUT, retriable=True))

    producer._retried(call)
    assert slept == [0.1, 0.2, 0.4, 0.8]


def test_more_than_the_queue_holds_is_published(lanes, new_topic):
    topic = new_topic()
    many = pa.table({"key": [b"k"] * 510_000, "value": [b"v"] * 510_000, "timestamp": [1] * 510_000})
    assert lanes().publish(STORE, [part(topic, many)]) == {(topic, 0): 510_000}


KILLED = """
import sys
import pyarrow as pa
from holdfast.config import armed_crash_point, load
from holdfast.crash import arm
from holdfast.kafka.lane import Lane, OutboxRows
from holdfast.kafka.librdkafka.cluster import KafkaCluster
from holdfast.kafka.markers import MarkerTopic
from holdfast.kafka.records import Outgoing
arm(armed_crash_point())
bootstrap, service, topic = sys.argv[1:]
settings = load({"service_id": service}, environment={}).at_kafka(bootstrap)
kafka = KafkaCluster(settings)
markers = MarkerTopic(settings, kafka)
markers.create()
lane = Lane(settings, kafka, markers, 0, lambda: None)
lane.start()
found = markers.read("store").get("Q")
values = [str(n).encode() for n in range(25)]
rows = pa.table({"key": [b"k"] * 25, "value": values, "timestamp": [1] * 25})
for first in range(found.rows if found else 0, 25, 10):
    lane.publish("store", [OutboxRows("Q", 7, first, first == 20, Outgoing(topic, rows.slice(first, 10)))])
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
