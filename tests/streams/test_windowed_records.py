"""Records that a Kafka Streams application wrote, read by topologies: stores answer as the application's did."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest

from holdfast import crash
from holdfast.client.stores.store_type import open_store
from holdfast.kafka.port import TopicSpec
from holdfast.names import TopicName
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.windows import WindowTopic
from holdfast.runtime.spark.engine import Engine
from holdfast.streams import (
    Consumed,
    Materialized,
    Serde,
    Serdes,
    StreamsBuilder,
    Windowed,
    session_store,
    window_store,
)
from holdfast.streams.deployment import deploy
from holdfast.streams.embedded import EmbeddedDeployment
from holdfast.streams.service_reader import ServiceReader
from holdfast.types import Scalar
from tests.conformance.windowed_records import StoredRecord, Window, WindowedTopic, read_topics, store_answers
from tests.runtime.driver import Driver, Record

Entry = tuple[Window, Any]
VALUES: Mapping[Scalar, Serde[Any]] = {
    Scalar.BIGINT: Serdes.long(),
    Scalar.INTEGER: Serdes.integer(),
    Scalar.STRING: Serdes.string(),
}


@pytest.fixture(scope="module")
def topics(conformance: Path) -> Sequence[WindowedTopic]:
    return list(read_topics(conformance))


def topology(topics: Sequence[WindowedTopic]) -> StreamsBuilder:
    """Each topic as a store of its name."""
    built = StreamsBuilder("app")
    for topic in topics:
        consumed = Consumed.with_(Serdes.string(), VALUES[topic.value_type])
        if topic.layout.topic is WindowTopic.CHANGELOG:
            consumed = consumed.for_changelog()
        stored = Materialized.as_(topic.name).with_retention(timedelta(milliseconds=topic.retention_ms))
        size = value_of(topic.layout.window.size)
        if size is None:
            built.sessioned_table(topic.name, consumed, stored)
        else:
            built.windowed_table(topic.name, timedelta(milliseconds=size.millis), consumed, stored)
    return built


class Killed(BaseException):
    """Ends a tick where a kill would."""


class Application:
    """A topology on a database of this process."""

    def __init__(self, driver: Driver, topics: Sequence[WindowedTopic]) -> None:
        self.driver, self.topics = driver, topics
        for topic in topics:
            if TopicName(topic.name) not in driver.broker.topics:
                driver.broker.create(TopicSpec(name=TopicName(topic.name), partitions=topic.partitions))
        deploy(topology(topics).build(), EmbeddedDeployment(driver.service))
        driver.service.run_until_idle()

    def write(self, *, topics: Iterable[WindowedTopic] | None = None, part: slice = slice(None)) -> None:
        for topic in self.topics if topics is None else topics:
            self.driver.tick([_record(topic, record) for record in topic.records[part]])

    def store(self, topic: WindowedTopic) -> Any:
        return open_store(
            ServiceReader(self.driver.service), topic.name, session_store() if topic.is_session else window_store()
        )

    def contents(self) -> Mapping[str, Mapping[Window, Any]]:
        return {topic.name: dict(entries(self.store(topic).all())) for topic in self.topics}


def _record(topic: WindowedTopic, record: StoredRecord) -> Record:
    return Record(topic.name, record.key, record.value, record.timestamp, record.partition)


def entries(found: Iterator[tuple[Windowed[str], Any]]) -> list[Entry]:
    return [((key.key, key.window.start, key.window.end), value) for key, value in found]


def ordered(topic: WindowedTopic, *, backward: bool = False) -> list[Entry]:
    """All entries of the application's store, oldest first."""

    def age(entry: Entry) -> tuple[Any, ...]:
        (key, start, end), _ = entry
        return (end, start, key) if topic.is_session else (start, key)

    return sorted(topic.stored.items(), key=age, reverse=backward)


@pytest.fixture
def application(engine: Engine, topics: Sequence[WindowedTopic], tmp_path: Path) -> Iterator[Application]:
    made = Application(Driver(engine, folder=tmp_path / "store"), topics)
    yield made
    made.driver.close()


def check_windows(topic: WindowedTopic, store: Any) -> None:
    every = ordered(topic)
    assert entries(store.all()) == every
    assert entries(store.backward_all()) == every[::-1]
    keys = sorted({key for (key, _, _), _ in every})
    starts = sorted({start for (_, start, _), _ in every})
    low, high = starts[len(starts) // 4], starts[len(starts) * 3 // 4]
    within = [(window, value) for window, value in every if low <= window[1] <= high]
    assert entries(store.fetch_all(low, high)) == within
    assert entries(store.backward_fetch_all(low, high)) == within[::-1]
    first, last = keys[len(keys) // 4], keys[len(keys) * 3 // 4]
    ranged = [(window, value) for window, value in within if first <= window[0] <= last]
    assert entries(store.fetch_range(first, last, low, high)) == ranged
    assert entries(store.backward_fetch_range(first, last, low, high)) == ranged[::-1]
    for key in keys:
        own = [(start, value) for (each, start, _), value in within if each == key]
        assert list(store.fetch(key, low, high)) == own
        assert list(store.backward_fetch(key, low, high)) == own[::-1]
        assert [store.fetch(key, start) for start, _ in own] == [value for _, value in own]
        assert store.fetch(key, high + 1) is None or high + 1 in starts


def check_sessions(topic: WindowedTopic, store: Any) -> None:
    every = ordered(topic)
    assert entries(store.all()) == every
    assert entries(store.backward_all()) == every[::-1]
    ends = sorted({end for (_, _, end), _ in every})
    low, high = ends[len(ends) // 4], ends[len(ends) * 3 // 4]
    assert entries(store.find_all_sessions(low, high)) == [each for each in every if low <= each[0][2] <= high]
    overlapping = [each for each in every if each[0][2] >= low and each[0][1] <= high]
    keys = sorted({key for (key, _, _), _ in every})
    first, last = keys[len(keys) // 4], keys[len(keys) * 3 // 4]
    ranged = [each for each in overlapping if first <= each[0][0] <= last]
    assert entries(store.find_sessions_range(first, last, low, high)) == ranged
    assert entries(store.backward_find_sessions_range(first, last, low, high)) == ranged[::-1]
    for key in keys:
        own = [each for each in every if each[0][0] == key]
        assert entries(store.fetch(key)) == own
        assert entries(store.backward_fetch(key)) == own[::-1]
        found = [each for each in overlapping if each[0][0] == key]
        assert entries(store.find_sessions(key, low, high)) == found
        assert entries(store.backward_find_sessions(key, low, high)) == found[::-1]
        assert [store.fetch_session(*window) for window, _ in own] == [value for _, value in own]


def check(application: Application) -> None:
    for topic in application.topics:
        (check_sessions if topic.is_session else check_windows)(topic, application.store(topic))


def test_every_query_answers_as_the_store_of_the_application(application: Application) -> None:
    application.write()
    check(application)


def test_every_query_answers_as_the_store_after_a_restart(
    application: Application, topics: Sequence[WindowedTopic]
) -> None:
    application.write(part=slice(None, 20))
    restarted = Application(application.driver.restart(), topics)
    assert restarted.contents() == {topic.name: store_answers(topic, topic.records[:20]) for topic in topics}
    restarted.write(part=slice(20, None))
    check(restarted)
    restarted.driver.close()


@pytest.mark.parametrize("point", ["before_store_commit", "after_store_commit"])
@pytest.mark.parametrize("hit", [1, 3])
def test_a_kill_inside_a_tick_loses_and_repeats_nothing(
    point: crash.CrashPoint,
    hit: int,
    application: Application,
    topics: Sequence[WindowedTopic],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The files as they are at the point are what another process finds if this one is killed there."""
    driver, killed = application.driver, tmp_path / "killed"
    reached = 0

    def copy(name: crash.CrashPoint) -> None:
        nonlocal reached
        reached += name == point
        if name == point and reached == hit:
            killed.mkdir()
            for file in (tmp_path / "store").glob("store.duckdb*"):
                copyfile(file, killed / file.name)
            raise Killed

    monkeypatch.setattr(crash, "_reached", copy)
    rest = iter(topics)
    with pytest.raises(Killed):
        application.write(topics=rest)
    monkeypatch.undo()
    resumed = Application(Driver(driver.engine, folder=killed, broker=driver.broker, clock=driver.clock), topics)
    resumed.write(topics=rest)
    check(resumed)
    resumed.driver.close()
