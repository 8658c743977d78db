"""The windows of a query without RETENTION are retained for their size, their grace period and a day."""

import json

import pyarrow as pa
import pytest
from runtime.driver import Driver, Record
from runtime.test_older_steps import driven

MINUTE, DAY = 60_000, 86_400_000
SOURCE = """
CREATE STREAM s (id STRING KEY, k STRING, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE FUNCTION most(n INT) RETURNS INT LANGUAGE PYTHON AS '
class Most:
    def partial(self, n): return max(n.to_pylist())
    def merge(self, one, other): return max(one, other)
    def result(self, state): return state
';
"""
WINDOW = "WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 1 MINUTE)"
RETENTION = DAY + 2 * MINUTE
"""Of the windows above."""
EVERYTHING = pa.table({"after": pa.nulls(1, pa.int64()), "upto": [2**62]})


def row(key: bytes, n: int, at: int, partition: int = 0) -> Record:
    return Record("s", key, b'{"K": "x", "N": %d}' % n, at, partition)


def rows(driver: Driver, name: str = "T") -> list[tuple[object, ...]]:
    return [found[:-1] for found in driver.rows(name)]


def sent(driver: Driver, name: str = "T") -> list[tuple[object, ...]]:
    """Key, start of the window and value of the records of a sink topic."""
    records = [(each.key, each.value) for each in driver.sent(name)]
    return [(k[:-8], int.from_bytes(k[-8:]), v if v is None else json.loads(v)) for k, v in records if k is not None]


SELECTIONS = {
    "computed by the store": "SELECT id, SUM(n) AS s FROM s {} GROUP BY id",
    "with HAVING": "SELECT id, SUM(n) AS s FROM s {} GROUP BY id HAVING COUNT(*) > 0",
    "computed by Spark": "SELECT id, SUM(n) + 0 AS s FROM s {} GROUP BY id",
    "by a function of a user": "SELECT id, MOST(n) AS s FROM s {} GROUP BY id",
}


@pytest.mark.parametrize("select", SELECTIONS.values(), ids=list(SELECTIONS))
def test_a_window_leaves_a_day_after_its_grace_period(engine, select):
    driver = Driver(engine, SOURCE + f"CREATE TABLE t AS {select.format(WINDOW)};")
    driver.tick([row(b"a", 1, 5), row(b"b", 2, 6), row(b"a", 3, MINUTE)])
    driver.tick([row(b"c", 4, RETENTION - 1)])
    last = RETENTION // MINUTE * MINUTE
    kept = [("a", MINUTE, 2 * MINUTE, 3), ("c", last - MINUTE, last, 4)]
    assert rows(driver) == [("a", 0, MINUTE, 1), kept[0], ("b", 0, MINUTE, 2), kept[1]]
    before = driver.time
    driver.tick([row(b"c", 5, RETENTION)])
    assert rows(driver) == [*kept, ("c", last, last + MINUTE, 5)]
    assert len(driver.rows("T", before)) == 4
    gone = [(key, start) for key, start, value in sent(driver) if value is None]
    assert sorted(gone) == [(b"a", 0), (b"b", 0)]
    driver.close()


def test_the_state_of_an_expired_window_is_gone(engine):
    driver = Driver(engine, SOURCE + f"CREATE TABLE t AS SELECT id, COUNT(*) AS c FROM s {WINDOW} GROUP BY id;")
    driver.tick([row(b"k%d" % i, 1, i) for i in range(50)])
    driver.tick([row(b"a", 1, 2 * RETENTION)])
    program = driver.program("T")
    counts = {state: driver.store.stage().lookup_spans(state, EVERYTHING).num_rows for state, _ in program.states}
    assert sorted(counts.values()) == [1, 1]
    driver.close()


@pytest.mark.parametrize("select", SELECTIONS.values(), ids=list(SELECTIONS))
def test_the_topic_gets_windows_that_one_tick_makes_and_passes(engine, select):
    driver = Driver(engine, SOURCE + f"CREATE TABLE t AS {select.format(WINDOW)};")
    driver.tick([row(b"a", 1, 5)])
    driver.tick([row(b"a", 2, 6), row(b"b", 3, MINUTE), row(b"c", 4, 2 * RETENTION)])
    start = 2 * RETENTION // MINUTE * MINUTE
    assert rows(driver) == [("c", start, start + MINUTE, 4)]
    total = 2 if "MOST" in select else 3
    assert sorted(sent(driver), key=repr) == sorted(
        [
            (b"a", 0, {"S": 1}),
            (b"a", 0, {"S": total}),
            (b"a", 0, None),
            (b"b", MINUTE, {"S": 3}),
            (b"c", start, {"S": 4}),
        ],
        key=repr,
    )
    assert [value for key, _, value in sent(driver) if key == b"a"] == [{"S": 1}, {"S": total}, None]
    driver.close()


def test_each_partition_has_its_own_time(engine):
    driver = Driver(engine, SOURCE + f"CREATE TABLE t AS SELECT id, COUNT(*) AS c FROM s {WINDOW} GROUP BY id;")
    driver.tick([row(b"a", 1, 5), row(b"b", 1, 5, 1)])
    driver.tick([row(b"a", 1, 2 * RETENTION)])
    assert ("b", 0, MINUTE, 1) in rows(driver)
    assert ("a", 0, MINUTE, 1) not in rows(driver)
    driver.tick([row(b"b", 1, 2 * RETENTION, 1)])
    assert ("b", 0, MINUTE, 1) not in rows(driver)
    driver.close()


def test_groups_of_several_partitions_expire_by_the_greatest_time(engine):
    driver = Driver(engine, SOURCE + f"CREATE TABLE t AS SELECT k, COUNT(*) AS c FROM s {WINDOW} GROUP BY k;")
    driver.tick([row(b"a", 1, 5), row(b"b", 1, 5, 1)])
    assert rows(driver) == [("x", 0, MINUTE, 2)]
    driver.tick([row(b"a", 1, 2 * RETENTION)])
    start = 2 * RETENTION // MINUTE * MINUTE
    assert rows(driver) == [("x", start, start + MINUTE, 1)]
    # Not late in its partition, but the window is gone: it must not come back with a part of its rows.
    driver.tick([row(b"b", 1, 7, 1)])
    assert rows(driver) == [("x", start, start + MINUTE, 1)]
    driver.close()


def test_sessions_are_retained_for_a_day_after_their_grace_period(engine):
    window = "WINDOW SESSION (1 MINUTE, GRACE PERIOD 1 MINUTE)"
    driver = Driver(engine, SOURCE + f"CREATE TABLE t AS SELECT id, COUNT(*) AS c FROM s {window} GROUP BY id;")
    driver.tick([row(b"a", 1, 5), row(b"a", 1, 9)])
    driver.tick([row(b"b", 1, RETENTION + 8)])
    assert rows(driver) == [("a", 5, 9, 2), ("b", RETENTION + 8, RETENTION + 8, 1)]
    driver.tick([row(b"c", 1, RETENTION + 9)])
    assert [found[0] for found in rows(driver)] == ["b", "c"]
    driver.close()


def test_a_final_result_is_emitted_even_if_its_retention_is_over(engine):
    window = "WINDOW TUMBLING (SIZE 1 MINUTE)"
    driver = Driver(
        engine, SOURCE + f"CREATE TABLE t AS SELECT id, COUNT(*) AS c FROM s {window} GROUP BY id EMIT FINAL;"
    )
    driver.tick([row(b"a", 1, 5)])
    driver.tick([row(b"a", 1, 10 * DAY)])
    assert sent(driver) == [(b"a", 0, {"C": 1})]
    assert rows(driver) == []
    driver.tick([row(b"a", 1, 10 * DAY + MINUTE)])
    assert rows(driver) == [("a", 10 * DAY, 10 * DAY + MINUTE, 1)]
    driver.tick([row(b"a", 1, 11 * DAY + MINUTE)])
    assert ("a", 10 * DAY, 10 * DAY + MINUTE, 1) not in rows(driver)
    driver.close()


def test_a_stored_plan_without_a_retention_retains_its_windows_for_ever(engine):
    def rewrite(step):
        return {**step, "retention": None} if step.get("windowType") else step

    sql = "\n".join(
        f"CREATE TABLE t{i} AS SELECT id, COUNT(*) AS c FROM s WINDOW {window} GROUP BY id;"
        for i, window in enumerate(
            ("TUMBLING (SIZE 1 MINUTE)", "SESSION (1 MINUTE)", "HOPPING (SIZE 2 MINUTES, ADVANCE BY 1 MINUTE)")
        )
    )
    driver = driven(engine, sql, rewrite)
    driver.tick([row(b"a", 1, 5)])
    driver.tick([row(b"b", 1, 100 * DAY)])
    for i in range(3):
        assert ("a", 1) in [(found[0], found[3]) for found in rows(driver, f"T{i}")]
    driver.close()
