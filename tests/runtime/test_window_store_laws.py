"""A table over a windowed topic has the windows of a window store, however its records are cut into ticks."""

from collections import Counter
from collections.abc import Sequence, Set
from decimal import Decimal
from typing import Any

import pytest
from conformance.windowed_records import StoredRecord, WindowedTopic, store_answers
from hypothesis import example, given
from hypothesis import strategies as st
from laws import slow_law
from runtime.driver import Driver, Record
from runtime.test_tick_laws import cut

from holdfast.coordinator.intervals import Intervals
from holdfast.errors import UnreadableTime
from holdfast.names import CollectionId
from holdfast.runtime.plan.windows import Duration, WindowInfo, WindowTopic, WindowType
from holdfast.runtime.serdes.window_bytes import WindowBytes, WindowedKeyCodec
from holdfast.runtime.store.port import Time
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import parse
from holdfast.types import Scalar

pytestmark = pytest.mark.law

RETENTION = 20
SQL = """
CREATE TABLE tumbling (k STRING PRIMARY KEY, v BIGINT) WITH (KAFKA_TOPIC='tumbling', FORMAT='KAFKA',
  WINDOW_TYPE='TUMBLING', WINDOW_SIZE='10 MILLISECONDS', RETENTION='20 MILLISECONDS');
CREATE TABLE logged (k STRING PRIMARY KEY, v BIGINT) WITH (KAFKA_TOPIC='logged', FORMAT='KAFKA',
  WINDOW_TYPE='HOPPING', WINDOW_SIZE='10 MILLISECONDS', WINDOW_TOPIC='CHANGELOG', RETENTION='20 MILLISECONDS');
CREATE TABLE visits (k STRING PRIMARY KEY, v BIGINT) WITH (KAFKA_TOPIC='visits', FORMAT='KAFKA',
  WINDOW_TYPE='SESSION', RETENTION='20 MILLISECONDS');
CREATE TABLE copied AS SELECT k, v FROM tumbling;
CREATE TABLE doubled AS SELECT k, v * 2 AS v FROM tumbling WHERE v > 2;
CREATE TABLE totals WITH (VALUE_FORMAT='JSON') AS SELECT WINDOWSTART AS started, SUM(v) AS s, COUNT(*) AS c
  FROM logged GROUP BY WINDOWSTART HAVING COUNT(*) > 0;
"""
TIME = Duration(Decimal("0.01"))
LAYOUTS = {
    "tumbling": WindowedKeyCodec(WindowInfo(type=WindowType.TUMBLING, size=TIME)),
    "logged": WindowedKeyCodec(WindowInfo(type=WindowType.HOPPING, size=TIME), WindowTopic.CHANGELOG),
    "visits": WindowedKeyCodec(WindowInfo(type=WindowType.SESSION)),
}
PARTITIONS = {b"a": 0, b"ab": 0, b"c": 1}
SHORT = Intervals(settle=0.0, window_ms=1)
"""History is forgotten at once, except where a hold retains it."""
NOT_A_NUMBER, NO_WINDOW = b"?", b"short"


def row(topic: str, key: bytes, start: int, value: int | None, length: int = 0) -> Record:
    raw = LAYOUTS[topic].encode(WindowBytes(key, start, start + length))
    written = None if value is None else value.to_bytes(8, "big")
    return Record(topic, raw, written, 1_000 + start, PARTITIONS[key])


@st.composite
def records(draw) -> Record:
    topic, key = draw(st.sampled_from(list(LAYOUTS))), draw(st.sampled_from(list(PARTITIONS)))
    start, length = draw(st.integers(0, 12)) * 5, draw(st.integers(0, 7))
    written = row(topic, key, start, draw(st.one_of(st.none(), *(st.integers(1, 6),) * 3)), length)
    match draw(st.integers(0, 9)):
        case 0:
            return Record(topic, NO_WINDOW, b"", 0, PARTITIONS[key])
        case 1:
            return Record(topic, written.key, NOT_A_NUMBER, 0, PARTITIONS[key])
        case _:
            return written


def stored_topic(name: str, written: Sequence[Record]) -> WindowedTopic:
    """The records of a topic that can be decoded."""
    good = [
        StoredRecord(r.partition, i, r.timestamp, r.key, r.value)
        for i, r in enumerate(written)
        if r.topic == name and r.key not in (None, NO_WINDOW) and r.value != NOT_A_NUMBER
    ]
    return WindowedTopic(name, LAYOUTS[name], RETENTION, Scalar.BIGINT, good, {})


def windows(driver: Driver, name: str, at: Time | None = None) -> dict[Any, Any]:
    """The value of each window, as a client reads it."""
    moment = "" if at is None else f" AS OF {at}"
    text = f"SELECT k, WINDOWSTART, WINDOWEND, v FROM {name}{moment};"
    bound = bind(parse(text)[0].statement, driver.catalog)
    assert isinstance(bound, BoundSelect)
    rows = [tuple(found.values()) for found in driver.service.pull(bound).rows.to_pylist()]
    return {(key, start, end): value for key, start, end, value in rows}


def expected(written: Sequence[Record]) -> dict[str, object]:
    topics = {name: stored_topic(name, written) for name in LAYOUTS}
    found: dict[str, Any] = {name: store_answers(topic, topic.records) for name, topic in topics.items()}
    found["doubled"] = {window: v * 2 for window, v in found["tumbling"].items() if v > 2}
    totals, counts = Counter[int](), Counter[int]()
    for (_, start, _), value in found["logged"].items():
        totals[start] += value
        counts[start] += 1
    found["totals"] = {start: (totals[start], counts[start]) for start in counts}
    found["dropped"] = {name: count for name, topic in topics.items() if (count := dropped(topic))}
    return found


def dropped(topic: WindowedTopic) -> int:
    """The number of records whose window had expired when they arrived."""
    observed, count = dict[int, int](), 0
    for record in topic.records:
        time = topic.time(topic.window(record))
        observed[record.partition] = max(observed.get(record.partition, time), time)
        count += time <= observed[record.partition] - RETENTION
    return count


def found_in(driver: Driver, late: Counter[str]) -> dict[str, object]:
    found: dict[str, Any] = {name: windows(driver, name) for name in (*LAYOUTS, "doubled")}
    found["totals"] = {started: (s, c) for started, s, c, _ in driver.rows("TOTALS")}
    return {**found, "dropped": dict(late)}


def run(driver: Driver, ticks: Sequence[Sequence[Record]], restarts: Set[int] = frozenset()) -> dict[str, object]:
    late = Counter[str]()
    for i, tick in enumerate(ticks):
        if i in restarts:
            driver = driver.restart()
        outcome = driver.tick(tick)
        assert outcome.failed == {}
        for (name, _), dropped in outcome.late.items():
            late[str(name).lower()] += dropped.total
    found = found_in(driver, late)
    check_deletes(driver, [record for tick in ticks for record in tick])
    driver.close()
    return found


def check_deletes(driver: Driver, written: Sequence[Record]) -> None:
    """A window that no record deletes is deleted at its own time: when it expires."""
    deleted = {record.key for record in written if record.value is None}
    for sent in driver.sent("COPIED"):
        if sent.value is None and sent.key not in deleted:
            assert sent.timestamp == int.from_bytes(sent.key[-8:])


EXPIRING = [
    row("tumbling", b"a", 0, 3),
    row("tumbling", b"c", 0, 4),
    row("tumbling", b"a", 20, None),
    row("tumbling", b"a", 10, 5),
    row("tumbling", b"ab", 0, 6),
    row("tumbling", b"a", 0, None),
    row("logged", b"a", 40, 1),
    row("logged", b"ab", 20, 2),
    row("logged", b"ab", 25, 3),
    row("logged", b"a", 45, 4),
    row("logged", b"c", 5, 5),
    row("visits", b"a", 0, 1, 7),
    row("visits", b"ab", 25, 2, 2),
    row("visits", b"a", 2, 3, 5),
    row("visits", b"a", 0, None, 8),
    row("visits", b"a", 5, 4, 3),
]
CASES = st.lists(records(), min_size=8, max_size=24), st.sets(st.integers(1, 24), max_size=5)


@slow_law(4)
@example(EXPIRING, range(20))
@example(EXPIRING, [])
@given(*CASES)
def test_any_ticks_end_as_the_store_does(engine, written, places):
    assert run(Driver(engine, SQL), cut(written, places)) == expected(written)


@slow_law(2)
@example(EXPIRING, range(20), frozenset(range(1, 20)))
@given(*CASES, st.sets(st.integers(1, 5)))
def test_so_they_do_with_restarts_between_them(engine, tmp_path_factory, written, places, restarts):
    driver = Driver(engine, SQL, folder=tmp_path_factory.mktemp("store") / "files")
    assert run(driver, cut(written, places), restarts) == expected(written)


@slow_law(3)
@example(EXPIRING, range(20), 4)
@given(*CASES, st.integers(0, 5))
def test_what_a_hold_retains_does_not_expire(engine, written, places, held):
    """Windows leave the table at the time of a tick; the times before it answer as they did."""
    driver = Driver(engine, SQL, intervals=SHORT)
    answers: dict[Time, dict[str, Any]] = {}
    ticks = cut(written, places)
    for i, tick in enumerate(ticks):
        driver.tick(tick)
        now = driver.time
        answers[now] = {name: windows(driver, name, now) for name in LAYOUTS}
        if i == min(held, len(ticks) - 1):
            driver.execute(f"CREATE HOLD h ON tumbling, logged, visits AT {now};")
            hold = now
        driver.clock.advance(5.0)
        driver.service.run_until_idle()
    driver.clock.advance(60.0)
    driver.service.run_until_idle()
    for time, then in answers.items():
        for name in LAYOUTS:
            if time < hold:
                with pytest.raises(UnreadableTime):
                    windows(driver, name, time)
            else:
                assert windows(driver, name, time) == then[name]
    assert all(driver.store.frontier(CollectionId(name.upper())).since == hold for name in LAYOUTS)
    driver.close()
