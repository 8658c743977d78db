"""Skipped rows are counted with the reason, and late records with the stream time."""

from collections import Counter
from collections.abc import Sequence

import pytest
from runtime.driver import Driver, Record

from holdfast.runtime.outcome import Late
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.skips import Skip

STREAM = "CREATE STREAM s (id STRING KEY, k STRING, taken BIGINT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON'{});"


def record(key: str | None, value: str | None, ts: int = 0, part: int = 0, topic: str = "s") -> Record:
    return Record(topic, key and key.encode(), value and value.encode(), ts, part)


@pytest.fixture
def driven(engine: Engine):
    made: list[Driver] = []

    def drive(sql: str) -> Driver:
        made.append(Driver(engine, sql))
        return made[-1]

    yield drive
    for driver in made:
        driver.close()


def skipped(driver: Driver, records: Sequence[Record]) -> dict[tuple[str, Skip], int]:
    """What a tick skips, which is also what ticks of one record each skip."""
    outcome = driver.tick(records)
    assert not outcome.failed
    one_by_one: Counter[tuple[str, Skip]] = Counter()
    for each in driver.ticks(records):
        one_by_one.update(each.skipped)
    assert dict(one_by_one) == outcome.skipped
    return outcome.skipped


def test_rows_that_are_in_no_group(driven):
    driver = driven(
        STREAM.format("")
        + """
        CREATE TABLE by_id AS SELECT id, COUNT(*) AS c FROM s GROUP BY id;
        CREATE TABLE by_k AS SELECT k, COUNT(*) AS c FROM s GROUP BY k;
        CREATE TABLE by_two WITH (KEY_FORMAT='JSON') AS SELECT k, taken, COUNT(*) AS c FROM s GROUP BY k, taken;
        CREATE TABLE per_ten AS SELECT k, COUNT(*) AS c FROM s WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY k;
        CREATE TABLE visits AS SELECT k, COUNT(*) AS c FROM s WINDOW SESSION (10 MILLISECONDS) GROUP BY k;
        CREATE TABLE finals AS SELECT k, COUNT(*) AS c FROM s WINDOW TUMBLING (SIZE 10 MILLISECONDS, RETENTION 1 DAY)
          GROUP BY k EMIT FINAL;
        """
    )
    found = skipped(
        driver,
        [
            record("a", '{"K": "x", "TAKEN": 1}'),
            record("a", '{"K": null, "TAKEN": 1}', part=1),
            record("b", '{"K": "x", "TAKEN": null}', part=1),
            record("b", None),
            record(None, '{"K": "x", "TAKEN": 1}'),
            record("b", "nonsense"),
        ],
    )
    assert found == {
        ("BY_ID", Skip.NO_GROUP): 2,
        ("BY_K", Skip.NO_GROUP): 2,
        ("BY_TWO", Skip.NO_GROUP): 3,
        ("PER_TEN", Skip.NO_GROUP): 2,
        ("VISITS", Skip.NO_GROUP): 2,
        ("FINALS", Skip.NO_GROUP): 2,
    }
    assert [row[:2] for row in driver.rows("BY_K")] == [("x", 6)]
    assert [row[:2] for row in driver.rows("BY_TWO")] == [("x", 1)]


def test_rows_that_can_meet_none(driven):
    driver = driven(
        STREAM.format("")
        + """
        CREATE STREAM r (id STRING KEY, n INT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON');
        CREATE STREAM met AS SELECT s.id, k, n FROM s JOIN r WITHIN 1 SECOND ON s.id = r.id;
        """
    )
    records = [record("a", '{"K": "x"}'), record(None, '{"K": "x"}'), record("a", None), record(None, "{}", topic="r")]
    assert skipped(driver, records) == {("MET", Skip.NO_JOIN_KEY): 3}


def test_rows_whose_timestamp_column_has_no_time(driven):
    driver = driven(
        STREAM.format(", TIMESTAMP='TAKEN'")
        + """
        CREATE TABLE t (id STRING PRIMARY KEY, taken STRING)
          WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', TIMESTAMP='TAKEN', TIMESTAMP_FORMAT='yyyy-MM-dd');
        CREATE STREAM p AS SELECT id, k FROM s;
        CREATE TABLE c AS SELECT id, COUNT(*) AS c FROM s GROUP BY id;
        CREATE TABLE w AS SELECT id, COUNT(*) AS c FROM s WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY id;
        CREATE STREAM q WITH (TIMESTAMP='N') AS SELECT id, CAST(k AS BIGINT) AS n FROM s;
        CREATE TABLE u WITH (TIMESTAMP='N') AS SELECT id, CAST(taken AS BIGINT) AS n FROM t;
        """
    )
    found = skipped(
        driver,
        [
            record("a", '{"K": "7", "TAKEN": 5}'),
            record("a", '{"K": "7", "TAKEN": null}'),
            record("a", '{"K": "x", "TAKEN": -1}'),
            record("b", '{"K": "x", "TAKEN": 6}'),
            record("a", '{"TAKEN": "1970-01-02"}', topic="t"),
            record("a", '{"TAKEN": "soon"}', topic="t"),
        ],
    )
    assert found == {
        ("P", Skip.NO_TIMESTAMP): 2,
        ("C", Skip.NO_TIMESTAMP): 2,
        ("W", Skip.NO_TIMESTAMP): 2,
        ("Q", Skip.NO_TIMESTAMP): 3,
        ("T", Skip.NO_TIMESTAMP): 1,
        ("U", Skip.NO_TIMESTAMP): 1,
    }
    assert driver.rows("C") == [("a", 2, 5), ("b", 2, 6)]
    assert driver.rows("W") == [("a", 0, 10, 2, 5), ("b", 0, 10, 2, 6)]
    assert driver.rows("T") == [("a", "1970-01-02", 86_400_000)]
    assert {sent.timestamp for sent in driver.sent("Q")} == {7}


def test_late_records_are_reported_by_partition_with_the_stream_time(driven):
    driver = driven(
        STREAM.format("")
        + """
        CREATE STREAM r (id STRING KEY, n INT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON');
        CREATE TABLE w AS SELECT id, COUNT(*) AS c FROM s
          WINDOW TUMBLING (SIZE 10 MILLISECONDS, GRACE PERIOD 5 MILLISECONDS) GROUP BY id;
        CREATE TABLE v AS SELECT id, COUNT(*) AS c FROM s
          WINDOW SESSION (10 MILLISECONDS, GRACE PERIOD 5 MILLISECONDS) GROUP BY id;
        CREATE TABLE f AS SELECT k, COUNT(*) AS c FROM s
          WINDOW SESSION (10 MILLISECONDS, GRACE PERIOD 5 MILLISECONDS) GROUP BY k;
        CREATE STREAM met AS SELECT s.id, k, n FROM s JOIN r WITHIN 5 MILLISECONDS GRACE PERIOD 5 MILLISECONDS
          ON s.id = r.id;
        """
    )
    value = '{"K": "x"}'
    before = driver.tick([record("a", value, 90), record("b", value, 200, 1)])
    assert before.late == {}
    now = [record("a", value, 1), record("a", value, 95), record("a", value, 2), record("b", value, 3, 1)]
    assert driver.tick(now).late == {
        ("W", 0): Late(2, 95),
        ("W", 1): Late(1, 200),
        ("V", 0): Late(2, 95),
        ("V", 1): Late(1, 200),
        ("F", None): Late(4, 200),
        ("MET", 0): Late(2, 95),
        ("MET", 1): Late(1, 200),
    }
