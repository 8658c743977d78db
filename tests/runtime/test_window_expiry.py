"""Tables over windowed topics retain windows with the rules of Kafka Streams' stores."""

import struct
from contextlib import suppress
from datetime import timedelta

import pyarrow as pa
from runtime.driver import Driver, Record

from holdfast.errors import JobTimeout, SparkRestarted
from holdfast.names import StateId
from holdfast.runtime.outcome import Late

TUMBLING = """
CREATE TABLE t (k STRING PRIMARY KEY, v BIGINT)
  WITH (KAFKA_TOPIC='t', KEY_FORMAT='KAFKA', VALUE_FORMAT='KAFKA',
        WINDOW_TYPE='TUMBLING', WINDOW_SIZE='10 MILLISECONDS', RETENTION='30 MILLISECONDS');
"""
COUNTED = TUMBLING + "CREATE TABLE c AS SELECT v, COUNT(*) AS n FROM t GROUP BY v;"
CHANGELOG = TUMBLING.replace("WINDOW_SIZE", "WINDOW_TOPIC='CHANGELOG', WINDOW_SIZE")
SESSIONS = """
CREATE TABLE t (k STRING PRIMARY KEY, v BIGINT)
  WITH (KAFKA_TOPIC='t', KEY_FORMAT='KAFKA', VALUE_FORMAT='KAFKA', WINDOW_TYPE='SESSION', RETENTION='30 MILLISECONDS');
"""


def window(key: str, start: int, value: int | None = 1, partition: int = 0) -> Record:
    raw = None if value is None else struct.pack(">q", value)
    return Record("t", key.encode() + struct.pack(">q", start), raw, start + 5, partition)


def session(key: str, start: int, end: int, value: int | None = 1) -> Record:
    raw = None if value is None else struct.pack(">q", value)
    return Record("t", key.encode() + struct.pack(">qq", end, start), raw, end)


def windows(driver: Driver, at: int | None = None) -> list[tuple[object, ...]]:
    return [row[:-1] for row in driver.rows("T", at)]


def test_a_window_leaves_when_its_start_is_the_retention_before_the_observed_time(engine):
    driver = Driver(engine, COUNTED)
    driver.tick([window("a", 0), window("b", 10)])
    driver.tick([window("a", 29)])
    assert windows(driver) == [("a", 0, 10, 1), ("a", 29, 39, 1), ("b", 10, 20, 1)]
    driver.tick([window("a", 30)])
    assert windows(driver) == [("a", 29, 39, 1), ("a", 30, 40, 1), ("b", 10, 20, 1)]
    assert driver.rows("C")[0][:2] == (1, 3)
    driver.close()


def test_a_session_leaves_when_its_end_is_the_retention_before_the_observed_time(engine):
    driver = Driver(engine, SESSIONS)
    driver.tick([session("a", 0, 10), session("b", 0, 11)])
    driver.tick([session("a", 35, 40)])
    assert windows(driver) == [("a", 35, 40, 1), ("b", 0, 11, 1)]
    driver.close()


def test_expired_and_deleted_windows_advance_the_observed_time(engine):
    driver = Driver(engine, TUMBLING)
    driver.tick([window("a", 0), window("b", 60, None)])
    assert windows(driver) == []
    driver.tick([window("a", 31)])
    assert windows(driver) == [("a", 31, 41, 1)]
    driver.close()


def test_late_windows_inside_the_retention_overwrite_and_null_deletes(engine):
    driver = Driver(engine, TUMBLING)
    driver.tick([window("a", 0), window("a", 20), window("b", 0)])
    driver.tick([window("a", 0, 7), window("b", 0, None)])
    assert windows(driver) == [("a", 0, 10, 7), ("a", 20, 30, 1)]
    driver.close()


def test_dropped_records_are_counted_at_the_observed_time_of_their_arrival(engine):
    driver = Driver(engine, TUMBLING)
    driver.tick([window("a", 30)])
    # The window at 10 arrives before 50 does, and is accepted; those at 0 and 20 are dropped on arrival.
    outcome = driver.tick([window("a", 0), window("a", 10, 9), window("a", 50, None), window("a", 20)])
    assert outcome.late == {("T", 0): Late(total=2, stream_time=50)}
    assert windows(driver) == [("a", 30, 40, 1)]
    driver.close()


def test_records_that_expire_only_by_the_end_of_a_tick_are_not_dropped(engine, monkeypatch):
    """And are not read again to find that out."""
    selects: list[str] = []
    select = engine.select
    monkeypatch.setattr(engine, "select", lambda sql, inputs: selects.append(sql) or select(sql, inputs))
    driver = Driver(engine, TUMBLING)
    outcome = driver.tick([window("a", 0), window("b", 20), window("a", 100), window("b", 120)])
    assert outcome.late == {}
    assert selects == []
    assert windows(driver) == [("a", 100, 110, 1), ("b", 120, 130, 1)]
    assert driver.tick([window("a", 0)]).late == {("T", 0): Late(total=1, stream_time=120)}
    assert driver.tick([window("a", 10)]).late == {("T", 0): Late(total=1, stream_time=120)}
    assert len(set(selects)) == 1
    driver.close()


def test_a_window_that_moves_to_another_partition_expires_there(engine):
    driver = Driver(engine, TUMBLING)
    driver.tick([window("a", 0, 1)])
    driver.tick([window("a", 0, 2, partition=1)])
    driver.tick([window("b", 100)])
    assert windows(driver) == [("a", 0, 10, 2), ("b", 100, 110, 1)]
    # A record of the old partition is dropped there, and leaves the window alone.
    driver.tick([window("a", 0, 3)])
    assert windows(driver) == [("a", 0, 10, 2), ("b", 100, 110, 1)]
    driver.tick([window("c", 30, partition=1)])
    assert windows(driver) == [("b", 100, 110, 1), ("c", 30, 40, 1)]
    assert stored_elements(driver) == 2
    driver.close()


def test_a_window_that_expires_is_deleted_at_its_own_time(engine):
    records = [window("a", 0), window("a", 10), window("b", 0, None), window("a", 0, 7), window("b", 60)]
    for ticks in ([records], [[record] for record in records], [records[:3], records[3:]]):
        driver = Driver(engine, TUMBLING + "CREATE TABLE c AS SELECT k, v FROM t;")
        driver.tick([window("b", 0)])
        for tick in ticks:
            driver.tick(tick)
        deletes = [(sent.key, sent.timestamp) for sent in driver.sent("C") if sent.value is None]
        # The record that deletes b's window is 5 milliseconds later than the window.
        expired = [(window("a", start).key, start) for start in (0, 10)] if len(ticks) > 1 else []
        assert sorted(deletes) == sorted([*expired, (window("b", 0).key, 5)])
        driver.close()


def test_each_partition_has_its_own_observed_time(engine):
    driver = Driver(engine, TUMBLING)
    driver.tick([window("a", 0), window("b", 0, 1, 1)])
    driver.tick([window("a", 100)])
    assert windows(driver) == [("a", 100, 110, 1), ("b", 0, 10, 1)]
    driver.close()


def test_expiry_frees_the_storage_and_earlier_times_stay_readable(engine):
    driver = Driver(engine, TUMBLING)
    driver.tick([window(f"k{i}", 0) for i in range(50)])
    before = driver.time
    driver.tick([window("a", 100)])
    assert len(windows(driver, before)) == 50
    assert windows(driver) == [("a", 100, 110, 1)]
    assert stored_elements(driver) == 1
    driver.close()


def stored_elements(driver: Driver) -> int:
    """The number of windows of which the table remembers when they expire."""
    stage = driver.store.stage()
    everything = {"after": [None], "upto": [2**62]}
    found = stage.lookup_spans(StateId("TABLE_T/Windows"), pa.table(everything))
    stage.abandon()
    return found.num_rows


def test_a_changelog_is_read_by_its_own_layout(engine):
    driver = Driver(engine, CHANGELOG)
    record = window("a", 20)
    outcome = driver.tick(
        [
            Record("t", record.key + bytes(4), record.value, 25),
            Record("t", record.key + bytes([0, 0, 0, 1]), record.value, 25),
        ]
    )
    assert windows(driver) == [("a", 20, 30, 1)]
    (undecodable,) = outcome.undecodable
    assert undecodable.total == 1
    driver.close()


def test_a_table_stops_when_the_first_hundred_keys_do_not_fit(engine):
    driver = Driver(engine, TUMBLING)
    short = Record("t", b"short", bytes(8), 1)
    assert driver.tick([short] * 60).failed == {}
    (reason,) = driver.tick([short] * 40).failed.values()
    assert 'the keys of topic "t" do not end with the declared window' in reason
    assert "If the topic is not windowed, leave WINDOW_TYPE and WINDOW_SIZE out." in reason
    driver.close()


def test_short_keys_after_a_windowed_one_are_only_skipped(engine):
    driver = Driver(engine, TUMBLING)
    short = Record("t", b"short", bytes(8), 1)
    driver.tick([window("a", 0)])
    assert driver.tick([short] * 200).failed == {}
    assert windows(driver) == [("a", 0, 10, 1)]
    driver.close()


def test_keys_that_are_null_say_nothing_about_the_layout(engine):
    driver = Driver(engine, TUMBLING)
    outcome = driver.tick([Record("t", None, bytes(8), 1)] * 120)
    assert outcome.failed == {}
    assert [skipped.total for skipped in outcome.undecodable] == [120]
    short = Record("t", b"short", bytes(8), 1)
    assert driver.tick([short] * 60).failed == {}
    driver.tick([window("a", 0)])
    assert windows(driver) == [("a", 0, 10, 1)]
    driver.close()


def test_a_restart_of_spark_while_dropped_records_are_counted_only_delays_the_tick(engine, monkeypatch):
    driver = Driver(engine, TUMBLING)
    driver.tick([window("a", 100)])
    select, failures = engine.select, [SparkRestarted()]

    def ends_once(sql, inputs):
        if failures:
            raise failures.pop()
        return select(sql, inputs)

    monkeypatch.setattr(engine, "select", ends_once)
    with suppress(SparkRestarted):
        driver.tick([window("a", 0), window("b", 100)])
    driver.service.run_until_idle()
    assert failures == []
    assert windows(driver) == [("a", 100, 110, 1), ("b", 100, 110, 1)]
    driver.close()


def test_a_count_of_dropped_records_that_takes_too_long_fails_its_query_alone(engine, monkeypatch):
    driver = Driver(
        engine, COUNTED + "CREATE TABLE u (k STRING PRIMARY KEY, v BIGINT) WITH (KAFKA_TOPIC='u', FORMAT='KAFKA');"
    )
    driver.tick([window("a", 100)])

    def too_long(*_):
        raise JobTimeout(timedelta(seconds=1))

    monkeypatch.setattr(engine, "select", too_long)
    failed = driver.tick([window("a", 0), Record("u", b"a", bytes(8), 1)]).failed
    assert list(failed) == ["TABLE_T"]
    assert failed["TABLE_T"].endswith("Then PAUSE and RESUME the query.")
    assert len(driver.rows("U")) == 1
    driver.close()


def test_results_read_as_a_changelog_stop_with_the_other_layout(engine):
    driver = Driver(engine, CHANGELOG)
    results = [window("a-long-key", 1_700_000_000_000 + i) for i in range(100)]
    (reason,) = driver.tick(results).failed.values()
    assert "declare WINDOW_TOPIC='TOPIC'" in reason
    driver.close()
