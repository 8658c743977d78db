import time
from types import SimpleNamespace

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from holdfast.errors import KafkaError, TopicChanged
from holdfast.kafka.client_properties import kafka_client
from holdfast.kafka.librdkafka.consumer import TopicReader
from holdfast.kafka.port import Fetched
from holdfast.kafka.records import RECORDS

from .producers import open_transaction, write


@pytest.fixture
def reader(settings, admin):
    opened = TopicReader(settings, admin)
    yield opened
    opened.close()


def poll_to(reader: TopicReader, ends: dict, seconds: float = 10) -> list[Fetched]:
    """Poll until the positions are `ends`."""
    fetched, deadline = [], time.monotonic() + seconds
    while reader.positions != ends:
        assert time.monotonic() < deadline, f"at {reader.positions}, not at {ends}"
        fetched.append(reader.poll(10_000, 0.2))
    return fetched


def values(fetched: list[Fetched]) -> list[bytes]:
    return [value for each in fetched for value in each.records["value"].to_pylist()]


def delete_records(settings, topic: str, before: int) -> None:
    client = AdminClient(kafka_client(settings))
    for future in client.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result()


def test_every_column_of_a_record_arrives(reader, settings, new_topic):
    topic = new_topic(2)
    write(settings, topic, b"v", key=None, partition=1, timestamp=1234, headers=[("a", b"1"), ("a", None)])
    write(settings, topic, None, key=b"", partition=0, timestamp=5)
    reader.assign({(topic, 0): 0, (topic, 1): 0})
    fetched = poll_to(reader, {(topic, 0): 1, (topic, 1): 1})
    rows = sorted((row for each in fetched for row in each.records.to_pylist()), key=lambda row: row["partition"])
    assert all(each.records.schema == RECORDS for each in fetched)
    assert rows == [
        {"topic": topic, "partition": 0, "offset": 0, "timestamp": 5, "key": b"", "value": None, "headers": []},
        {
            "topic": topic,
            "partition": 1,
            "offset": 0,
            "timestamp": 1234,
            "key": None,
            "value": b"v",
            "headers": [{"key": "a", "value": b"1"}, {"key": "a", "value": None}],
        },
    ]
    assert {(moved.topic, moved.partition): moved.offset for each in fetched for moved in each.moved} == {
        (topic, 0): 1,
        (topic, 1): 1,
    }


def test_open_transactions_are_not_read_and_aborted_ones_only_move_the_position(reader, settings, new_topic):
    topic = new_topic()
    partition = (topic, 0)
    write(settings, topic, b"before")
    reader.assign({partition: 0})
    assert values(poll_to(reader, {partition: 1})) == [b"before"]

    producer = open_transaction(settings, topic, [b"x", b"y"], id=f"{topic}-1")
    assert values([reader.poll(100, 0.3) for _ in range(3)]) == []
    assert reader.positions == {partition: 1}
    assert reader.ends() == {partition: 1}
    producer.abort_transaction()
    # Two aborted records and the marker.
    assert values(poll_to(reader, {partition: 4})) == []

    producer = open_transaction(settings, topic, [b"kept"], id=f"{topic}-1")
    producer.commit_transaction()
    assert values(poll_to(reader, {partition: 6})) == [b"kept"]
    assert reader.ends() == {partition: 6}


def test_the_cached_backlog_asks_nobody_and_is_nothing_at_the_end(reader, settings, new_topic):
    topic = new_topic()
    partition = (topic, 0)
    write(settings, topic, *[b"v" * 10] * 1000)
    reader.assign({partition: 0})
    fetched = reader.poll(10, 5)
    assert 0 < fetched.records.num_rows <= 10
    assert reader.backlog() == {partition: 1000 - reader.positions[partition]}
    poll_to(reader, {partition: 1000})
    while reader.backlog() != {partition: 0}:
        reader.poll(10, 0.2)
    # librdkafka's cached mark is the high watermark: records of an open transaction must not look like work.
    open_transaction(settings, topic, [b"x"], id=f"{topic}-open")
    reader.poll(10, 0.3)
    assert reader.backlog() == {partition: 0}


def test_a_poll_waits_for_the_first_record_and_for_no_second(reader, settings, new_topic):
    topic = new_topic()
    reader.assign({(topic, 0): 0})
    while reader.backlog() != {(topic, 0): 0} or reader.poll(10, 0.2).positions:
        pass
    write(settings, topic, b"v")
    started = time.monotonic()
    assert values([reader.poll(10, 5)]) == [b"v"]
    assert time.monotonic() - started < 1


def test_an_end_reported_before_records_came_does_not_hold_the_position_back(reader, settings, new_topic):
    topic = new_topic()
    reader.assign({(topic, 0): 0})
    time.sleep(1)  # the end of the partition, at 0, waits to be reported
    for n in range(5):
        write(settings, topic, b"%d" % n, partition=0)
    time.sleep(1)  # the records wait behind it
    fetched = reader.poll(3, 2)
    # One event of the three is the end; a slow machine may report it again between the records.
    assert 0 < fetched.records.num_rows < 3
    assert fetched.positions == reader.positions == {(topic, 0): fetched.records.num_rows}


def test_records_beside_a_failed_event_are_kept_and_the_failure_is_reported_next(
    reader, settings, new_topic, monkeypatch
):
    """They are read, and the consumer will not bring them again."""
    topic = new_topic()
    write(settings, topic, b"v", partition=0)
    reader.assign({(topic, 0): 0})
    messages, deadline = [], time.monotonic() + 10
    while {message.error() is None for message in messages} != {True, False}:
        assert time.monotonic() < deadline
        messages += reader._consumer.consume(10, 0.2)

    def failing(message, moved, lost):
        del message, moved, lost
        raise KafkaError("the broker is away")

    monkeypatch.setattr(reader, "_take_event", failing)
    with monkeypatch.context() as patched:
        first, *others = messages
        patched.setattr(reader, "_consumer", SimpleNamespace(consume=lambda most, _: [first] if most == 1 else others))
        fetched = reader.poll(10, 0)
        assert values([fetched]) == [b"v"]
        assert fetched.positions == reader.positions == {(topic, 0): 1}
        with pytest.raises(KafkaError, match="the broker is away"):
            reader.poll(10, 0)


def test_seeking_drops_what_was_fetched_ahead(reader, settings, new_topic):
    topic = new_topic()
    partition = (topic, 0)
    write(settings, topic, *[str(n).encode() for n in range(100)])
    reader.assign({partition: 0})
    reader.poll(1, 5)
    reader.seek({partition: 97})
    assert values(poll_to(reader, {partition: 100})) == [b"97", b"98", b"99"]
    reader.seek({partition: 98})
    assert values(poll_to(reader, {partition: 100})) == [b"98", b"99"]


def test_topics_are_added_and_removed_while_reading(reader, settings, new_topic):
    one, two = new_topic(), new_topic()
    write(settings, one, b"1")
    write(settings, two, b"2")
    reader.assign({(one, 0): 0})
    assert values(poll_to(reader, {(one, 0): 1})) == [b"1"]
    reader.seek({(two, 0): 0})
    assert values(poll_to(reader, {(one, 0): 1, (two, 0): 1})) == [b"2"]
    reader.remove([(one, 0)])
    write(settings, one, b"unread")
    write(settings, two, b"3")
    assert values(poll_to(reader, {(two, 0): 2})) == [b"3"]


def test_a_truncated_partition_is_reported_with_its_offsets_and_the_others_continue(reader, settings, new_topic):
    cut, whole = new_topic(), new_topic()
    write(settings, cut, *[b"v"] * 10)
    delete_records(settings, cut, 5)
    write(settings, whole, b"w")
    reader.assign({(cut, 0): 2, (whole, 0): 0})
    changed, read = {}, []
    for _ in range(50):
        fetched = reader.poll(100, 0.2)
        changed |= fetched.changed
        read += values([fetched])
        if changed and read:
            break
    assert read == [b"w"]
    detail = changed[cut, 0].detail
    assert detail == "Partition 0 is to be read from offset 2, but now has offsets 5 to 10."
    assert reader.positions == {(whole, 0): 1}


def test_a_position_past_the_end_is_reported(reader, settings, new_topic):
    topic = new_topic()
    write(settings, topic, b"v")
    reader.assign({(topic, 0): 500})
    fetched = [reader.poll(100, 0.2) for _ in range(10)]
    changed = next(each.changed for each in fetched if each.changed)
    assert "from offset 500, but now has offsets 0 to 1" in changed[topic, 0].detail


def test_ranges_are_read_again(ranges, settings, new_topic):
    topic = new_topic(2)
    write(settings, topic, *[str(n).encode() for n in range(1000)], partition=0)
    write(settings, topic, *[b"a", b"b"], partition=1)
    open_transaction(settings, topic, [b"gone"] * 3, id=f"{topic}-aborted").abort_transaction()
    assert ranges.read({}).num_rows == 0
    assert ranges.read({(topic, 0): (7, 7)}).num_rows == 0
    for start, end in [(0, 1000), (10, 12), (999, 1000)]:
        read = ranges.read({(topic, 0): (start, end), (topic, 1): (0, 1)})
        rows = [row["value"] for row in read.to_pylist() if row["partition"] == 0]
        assert rows == [str(n).encode() for n in range(start, end)]
        assert [row["value"] for row in read.to_pylist() if row["partition"] == 1] == [b"a"]


def test_a_range_that_ends_in_aborted_records_is_read_to_its_end(ranges, settings, new_topic):
    topic = new_topic()
    write(settings, topic, b"1")
    open_transaction(settings, topic, [b"x"] * 3, id=topic).abort_transaction()
    # One record, three aborted ones, the marker: which may still be on its way.
    assert ranges.read({(topic, 0): (0, 5)})["value"].to_pylist() == [b"1"]
    assert ranges.read({(topic, 0): (2, 4)}).num_rows == 0


def test_a_range_that_is_gone_is_reported(ranges, settings, new_topic):
    topic = new_topic()
    write(settings, topic, *[b"v"] * 10)
    delete_records(settings, topic, 5)
    with pytest.raises(TopicChanged, match="truncated"):
        ranges.read({(topic, 0): (0, 10)})
    with pytest.raises(TopicChanged, match="truncated"):
        ranges.read({(topic, 0): (8, 20)})
