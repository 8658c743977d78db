"""Reading ranges of offsets: many at a time, where one that does not come holds up no other."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from holdfast.config import Settings
from holdfast.errors import KafkaError
from holdfast.kafka.librdkafka.cluster import KafkaCluster
from holdfast.kafka.librdkafka.consumer import CONSUMERS, RangeReader
from holdfast.kafka.markers import MarkerTopic
from holdfast.kafka.port import TopicSilent
from holdfast.names import StoreId, TopicName
from tests.kafka.producers import open_transaction, write

NewTopic = Callable[..., TopicName]


@pytest.fixture
def silent(settings: Settings, new_topic: NewTopic) -> Iterator[TopicName]:
    """A topic whose record nobody can read yet: its transaction is open."""
    topic = new_topic()
    producer = open_transaction(settings, topic, [b"v"], id=f"{topic}-1")
    yield topic
    producer.abort_transaction()


@contextmanager
def reading(reader: RangeReader, topic: TopicName, count: int, timeout: float) -> Iterator[None]:
    """Meanwhile, threads read a topic until their time is over."""
    with ThreadPoolExecutor(count) as pool:
        reads = [pool.submit(reader.read, {(topic, 0): (0, 1)}, timeout=timeout) for _ in range(count)]
        time.sleep(0.5)
        yield
        for each in reads:
            with pytest.raises(KafkaError, match="cannot be read"):
                each.result()


def test_a_range_that_does_not_come_holds_up_no_other(
    settings: Settings, ranges: RangeReader, new_topic: NewTopic, silent: TopicName
) -> None:
    topic = new_topic()
    write(settings, topic, b"1", b"2")
    with reading(ranges, silent, CONSUMERS - 1, timeout=4):
        started = time.monotonic()
        for _ in range(3):
            assert ranges.read({(topic, 0): (0, 2)})["value"].to_pylist() == [b"1", b"2"]
        assert time.monotonic() - started < 2
    for _ in range(CONSUMERS):
        assert ranges.read({(topic, 0): (1, 2)})["value"].to_pylist() == [b"2"]


def test_with_all_consumers_busy_a_read_times_out_and_those_of_internal_topics_do_not_wait(
    settings: Settings, kafka: KafkaCluster, new_topic: NewTopic, silent: TopicName
) -> None:
    topic = new_topic()
    write(settings, topic, b"1")
    markers = MarkerTopic(settings, kafka)
    markers.create()
    write(settings, markers.name, b'{"store": "s", "time": 5, "rows": 0}', key=b"Q", partition=0)
    with reading(kafka.ranges, silent, CONSUMERS, timeout=6):
        with pytest.raises(TopicSilent, match=topic) as raised:
            kafka.ranges.read({(topic, 0): (0, 1)}, timeout=0.2)
        assert "consumers" in str(raised.value.detail)
        started = time.monotonic()
        assert kafka.push_ranges.read({(topic, 0): (0, 1)})["value"].to_pylist() == [b"1"]
        assert {marker.time for marker in markers.read(StoreId("s")).values()} == {5}
        assert time.monotonic() - started < 3
