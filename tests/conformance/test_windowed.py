"""Windowed topics and store changelogs of a Kafka Streams application, read as tables, answer as its stores did."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from runtime.driver import Driver, Record
from runtime.test_tick_laws import cut

from holdfast.kafka.port import TopicSpec
from holdfast.names import TopicName
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.store.port import Time
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import parse

from .windowed_records import StoredRecord, Window, WindowedTopic, read_topics, store_answers

Tables = Mapping[str, WindowedTopic]
"""Each topic of the file, by the table over it."""


@pytest.fixture(scope="module")
def tables(conformance: Path) -> Tables:
    return {f"T{i}": topic for i, topic in enumerate(read_topics(conformance))}


@pytest.fixture
def driver(engine, tables: Tables, tmp_path: Path) -> Iterator[Driver]:
    made = Driver(engine, folder=tmp_path / "store")
    for name, topic in tables.items():
        made.broker.create(TopicSpec(name=TopicName(topic.name), partitions=topic.partitions))
        made.execute(create(name, topic))
    yield made
    made.close()


def create(name: str, topic: WindowedTopic) -> str:
    window = topic.layout.window
    size = value_of(window.size)
    properties = {
        "KAFKA_TOPIC": topic.name,
        "FORMAT": "KAFKA",
        "WINDOW_TYPE": window.type,
        "WINDOW_SIZE": None if size is None else f"{size.millis} MILLISECONDS",
        "WINDOW_TOPIC": topic.layout.topic,
        "RETENTION": f"{topic.retention_ms} MILLISECONDS",
    }
    listed = ", ".join(f"{key}='{value}'" for key, value in properties.items() if value is not None)
    return f"CREATE TABLE {name} (k STRING PRIMARY KEY, v {topic.value_type}) WITH ({listed});"


def write(driver: Driver, topic: WindowedTopic, records: Sequence[StoredRecord]) -> None:
    """Write records, and run the tick that reads them."""
    driver.tick([Record(topic.name, r.key, r.value, r.timestamp, r.partition) for r in records])


def answers(driver: Driver, name: str, where: str = "", at: Time | None = None) -> dict[Window, Any]:
    moment = "" if at is None else f" AS OF {at}"
    text = f"SELECT k, WINDOWSTART, WINDOWEND, v FROM {name}{moment} {where};"
    bound = bind(parse(text)[0].statement, driver.catalog)
    assert isinstance(bound, BoundSelect)
    rows = [tuple(row.values()) for row in driver.service.pull(bound).rows.to_pylist()]
    found = {(key, start, end): value for key, start, end, value in rows}
    assert len(found) == len(rows)
    return found


def test_the_stores_of_kafka_streams_answer_by_the_rules_of_their_page(tables):
    """The model with which other tests compare, and the exact bound of retention."""
    assert {name: store_answers(topic, topic.records) for name, topic in tables.items()} == {
        name: topic.stored for name, topic in tables.items()
    }


def test_each_topic_and_changelog_answers_as_the_store(driver, tables):
    for name, topic in tables.items():
        write(driver, topic, topic.records)
        assert answers(driver, name) == topic.stored, topic.name


def test_a_window_has_the_timestamp_of_its_last_record(driver, tables):
    for name, topic in tables.items():
        write(driver, topic, topic.records)
        last = {topic.window(record): record.timestamp for record in topic.records}
        found = {tuple(row[:3]): row[-1] for row in driver.rows(name)}
        assert found == {window: last[window] for window in topic.stored}


def test_a_table_that_is_created_afterwards_answers_as_the_store(driver, tables):
    for name, topic in tables.items():
        write(driver, topic, topic.records)
        driver.execute(create(f"LATER_{name}", topic))
        assert answers(driver, f"LATER_{name}") == topic.stored, topic.name


def test_windows_are_fetched_by_key_and_range(driver, tables):
    """Both bounds are inclusive, and are those of the start of a window; a key is not a prefix of another."""
    for name, topic in tables.items():
        write(driver, topic, topic.records)
        for key, group in groupby(sorted(topic.stored), key=lambda window: window[0]):
            windows = list(group)
            first, last = windows[len(windows) // 4][1], windows[len(windows) * 3 // 4][1]
            fetched = answers(driver, name, f"WHERE k = '{key}' AND WINDOWSTART >= {first} AND WINDOWSTART <= {last}")
            assert fetched == {w: topic.stored[w] for w in windows if first <= w[1] <= last}
            fetched = answers(driver, name, f"WHERE k = '{key}' AND WINDOWSTART = {first}")
            assert fetched == {w: topic.stored[w] for w in windows if w[1] == first}
            assert answers(driver, name, f"WHERE k = '{key}'") == {w: topic.stored[w] for w in windows}


def test_every_moment_of_a_topic_answers_as_the_store_did_then(driver, tables):
    """Records that arrive in several ticks; each tick is a time to read at, also later."""
    for name, topic in tables.items():
        read, then = [], {}
        for part in cut(topic.records, range(0, len(topic.records), 1 + len(topic.records) // 5)):
            write(driver, topic, part)
            read += part
            then[driver.time] = store_answers(topic, read)
        assert {at: answers(driver, name, at=at) for at in then} == then


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_a_server_that_ends_in_the_middle_resumes(end, engine, driver, tables, tmp_path):
    for topic in tables.values():
        write(driver, topic, topic.records[: len(topic.records) // 2])
    if end == "stopped":
        driver.close()
        again = tmp_path / "store"
    else:
        again = copied(driver, tmp_path / "copy")
        driver.close()
    resumed = Driver(engine, folder=again, broker=driver.broker, clock=driver.clock)
    for name, topic in tables.items():
        assert answers(resumed, name) == store_answers(topic, topic.records[: len(topic.records) // 2]), topic.name
        write(resumed, topic, topic.records[len(topic.records) // 2 :])
        assert answers(resumed, name) == topic.stored, topic.name
    resumed.close()


def copied(driver: Driver, folder: Path) -> Path:
    """The store as another process would find it if this one were killed now."""
    folder.mkdir()
    for file, size in driver.store.pin_files().items():
        (folder / file.name).write_bytes(file.read_bytes()[:size])
    driver.store.unpin_files()
    return folder
