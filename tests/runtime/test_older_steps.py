"""Steps that today's planner does not write run as ksqlDB or the releases that wrote them meant."""

import json
from collections.abc import Callable
from typing import Any

from runtime.driver import Driver, Record

from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.skips import Skip

SOURCES = """
CREATE STREAM s (id STRING KEY, k STRING, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
"""
RECORDS = [
    Record("s", b"a", b'{"K": "x", "N": 1}', 1),
    Record("s", b"b", b'{"K": null, "N": 2}', 2),
    Record("s", b"a", b'{"K": "y", "N": 3}', 3),
    Record("s", b"a", b'{"K": "x", "N": 4}', 4),
]
Step = dict[str, Any]


def driven(engine: Engine, sql: str, rewrite: Callable[[Step], Step]) -> Driver:
    """A database whose command topic has other steps than the planner of today writes."""
    planned = Driver(engine, SOURCES + sql)
    planned.close()
    commands = [
        (key, json.dumps(json.loads(value, object_hook=rewrite), separators=(",", ":")).encode())
        for key, value in planned.commands
    ]
    assert commands != planned.commands
    return Driver(engine, commands=commands)


def test_select_key_v1_has_one_key_and_drops_rows_without_it(engine):
    def rewrite(step: Step) -> Step:
        if step.get("@type") == "streamSelectKeyV2":
            return {**step, "@type": "streamSelectKeyV1", "keyExpression": step["keyExpression"][0]}
        if step.get("queryContext") is None and "selectExpressions" in step:
            return {**step, "selectExpressions": ["N AS N"]}
        return step

    driver = driven(engine, "CREATE STREAM p AS SELECT * FROM s PARTITION BY k;", rewrite)
    outcome = driver.tick(RECORDS)
    assert not outcome.failed
    assert [(s.key, s.value) for s in driver.sent("P")] == [(b"x", b'{"N":1}'), (b"y", b'{"N":3}'), (b"x", b'{"N":4}')]
    assert outcome.skipped == {("P", Skip.NO_NEW_KEY): 1}
    driver.close()


def test_group_by_v1_joins_several_keys_into_one_text(engine):
    def rewrite(step: Step) -> Step:
        if step.get("@type") == "streamGroupByV2":
            return {**step, "@type": "streamGroupByV1", "groupByExpressions": ["K", "ID"]}
        return step

    driver = driven(engine, "CREATE TABLE c AS SELECT k, COUNT(*) AS c FROM s GROUP BY k;", rewrite)
    outcome = driver.tick(RECORDS)
    assert not outcome.failed
    assert driver.rows("C") == [("x|+|a", 2, 4), ("y|+|a", 1, 3)]
    assert outcome.skipped == {("C", Skip.NO_GROUP): 1}
    driver.close()


def test_group_by_v1_of_one_column_has_its_type(engine):
    def rewrite(step: Step) -> Step:
        return {**step, "@type": "streamGroupByV1"} if step.get("@type") == "streamGroupByV2" else step

    driver = driven(engine, "CREATE TABLE c AS SELECT n, COUNT(*) AS c FROM s GROUP BY n;", rewrite)
    assert not driver.tick([*RECORDS, *RECORDS[:1]]).failed
    assert [row[:2] for row in driver.rows("C")] == [(1, 2), (2, 1), (3, 1), (4, 1)]
    driver.close()


def test_a_table_that_gets_its_own_key_again_stays_as_it_is(engine):
    def rewrite(step: Step) -> Step:
        if step.get("@type") in ("tableSourceV2", "tableSourceV1"):
            again = {"keyExpression": ["ID"], "internalFormats": step["formats"], "source": step}
            return {"@type": "tableSelectKeyV1", "properties": {"queryContext": "Again"}, **again}
        return step

    driver = driven(engine, "CREATE TABLE u AS SELECT id, n * 2 AS n FROM t WHERE n > 1;", rewrite)
    driver.tick([Record("t", b"a", b'{"N": 2}', 1), Record("t", b"b", b'{"N": 1}', 2)])
    assert driver.rows("U") == [("a", 4, 1)]
    driver.tick([Record("t", b"a", b'{"N": 0}', 3), Record("t", b"b", b'{"N": 3}', 4)])
    assert driver.rows("U") == [("b", 6, 4)]
    assert [(s.key, s.value) for s in driver.sent("U")] == [(b"a", b'{"N":4}'), (b"a", None), (b"b", b'{"N":6}')]
    driver.close()


def test_suppress_emits_a_window_once_it_has_closed(engine):
    def rewrite(step: Step) -> Step:
        if step.get("@type") == "streamWindowedAggregateV1":
            held_back = {"refinementInfo": {"outputRefinement": "FINAL"}, "internalFormats": step["internalFormats"]}
            return {"@type": "tableSuppressV1", "properties": {"queryContext": "Suppress"}, "source": step, **held_back}
        return step

    windows = "WINDOW TUMBLING (SIZE 10 MILLISECONDS, GRACE PERIOD 0 MILLISECONDS)"
    driver = driven(engine, f"CREATE TABLE c AS SELECT k, COUNT(*) AS c FROM s {windows} GROUP BY k;", rewrite)
    assert not driver.tick(RECORDS).failed
    assert driver.rows("C") == []
    assert driver.sent("C") == []
    assert not driver.tick([Record("s", b"a", b'{"K": "x", "N": 5}', 10)]).failed
    assert driver.rows("C") == [("x", 0, 10, 2, 4), ("y", 0, 10, 1, 3)]
    assert [(s.key, s.value) for s in driver.sent("C")] == [
        (windowed_key(b"x", 0), b'{"C":2}'),
        (windowed_key(b"y", 0), b'{"C":1}'),
    ]
    driver.close()


def test_a_table_of_a_windowed_topic_has_a_row_for_each_key_and_window(engine):
    def rewrite(step: Step) -> Step:
        window = {"type": "TUMBLING", "size": 0.010, "emitStrategy": "CHANGES"}
        if step.get("@type") == "createTableV1":
            return {**step, "windowInfo": window}
        if step.get("@type") == "tableSourceV2":
            more = {name: value for name, value in step.items() if name != "stateStoreFormats"}
            return {**more, "@type": "windowedTableSourceV1", "windowInfo": window}
        return step

    driver = driven(engine, "CREATE TABLE u AS SELECT id, n * 2 AS n FROM t WHERE n > 1;", rewrite)
    first, second = windowed_key(b"a", 0), windowed_key(b"a", 10)
    assert not driver.tick([Record("t", first, b'{"N": 2}', 1), Record("t", second, b'{"N": 3}', 11)]).failed
    assert driver.rows("U") == [("a", 0, 10, 4, 1), ("a", 10, 20, 6, 11)]
    driver.tick([Record("t", first, b'{"N": 5}', 2), Record("t", second, None, 12)])
    assert driver.rows("U") == [("a", 0, 10, 10, 2)]
    sent = [(s.key, s.value) for s in driver.sent("U")]
    assert [value for key, value in sent if key == first] == [b'{"N":4}', b'{"N":10}']
    assert [value for key, value in sent if key == second] == [b'{"N":6}', None]
    driver.close()


def windowed_key(key: bytes, start: int) -> bytes:
    """The key of a record in a time window: the key, then the window's start."""
    return key + start.to_bytes(8)
