"""The behaviour of `kafka.port`, the same on brokers and in memory."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from holdfast.config import Settings, load
from holdfast.errors import KafkaError, ServiceTaken, TopicChanged, UnknownObject
from holdfast.kafka.broker import EmbeddedBroker
from holdfast.kafka.client_properties import kafka_client
from holdfast.kafka.command_log import CommandLog
from holdfast.kafka.lane import Lane, OutboxRows
from holdfast.kafka.lease import LeaseIntervals
from holdfast.kafka.librdkafka import producer as producers
from holdfast.kafka.librdkafka import writer as writers
from holdfast.kafka.librdkafka.cluster import KafkaCluster
from holdfast.kafka.markers import Marker, MarkerTopic
from holdfast.kafka.memory.broker import MemoryBroker
from holdfast.kafka.memory.kafka import MemoryKafka
from holdfast.kafka.partitioner import partition_for
from holdfast.kafka.port import Consumer, Fenced, Kafka, RecordRefused, TopicSpec
from holdfast.kafka.records import Outgoing, Partition
from holdfast.kafka.tail import TopicTail
from holdfast.names import QueryId, StoreId, TopicName
from holdfast.runtime.store.port import Time


@dataclass
class Adapter:
    """One way to have a Kafka. `another` is what a second server of the same service uses."""

    settings: Settings
    kafka: Kafka
    another: Callable[[], Kafka]
    truncate: Callable[[Partition, int], None]
    add_partitions: Callable[[TopicName, int], None]
    suspended: Callable[[], AbstractContextManager[None]]
    """Kafka does not answer within the block."""


def in_memory() -> Iterator[Adapter]:
    broker = MemoryBroker()
    settings = load({}, environment={})

    def open_kafka() -> MemoryKafka:
        return MemoryKafka(broker, settings.service_id)

    yield Adapter(settings, open_kafka(), open_kafka, broker.delete_records, broker.add_partitions, broker.suspended)


def on_brokers(settings: Settings, broker: EmbeddedBroker) -> Iterator[Adapter]:
    opened: list[KafkaCluster] = []

    def open_kafka() -> KafkaCluster:
        opened.append(KafkaCluster(settings, LeaseIntervals(beat=0.2)))
        return opened[-1]

    def truncate(partition: Partition, before: int) -> None:
        client = AdminClient(kafka_client(settings))
        (future,) = client.delete_records([TopicPartition(*partition, before)]).values()
        future.result()

    def add_partitions(topic: TopicName, partitions: int) -> None:
        client = AdminClient(kafka_client(settings))
        client.create_partitions([NewPartitions(topic, partitions)])[topic].result()

    yield Adapter(settings, open_kafka(), open_kafka, truncate, add_partitions, broker.suspended)
    for kafka in opened:
        kafka.close()


@pytest.fixture(params=["memory", "brokers"])
def adapter(request: pytest.FixtureRequest) -> Iterator[Adapter]:
    if request.param == "memory":
        yield from in_memory()
    else:
        yield from on_brokers(request.getfixturevalue("settings"), request.getfixturevalue("broker"))


@pytest.fixture
def kafka(adapter: Adapter) -> Kafka:
    return adapter.kafka


numbers = iter(range(1_000_000))


def new_topic(kafka: Kafka, partitions: int = 1, **config: str) -> TopicName:
    name = TopicName(f"port{next(numbers)}")
    kafka.topics.create(TopicSpec(name=name, partitions=partitions, config=config))
    return name


def rows(*values: bytes | None, key: bytes | None = b"k", timestamp: int = 1) -> pa.Table:
    return pa.table(
        {
            "key": pa.array([key] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array([timestamp] * len(values), pa.int64()),
        }
    )


def write(kafka: Kafka, topic: TopicName, *values: bytes | None, **more) -> None:
    with closing(kafka.writer()) as writer:
        writer.write(Outgoing(topic, rows(*values, **more)))


def everything(kafka: Kafka, topic: TopicName, partitions: int = 1) -> list[dict]:
    every = [(topic, number) for number in range(partitions)]
    ends = settled_ends(kafka, every)
    return kafka.ranges.read({p: (0, ends[p]) for p in every}).to_pylist()


def settled_ends(kafka: Kafka, partitions: list[Partition]) -> dict[Partition, int]:
    """The ends once a commit's markers are written, which takes brokers some milliseconds."""
    deadline = time.monotonic() + 5
    while (ends := kafka.topics.ends(partitions)) != kafka.topics.written(partitions) and time.monotonic() < deadline:
        time.sleep(0.02)
    return dict(ends)


def poll_to(consumer: Consumer, ends: dict[Partition, int]) -> list[bytes]:
    """Poll until the positions are `ends`."""
    found: list[bytes] = []
    deadline = time.monotonic() + 10
    while consumer.positions != ends:
        assert time.monotonic() < deadline, f"at {consumer.positions}, not at {ends}"
        found += consumer.poll(1_000, 0.2).records["value"].to_pylist()
    return found


# -- topics


def test_topics_are_created_described_and_deleted(kafka):
    one, two = new_topic(kafka), new_topic(kafka, 3, **{"cleanup.policy": "compact"})
    missing = TopicName("port_missing")
    described = kafka.topics.describe([one, two, missing])
    assert {name: found.partitions for name, found in described.items()} == {one: 1, two: 3}
    assert described[one].id != described[two].id
    assert described[two].replicas == (1, 1, 1)
    assert {one, two} <= set(kafka.topics.topics())
    assert kafka.topics.config(two)["cleanup.policy"] == "compact"
    assert kafka.topics.config(one)["cleanup.policy"] == "delete"
    assert kafka.topics.exists(one)
    assert not kafka.topics.exists(missing)
    kafka.topics.delete(one, missing)
    deadline = time.monotonic() + 10
    while kafka.topics.exists(one) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not kafka.topics.exists(one)


def test_creating_an_existing_topic_needs_the_same_partitions(kafka):
    topic = new_topic(kafka, 2)
    kafka.topics.create(TopicSpec(name=topic, partitions=2))
    with pytest.raises(KafkaError, match="exists with a different number of partitions") as raised:
        kafka.topics.create(TopicSpec(name=topic, partitions=3))
    assert "PARTITIONS=2" in raised.value.hint


def test_a_topic_that_cannot_be_created_is_refused_by_check_too(kafka):
    good = TopicSpec(name=TopicName("port_checked_only"))
    kafka.topics.check(good)
    assert not kafka.topics.exists(good.name)
    for bad in (TopicSpec(name=TopicName("a b")), TopicSpec(name=TopicName("port_replicated"), replication=3)):
        for attempt in (kafka.topics.check, kafka.topics.create):
            with pytest.raises(KafkaError, match="cannot be created"):
                attempt(bad)


def test_a_recreated_and_a_deleted_topic_are_changes(kafka):
    kept, again, gone = (new_topic(kafka) for _ in range(3))
    ids = {name: found.id for name, found in kafka.topics.describe([kept, again, gone]).items()}
    assert kafka.topics.changes(ids) == {}
    kafka.topics.delete(again, gone)
    deadline = time.monotonic() + 10
    while kafka.topics.exists(again) and time.monotonic() < deadline:
        time.sleep(0.05)
    kafka.topics.create(TopicSpec(name=again))
    changed = kafka.topics.changes(ids)
    assert {name: "recreated" in error.message for name, error in changed.items()} == {again: True, gone: False}


def test_partitions_that_are_added_are_described_and_read(adapter):
    kafka, topic = adapter.kafka, new_topic(adapter.kafka)
    id_ = kafka.topics.describe([topic])[topic].id
    write(kafka, topic, b"first")
    consumer = kafka.consumer()
    consumer.assign({(topic, 0): 0})
    assert poll_to(consumer, {(topic, 0): 1}) == [b"first"]
    adapter.add_partitions(topic, 3)
    deadline = time.monotonic() + 10
    while (found := kafka.topics.describe([topic])[topic]).partitions == 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (found.id, found.partitions, found.replicas) == (id_, 3, (1, 1, 1))
    assert kafka.topics.changes({topic: id_}) == {}
    producer = kafka.producer(f"{topic}-id")
    producer.start()
    producer.begin()
    producer.produce(topic, b"second", b"k", partition=2)
    assert producer.commit() == {(topic, 2): 1}
    consumer.seek({(topic, 2): 0})
    assert poll_to(consumer, {(topic, 0): 1, (topic, 2): 2}) == [b"second"]
    consumer.close()
    producer.close()


def test_offsets_by_timestamp(kafka):
    topic = new_topic(kafka)
    for timestamp in (100, 200, 300):
        write(kafka, topic, b"v", timestamp=timestamp)
    found = {at: kafka.topics.offsets_at([(topic, 0)], at) for at in (0, 200, 201, 301)}
    assert found == {0: {(topic, 0): 0}, 200: {(topic, 0): 1}, 201: {(topic, 0): 2}, 301: {}}


def test_clusters_have_an_id(adapter):
    assert adapter.kafka.topics.cluster_id() == adapter.another().topics.cluster_id() != ""


# -- records


def test_rows_keep_their_columns_and_go_to_the_partition_of_their_key(kafka):
    topic = new_topic(kafka, 3)
    for key in (b"a", b"b", b"c"):
        write(kafka, topic, key.upper(), None, key=key, timestamp=7)
    found = sorted(everything(kafka, topic, 3), key=lambda row: (row["key"], row["offset"]))
    assert [(row["key"], row["value"], row["timestamp"], row["headers"], row["partition"]) for row in found] == [
        (key, value, 7, [], partition_for(key, 3)) for key in (b"a", b"b", b"c") for value in (key.upper(), None)
    ]


def test_a_record_without_a_timestamp_gets_the_present(kafka):
    topic = new_topic(kafka)
    before = time.time_ns() // 1_000_000
    write(kafka, topic, b"v", timestamp=0)
    (row,) = everything(kafka, topic)
    assert before - 1_000 <= row["timestamp"] <= time.time_ns() // 1_000_000 + 1_000


def test_the_broker_stamps_where_the_topic_says_so(kafka):
    topic = new_topic(kafka, **{"message.timestamp.type": "LogAppendTime"})
    write(kafka, topic, b"v", timestamp=5)
    assert everything(kafka, topic)[0]["timestamp"] > 1_000_000


def test_writing_to_a_missing_topic_is_an_error(kafka, monkeypatch):
    monkeypatch.setattr(writers, "SECONDS", 2.0)
    with pytest.raises(KafkaError):
        write(kafka, TopicName("port_nowhere"), b"v")


def test_ranges_that_are_gone_or_not_there_yet_are_errors(adapter):
    kafka, topic = adapter.kafka, new_topic(adapter.kafka)
    partition = (topic, 0)
    write(kafka, topic, b"0", b"1", b"2")
    assert kafka.ranges.read({partition: (1, 3)})["value"].to_pylist() == [b"1", b"2"]
    assert kafka.ranges.read({partition: (2, 2)}).num_rows == 0
    adapter.truncate(partition, 2)
    assert kafka.topics.starts([partition]) == {partition: 2}
    for gone in ((0, 3), (2, 9)):
        with pytest.raises(TopicChanged, match="truncated or recreated"):
            kafka.ranges.read({partition: gone})
    assert kafka.ranges.read({partition: (2, 3)})["value"].to_pylist() == [b"2"]


# -- transactions


def test_a_transaction_is_visible_once_committed_and_its_marker_takes_an_offset(kafka):
    topic = new_topic(kafka)
    partition = (topic, 0)
    write(kafka, topic, b"before")
    producer = kafka.producer(f"{topic}-id")
    producer.start()
    producer.begin()
    producer.produce(topic, b"x", b"k", timestamp=3, headers=[("h", b"1"), ("h", None)])
    producer.produce(topic, b"y", b"k", timestamp=3)
    assert kafka.topics.ends([partition]) == {partition: 1}
    assert producer.commit() == {partition: 3}
    assert settled_ends(kafka, [partition]) == {partition: 4}
    found = everything(kafka, topic)
    assert [row["value"] for row in found] == [b"before", b"x", b"y"]
    assert found[1]["headers"] == [{"key": "h", "value": b"1"}, {"key": "h", "value": None}]
    producer.close()


def test_what_is_written_behind_an_open_transaction_waits_for_its_end(kafka):
    topic = new_topic(kafka)
    partition = (topic, 0)
    producer = kafka.producer(f"{topic}-id")
    producer.start()
    producer.begin()
    producer.produce(topic, b"aborted", b"k")
    deadline = time.monotonic() + 10
    while kafka.topics.written([partition]) != {partition: 1} and time.monotonic() < deadline:
        time.sleep(0.05)
    write(kafka, topic, b"behind")
    consumer = kafka.consumer()
    consumer.assign({partition: 0})
    assert consumer.poll(10, 0.3).records.num_rows == 0
    assert kafka.topics.ends([partition]) == consumer.ends() == {partition: 0}
    assert kafka.topics.written([partition]) == {partition: 2}
    assert consumer.positions == {partition: 0}
    producer.recover()
    assert poll_to(consumer, {partition: 3}) == [b"behind"]
    assert settled_ends(kafka, [partition]) == {partition: 3}
    consumer.close()
    producer.close()


def test_an_aborted_transaction_is_never_read_but_passed(kafka):
    topic = new_topic(kafka)
    partition = (topic, 0)
    producer = kafka.producer(f"{topic}-id")
    producer.start()
    consumer = kafka.consumer()
    consumer.assign({partition: 0})
    producer.begin()
    producer.produce(topic, b"x", b"k")
    assert consumer.poll(10, 0.1).records.num_rows == 0
    producer.recover()
    producer.begin()
    producer.produce(topic, b"kept", b"k")
    producer.commit()
    assert poll_to(consumer, {partition: 4}) == [b"kept"]
    assert [row["value"] for row in everything(kafka, topic)] == [b"kept"]
    consumer.close()
    producer.close()


def test_a_newer_producer_fences_an_older_and_aborts_its_transaction(adapter):
    kafka, topic = adapter.kafka, new_topic(adapter.kafka)
    old = kafka.producer(f"{topic}-id")
    old.start()
    old.begin()
    old.produce(topic, b"old", b"k")
    new = adapter.another().producer(f"{topic}-id")
    new.start()
    with pytest.raises(Fenced):
        old.commit()
    new.begin()
    new.produce(topic, b"new", b"k")
    new.commit()
    assert [row["value"] for row in everything(kafka, topic)] == [b"new"]


def test_a_transaction_with_a_refused_record_is_aborted_whole(kafka, monkeypatch):
    monkeypatch.setattr(producers, "PROPAGATION_MS", 1_000)
    topic = new_topic(kafka)
    producer = kafka.producer(f"{topic}-id")
    producer.start()
    producer.begin()
    producer.produce(topic, b"x", b"k")
    with pytest.raises(RecordRefused) as raised:  # noqa: PT012
        producer.produce("port_nowhere_else", b"x", b"k")
        producer.commit()
    assert (raised.value.topic, raised.value.lasting) == ("port_nowhere_else", True)
    producer.begin()
    producer.produce(topic, b"after", b"k")
    producer.commit()
    assert [row["value"] for row in everything(kafka, topic)] == [b"after"]


# -- following


def test_a_consumer_follows_seeks_and_leaves(kafka):
    one, two = new_topic(kafka), new_topic(kafka)
    write(kafka, one, *(str(n).encode() for n in range(5)))
    write(kafka, two, b"two")
    consumer = kafka.consumer()
    consumer.assign({(one, 0): 3, (two, 0): 0})
    assert sorted(poll_to(consumer, {(one, 0): 5, (two, 0): 1})) == [b"3", b"4", b"two"]
    consumer.seek({(one, 0): 4})
    assert poll_to(consumer, {(one, 0): 5, (two, 0): 1}) == [b"4"]
    consumer.remove([(two, 0)])
    write(kafka, two, b"unseen")
    write(kafka, one, b"5")
    assert poll_to(consumer, {(one, 0): 6}) == [b"5"]
    assert consumer.ends() == {(one, 0): 6}
    consumer.close()


def test_a_poll_brings_no_more_than_asked_for_and_is_woken_by_a_record(kafka):
    topic = new_topic(kafka)
    consumer = kafka.consumer()
    consumer.assign({(topic, 0): 0})
    while consumer.poll(10, 0.3).positions:
        pass
    threading.Timer(0.1, write, [kafka, topic, b"1", b"2", b"3"]).start()
    started = time.monotonic()
    found: list[bytes] = []
    while len(found) < 3:
        fetched = consumer.poll(2, 5)
        assert fetched.records.num_rows <= 2
        found += fetched.records["value"].to_pylist()
    assert found == [b"1", b"2", b"3"]
    assert time.monotonic() - started < 4
    consumer.close()


def test_a_truncated_partition_is_reported_and_left_while_others_go_on(adapter):
    kafka = adapter.kafka
    cut, other = new_topic(kafka), new_topic(kafka)
    write(kafka, cut, b"0", b"1", b"2")
    write(kafka, other, b"v")
    adapter.truncate((cut, 0), 3)
    consumer = kafka.consumer()
    consumer.assign({(cut, 0): 1, (other, 0): 0})
    changed: dict[Partition, TopicChanged] = {}
    found: list[bytes] = []
    deadline = time.monotonic() + 10
    while not (changed and found) and time.monotonic() < deadline:
        fetched = consumer.poll(10, 0.2)
        changed |= fetched.changed
        found += fetched.records["value"].to_pylist()
    assert "from offset 1, but now has offsets 3 to 3" in changed[cut, 0].detail
    assert found == [b"v"]
    assert (cut, 0) not in consumer.positions
    consumer.close()


def test_a_deleted_topic_gives_no_more_records_while_others_go_on(kafka):
    gone, kept = new_topic(kafka), new_topic(kafka)
    write(kafka, gone, b"0")
    consumer = kafka.consumer()
    consumer.assign({(gone, 0): 0, (kept, 0): 0})
    assert poll_to(consumer, {(gone, 0): 1, (kept, 0): 0}) == [b"0"]
    kafka.topics.delete(gone)
    deadline = time.monotonic() + 10
    while kafka.topics.exists(gone) and time.monotonic() < deadline:
        time.sleep(0.05)
    write(kafka, kept, b"1")
    found: list[bytes] = []
    while not found and time.monotonic() < deadline:
        fetched = consumer.poll(10, 0.2)
        assert not fetched.changed
        found += fetched.records["value"].to_pylist()
    assert found == [b"1"]
    consumer.remove([(gone, 0)])
    assert consumer.positions == {(kept, 0): 1}
    consumer.close()


def test_kafka_may_be_away_for_a_while(adapter, monkeypatch):
    kafka, topic = adapter.kafka, new_topic(adapter.kafka)
    partition = (topic, 0)
    consumer = kafka.consumer()
    write(kafka, topic, b"before")
    consumer.assign({partition: 0})
    assert poll_to(consumer, {partition: 1}) == [b"before"]
    with adapter.suspended():
        with monkeypatch.context() as patched:
            patched.setattr(writers, "SECONDS", 1.0)
            with pytest.raises(KafkaError):
                write(kafka, topic, b"refused")
        assert consumer.poll(10, 0.1).records.num_rows == 0
    deadline = time.monotonic() + 30
    ends: dict[Partition, int] = {}
    while not ends and time.monotonic() < deadline:
        with suppress(KafkaError):
            ends = dict(kafka.topics.ends([partition]))
    assert ends == {partition: 1}
    write(kafka, topic, b"after")
    assert poll_to(consumer, {partition: 2}) == [b"after"]
    consumer.close()


def test_a_tail_reads_from_the_end_or_the_beginning(kafka):
    topic = new_topic(kafka)
    write(kafka, topic, b"before")
    with pytest.raises(UnknownObject):
        TopicTail(kafka, TopicName("port_no_such"), from_beginning=True)
    with TopicTail(kafka, topic, from_beginning=True) as whole, TopicTail(kafka, topic, from_beginning=False) as tail:
        write(kafka, topic, b"after")
        assert first_values(whole, 2) == [b"before", b"after"]
        assert first_values(tail, 1) == [b"after"]


def first_values(tail: TopicTail, count: int) -> list[bytes]:
    found: list[bytes] = []
    deadline = time.monotonic() + 10
    while len(found) < count and time.monotonic() < deadline:
        found += tail.next(0.2)["value"].to_pylist()
    return found


# -- what is built on it


def test_commands_are_read_back_by_the_next_server(adapter):
    log = CommandLog(adapter.settings, adapter.kafka)
    log.open()
    offsets = [log.append(b"k", value) for value in (b"1", b"2")]
    again = CommandLog(adapter.settings, adapter.another())
    again.open()
    assert [(record.offset, record.value) for record in again.read_all()] == list(
        zip(offsets, (b"1", b"2"), strict=True)
    )
    with pytest.raises(Fenced):
        log.append(b"k", b"3")
    log.close()
    again.close()


def test_the_marker_of_a_lane_is_found_by_the_next(adapter):
    topic, store, query = new_topic(adapter.kafka), StoreId("s"), QueryId("q")
    markers = MarkerTopic(adapter.settings, adapter.kafka)
    markers.create()
    lane = Lane(adapter.settings, adapter.kafka, markers, 0, lambda: None)
    lane.start()
    part = OutboxRows(query, Time(7), 0, True, Outgoing(topic, rows(b"x", b"y")))
    assert lane.publish(store, [part]) == {(topic, 0): 2}
    again = Lane(adapter.settings, adapter.another(), markers, 0, lambda: None)
    again.start()
    assert markers.read(store) == {query: part.marker(store)} == {query: Marker(Time(7), 2, store)}
    with pytest.raises(Fenced):
        lane.publish(store, [part])
    assert [row["value"] for row in everything(adapter.kafka, topic)] == [b"x", b"y"]
    again.close()


def test_one_owner_has_the_lease_until_it_is_released(adapter):
    first, second = (kafka.lease(on_lost=lambda: None) for kafka in (adapter.kafka, adapter.another()))
    first.acquire("store-1")
    with pytest.raises(ServiceTaken, match="another server runs with service id"):
        second.acquire("store-2")
    first.release()
    first.release()
    second.acquire("store-2")
    second.release()
