"""Headers of records: as columns, and from the record that a row comes from to the record that it becomes."""

from pathlib import Path

import pytest
from runtime.driver import Driver, Record

from holdfast.runtime.spark.engine import Engine

SOURCE = """
CREATE STREAM s (id STRING KEY, every ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS, n INT)
  WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE STREAM named (id STRING KEY, n INT, trace BYTES HEADER('trace'))
  WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE TABLE names (id STRING PRIMARY KEY, name STRING, origin BYTES HEADER('origin'))
  WITH (KAFKA_TOPIC='names', VALUE_FORMAT='JSON');
"""
QUERIES = """
CREATE STREAM counted AS SELECT id, ARRAY_LENGTH(every) AS many, every[1]->KEY AS first FROM s;
CREATE STREAM traced AS SELECT id, FROM_BYTES(trace, 'utf8') AS trace FROM named WHERE n > 0;
CREATE STREAM chained AS SELECT id, trace FROM traced;
CREATE STREAM rekeyed AS SELECT * FROM chained PARTITION BY trace;
CREATE STREAM joined AS
  SELECT s.id AS id, name, FROM_BYTES(origin, 'utf8') AS origin FROM s JOIN names ON s.id = names.id;
CREATE TABLE origins AS SELECT id, FROM_BYTES(origin, 'ascii') AS origin FROM names;
CREATE TABLE traces AS
  SELECT id, COUNT(*) AS c, LATEST_BY_OFFSET(FROM_BYTES(trace, 'utf8')) AS t FROM named GROUP BY id;
"""


@pytest.fixture
def driver(engine: Engine, tmp_path: Path):
    made = Driver(engine, SOURCE + QUERIES, folder=tmp_path)
    yield made
    made.close()


def test_headers_are_columns_and_go_on_to_the_sink(driver: Driver) -> None:
    driver.tick([Record("names", b"a", b'{"NAME": "Ann"}', headers=[("origin", b"crm")])])
    driver.tick(
        [
            Record("s", b"a", b'{"N": 1}', headers=[("trace", b"1"), ("x", None), ("trace", b"2")]),
            Record("s", b"b", b'{"N": 2}'),
        ]
    )
    carried = [{"key": "trace", "value": b"1"}, {"key": "x", "value": None}, {"key": "trace", "value": b"2"}]

    def sent(name: str) -> list[tuple[object, ...]]:
        return [(s.key, s.value, s.headers) for s in driver.sent(name)]

    assert sent("COUNTED") == [
        (b"a", b'{"MANY":3,"FIRST":"trace"}', carried),
        (b"b", b'{"MANY":0,"FIRST":null}', []),
    ]
    # Of several headers of a name the last one counts; a record without it has none.
    assert sent("TRACED") == [(b"a", b'{"TRACE":"2"}', carried), (b"b", b'{"TRACE":null}', [])]
    assert sent("CHAINED") == sent("TRACED")
    assert sent("REKEYED") == [(b"2", b'{"ID":"a"}', carried), (None, b'{"ID":"b"}', [])]
    assert sent("JOINED") == [(b"a", b'{"NAME":"Ann","ORIGIN":"crm"}', carried)]
    # A table's row comes of many records: it carries no headers, but columns of them are kept.
    assert sent("ORIGINS") == [(b"a", b'{"ORIGIN":"crm"}', [])]
    assert driver.rows("TRACES") == [("a", 1, "2", 0), ("b", 1, None, 0)]
    assert driver.rows("NAMES") == [("a", "Ann", b"crm", 0)]


JOINS = """
CREATE STREAM l (id STRING KEY, n INT) WITH (KAFKA_TOPIC='l', VALUE_FORMAT='JSON');
CREATE STREAM r (id STRING KEY, m INT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON');
CREATE STREAM both AS SELECT l.id AS id, n, m FROM l JOIN r WITHIN 5 MILLISECONDS ON l.id = r.id;
CREATE STREAM eager AS SELECT l.id AS id, n, m FROM l LEFT JOIN r WITHIN 5 MILLISECONDS ON l.id = r.id;
CREATE STREAM waiting AS SELECT l.id AS id, n, m FROM l LEFT JOIN r
  WITHIN 5 MILLISECONDS GRACE PERIOD 0 MILLISECONDS ON l.id = r.id;
"""


@pytest.mark.parametrize("together", [True, False], ids=["one tick", "a tick each"])
def test_what_two_streams_make_has_the_headers_of_the_record_that_brings_it(engine: Engine, together):
    driver = Driver(engine, JOINS)
    records = [
        Record("l", b"a", b'{"N": 1}', 1, headers=[("h", b"l1")]),
        Record("r", b"a", b'{"M": 2}', 2, headers=[("h", b"r2")]),
        Record("l", b"b", b'{"N": 3}', 3, headers=[("h", b"l3")]),
        Record("l", b"a", b'{"N": 4}', 30, headers=[("h", b"l30")]),
    ]
    for tick in [records] if together else [[record] for record in records]:
        assert not driver.tick(tick).failed

    def sent(name: str) -> list[tuple[object, ...]]:
        return [(s.key, s.value, (s.headers or [{"value": None}])[0]["value"]) for s in driver.sent(name)]

    met, alone = (b"a", b'{"N":1,"M":2}', b"r2"), (b"a", b'{"N":1,"M":null}', b"l1")
    assert sent("BOTH") == [met]
    assert sent("EAGER") == [alone, met, (b"b", b'{"N":3,"M":null}', b"l3"), (b"a", b'{"N":4,"M":null}', b"l30")]
    # What has waited comes with the record that ends its time.
    assert sent("WAITING") == [met, (b"b", b'{"N":3,"M":null}', b"l30")]
    driver.close()


def test_headers_of_pending_rows_outlive_a_restart(driver: Driver) -> None:
    driver.tick([Record("s", b"a", b'{"N": 1}', headers=[("h", b"1")])])
    again = driver.restart()
    assert [s.headers for s in again.sent("COUNTED")] == [[{"key": "h", "value": b"1"}]]
    again.tick([Record("s", b"a", b'{"N": 1}', headers=[("h", b"2")])])
    assert [s.headers for s in again.sent("COUNTED")] == [[{"key": "h", "value": b"1"}], [{"key": "h", "value": b"2"}]]
    again.close()
