"""What a tick reports_skips beside what it stages, and rows that users give."""

import pyarrow as pa
from runtime.driver import Driver, Record

from holdfast.names import TopicName
from holdfast.runtime import tick
from holdfast.runtime.record_decoder import RecordDecoder
from holdfast.runtime.spark.engine import RECORDS
from holdfast.runtime.tick import Ticker
from holdfast.runtime.tick_inputs import TickInputs

SQL = """
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE STREAM p AS SELECT id, n + 1 AS n FROM s WHERE n > 0;
CREATE STREAM q AS SELECT id, n * 10 AS n FROM p;
CREATE TABLE c AS SELECT id, COUNT(*) AS c FROM p GROUP BY id;
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
CREATE TABLE u AS SELECT id, n FROM t;
CREATE TABLE v AS SELECT id, n * 2 AS n FROM u WHERE n > 1;
"""


def test_rows_that_a_user_gives_a_derived_stream_go_on_from_there(engine):
    driver = Driver(engine, SQL)
    driver.execute("INSERT INTO p (ROWTIME, id, n) VALUES (7, 'a', 5);")
    assert [(s.key, s.value, s.timestamp) for s in driver.sent("P")] == [(b"a", b'{"N":5}', 7)]
    assert [s.value for s in driver.sent("Q")] == [b'{"N":50}']
    assert driver.rows("C") == [("a", 1, 7)]
    driver.close()


def test_rows_that_a_user_gives_a_derived_table_go_on_from_there(engine):
    driver = Driver(engine, SQL)
    driver.tick([Record("t", b"a", b'{"N": 3}', 1)])
    driver.execute("INSERT INTO u (ROWTIME, id, n) VALUES (7, 'a', 1);")
    assert driver.rows("U") == [("a", 1, 7)]
    assert driver.rows("T") == [("a", 3, 1)]
    assert [(s.key, s.value) for s in driver.sent("V")] == [(b"a", b'{"N":6}'), (b"a", None)]
    driver.close()


def test_undecodable_records_are_reported_with_their_coordinates_and_all_are_counted(engine, monkeypatch):
    monkeypatch.setattr(tick, "LOGGED_PER_TICK", 2)
    driver = Driver(engine, SQL)
    bad = [Record("s", b"k%d" % i, b"nonsense", i, i % 2) for i in range(5)]
    outcome = driver.tick([Record("s", b"a", b'{"N": 1}'), *bad])
    (found,) = outcome.undecodable
    assert (found.topic, found.object, found.total) == ("s", "P", 5)
    assert found.records.to_pylist() == [
        {"part": 0, "off": 1, "ts": 0, "key": b"k0", "value": b"nonsense", "reason": "the value is not a JSON object"},
        {"part": 0, "off": 2, "ts": 2, "key": b"k2", "value": b"nonsense", "reason": "the value is not a JSON object"},
    ]
    driver.close()


def test_a_tick_of_a_topic_touches_only_the_queries_below_it(engine):
    driver = Driver(engine, SQL)
    below_t = {driver.program(name).query for name in ("T", "U", "V")}
    assert driver.tick([Record("t", b"a", b'{"N": 3}')]).touched == below_t
    assert driver.tick([Record("s", b"a", b'{"N": 0}')]).touched == {driver.program("P").query}
    driver.close()


def test_a_reader_of_its_own_leaves_out_what_is_bad(engine):
    driver = Driver(engine, SQL)
    source = driver.program("P").sources[0]
    values = [b'{"N": 1}', b'{"n": 2}', b"nonsense", None, b'{"unrelated": 3}']
    rows = [{"part": 0, "off": i, "ts": i, "key": b"a", "value": v} for i, v in enumerate(values)]
    decoded = RecordDecoder(engine).decode(source, pa.Table.from_pylist(rows, schema=RECORDS)).sort_by("off")
    assert decoded.select(["off", "k0", "c0"]).to_pylist() == [
        {"off": 0, "k0": "a", "c0": 1},
        {"off": 1, "k0": "a", "c0": 2},
        {"off": 4, "k0": "a", "c0": None},
    ]
    driver.close()


def test_results_survive_a_restart_and_go_on(engine, tmp_path):
    driver = Driver(engine, SQL, folder=tmp_path)
    driver.tick([Record("s", b"a", b'{"N": 1}')])
    driver = driver.restart()
    driver.tick([Record("s", b"a", b'{"N": 2}')])
    assert driver.rows("C") == [("a", 2, 0)]
    assert [s.value for s in driver.sent("P")] == [b'{"N":2}', b'{"N":3}']
    driver.close()


def test_a_query_that_rides_along_takes_only_what_others_give(engine):
    """What catches up may read what dependents have read before: they must not get it twice."""
    driver = Driver(
        engine,
        """
        CREATE STREAM a (id STRING KEY, n INT) WITH (KAFKA_TOPIC='a', VALUE_FORMAT='JSON');
        CREATE STREAM b (id STRING KEY, n INT) WITH (KAFKA_TOPIC='b', VALUE_FORMAT='JSON');
        CREATE STREAM every AS SELECT id, n FROM a;
        INSERT INTO every SELECT id, n FROM b;
        CREATE TABLE of_every AS SELECT id, COUNT(*) AS c FROM every GROUP BY id;
        CREATE TABLE of_b AS SELECT id, COUNT(*) AS c FROM b GROUP BY id;
        """,
    )
    programs = driver.dataflow.programs
    dependents = frozenset(query for query, program in programs.items() if program.collection is not None)
    record = {"part": 0, "off": 0, "ts": 0, "key": b"x", "value": b'{"N": 1}'}
    topics = {TopicName("b"): pa.Table.from_pylist([record], schema=RECORDS)}
    ticker = Ticker(engine, driver.store, RecordDecoder(engine))
    stage, outcome = ticker.run(driver.dataflow, programs, TickInputs(topics, live_dependents=dependents))
    driver.commit_point.commit(stage, outcome)
    assert outcome.failed == {}
    assert [row[:2] for row in driver.rows("OF_EVERY")] == [("x", 1)]
    assert driver.rows("OF_B") == []
    driver.close()
