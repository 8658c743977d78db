"""Rows that users insert."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from operator import lt
from pathlib import Path
from time import monotonic, sleep

import pyarrow as pa
import pytest

from holdfast.config import Settings, load
from holdfast.errors import KafkaError
from holdfast.kafka.broker import EmbeddedBroker
from holdfast.kafka.librdkafka import writer as module
from holdfast.kafka.librdkafka.admin import Admin
from holdfast.kafka.librdkafka.consumer import RangeReader
from holdfast.kafka.librdkafka.writer import RecordWriter
from holdfast.kafka.port import TopicSpec
from holdfast.kafka.records import Outgoing
from holdfast.names import TopicName


@pytest.fixture(autouse=True)
def short_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUEUED", 100)


def rows(count: int) -> pa.Table:
    numbers = [str(n).encode() for n in range(count)]
    return pa.table({"key": numbers, "value": numbers, "timestamp": pa.array([None] * count, pa.int64())})


def test_more_rows_than_the_queue_has_room_for_are_all_written(
    settings: Settings, admin: Admin, ranges: RangeReader, new_topic: Callable[[], TopicName]
) -> None:
    topic = new_topic()
    writer = RecordWriter(settings)
    writer.write(Outgoing(topic, rows(1_000)))
    end = admin.ends([(topic, 0)])[topic, 0]
    written = ranges.read({(topic, 0): (0, end)}).column("value").to_pylist()
    assert written == [str(n).encode() for n in range(1_000)]
    writer.close()


def test_a_queue_that_stays_full_is_reported(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.5)
    writer = RecordWriter(settings.at_kafka("127.0.0.1:1"))
    with pytest.raises(KafkaError, match="cannot be written") as raised:
        writer.write(Outgoing(TopicName("t"), rows(1_000)))
    writer.close()
    assert (raised.value.detail or "").startswith("Kafka did not acknowledge the rows in time.")


def test_rows_reported_as_failed_are_not_written_later(
    settings: Settings,
    admin: Admin,
    broker: EmbeddedBroker,
    new_topic: Callable[[], TopicName],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SECONDS", 1.0)
    topic = new_topic()
    writer = RecordWriter(settings)
    with broker.suspended(), pytest.raises(KafkaError, match="cannot be written") as raised:
        writer.write(Outgoing(topic, rows(3)))
    assert "may have been written" in (raised.value.detail or "")
    assert "before writing them again" in (raised.value.hint or "")
    assert wait_for_end(admin, topic) == 0
    sleep(3)
    assert wait_for_end(admin, topic) == 0
    writer.close()


def test_a_topic_that_takes_no_rows_holds_up_no_other(
    settings: Settings, admin: Admin, new_topic: Callable[..., TopicName], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here it is missing. Its rows are more than the queue has room for; they are not written once it exists."""
    monkeypatch.setattr(module, "SECONDS", 6.0)
    healthy = new_topic()
    refusing = TopicName(f"{healthy}_missing")
    writer = RecordWriter(settings)
    writer.write(Outgoing(healthy, rows(1)))
    with ThreadPoolExecutor(2) as pool:
        refused = [pool.submit(writer.write, Outgoing(refusing, rows(1_000))) for _ in range(2)]
        sleep(1)
        for _ in range(5):
            started = monotonic()
            writer.write(Outgoing(healthy, rows(20)))
            assert monotonic() - started < 1
        assert not any(each.done() for each in refused)
        for each in refused:
            with pytest.raises(KafkaError, match="cannot be written"):
                each.result(30)
    assert admin.ends([(healthy, 0)]) == {(healthy, 0): 101}
    admin.create(TopicSpec(name=refusing))
    sleep(3)
    assert admin.ends([(refusing, 0)]) == {(refusing, 0): 0}
    writer.write(Outgoing(refusing, rows(3)))
    assert admin.ends([(refusing, 0)]) == {(refusing, 0): 3}
    writer.close()


def test_calls_from_many_threads_are_each_written_whole_and_in_order(
    settings: Settings, admin: Admin, ranges: RangeReader, new_topic: Callable[[], TopicName]
) -> None:
    topic = new_topic()
    writer = RecordWriter(settings)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: writer.write(Outgoing(topic, rows(200))), range(8)))
    end = admin.ends([(topic, 0)])[topic, 0]
    values = [int(v) for v in ranges.read({(topic, 0): (0, end)}).column("value").to_pylist()]
    assert sorted(values) == sorted(list(range(200)) * 8)
    # The first row of each call precedes its second, and so on.
    written_at = [[at for at, value in enumerate(values) if value == n] for n in range(200)]
    assert all(all(map(lt, before, after)) for before, after in pairwise(written_at))
    writer.close()


def wait_for_end(admin: Admin, topic: TopicName) -> int:
    """Where a topic ends, also soon after Kafka was away."""
    for _ in range(40):
        with suppress(KafkaError):
            return admin.ends([(topic, 0)])[topic, 0]
        sleep(0.5)
    raise AssertionError("Kafka did not come back")


def test_calls_of_a_topic_that_takes_nothing_do_not_occupy_all_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS", 2.0)
    monkeypatch.setattr(module, "CALL_SECONDS", 0.3)
    away = load({"data_dir": tmp_path}, environment={}).at_kafka("127.0.0.1:1")
    writer = RecordWriter(away)

    def write(topic: str) -> tuple[str, float]:
        started_at = monotonic()
        with pytest.raises(KafkaError) as raised:
            writer.write(Outgoing(TopicName(topic), rows(1)))
        return str(raised.value), monotonic() - started_at

    with ThreadPoolExecutor(64) as pool:
        answers = [answer.result() for answer in [pool.submit(write, "t") for _ in range(60)]]
    refused = [seconds for text, seconds in answers if "None of these rows was written" in text]
    assert len(refused) == 60 - module.MOST_CALLS
    assert max(refused) < 1.5
    assert "did not acknowledge" in write("other")[0]
    assert "did not acknowledge" in write("t")[0], "there is room again"
    writer.close()


def test_many_calls_of_a_topic_that_takes_rows_are_all_answered(
    settings: Settings, new_topic: Callable[[], TopicName]
) -> None:
    topic, writer = new_topic(), RecordWriter(settings)
    with ThreadPoolExecutor(64) as pool:
        for answer in [pool.submit(writer.write, Outgoing(topic, rows(2))) for _ in range(200)]:
            answer.result()
    assert writer.problem is None
    writer.close()
