"""How records are cut into ticks changes no window: neither what it holds, nor when it closes."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from laws import slow_law
from runtime.driver import Driver, Record
from runtime.test_tick_laws import cut

pytestmark = pytest.mark.law

SQL = """
CREATE STREAM s (id STRING KEY, k STRING, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE TABLE tumbling AS SELECT id, COUNT(*) AS c, SUM(n) AS s FROM s
  WINDOW TUMBLING (SIZE 10 MILLISECONDS, GRACE PERIOD 5 MILLISECONDS) GROUP BY id;
CREATE TABLE hopping AS SELECT id, MAX(n) AS n, LATEST_BY_OFFSET(n) AS latest FROM s
  WINDOW HOPPING (SIZE 10 MILLISECONDS, ADVANCE BY 4 MILLISECONDS, GRACE PERIOD 0 MILLISECONDS) GROUP BY id;
CREATE TABLE sessions AS SELECT id, COUNT(*) AS c, SUM(n) AS s, MIN(n) AS lo, LATEST_BY_OFFSET(n) AS latest FROM s
  WINDOW SESSION (4 MILLISECONDS, GRACE PERIOD 6 MILLISECONDS) GROUP BY id;
CREATE TABLE some AS SELECT id, COUNT(*) AS c FROM s WINDOW SESSION (4 MILLISECONDS) GROUP BY id HAVING SUM(n) > 3;
CREATE TABLE last AS SELECT id, COUNT(*) AS c, SUM(n) AS s FROM s
  WINDOW TUMBLING (SIZE 10 MILLISECONDS, GRACE PERIOD 5 MILLISECONDS) GROUP BY id EMIT FINAL;
CREATE TABLE last_hops AS SELECT id, MAX(n) AS n FROM s
  WINDOW HOPPING (SIZE 10 MILLISECONDS, ADVANCE BY 4 MILLISECONDS) GROUP BY id EMIT FINAL;
CREATE TABLE last_sessions AS SELECT id, COUNT(*) AS c, SUM(n) AS s FROM s
  WINDOW SESSION (4 MILLISECONDS, GRACE PERIOD 3 MILLISECONDS) GROUP BY id EMIT FINAL;
CREATE TABLE kept AS SELECT id, COUNT(*) AS c FROM s
  WINDOW TUMBLING (SIZE 5 MILLISECONDS, RETENTION 20 MILLISECONDS, GRACE PERIOD 5 MILLISECONDS) GROUP BY id;
CREATE TABLE kept_numbers AS SELECT n, COUNT(*) AS c FROM s
  WINDOW TUMBLING (SIZE 5 MILLISECONDS, RETENTION 20 MILLISECONDS, GRACE PERIOD 5 MILLISECONDS) GROUP BY n;
CREATE TABLE kept_hops AS SELECT id, SUM(n) + 0 AS s FROM s WINDOW HOPPING
  (SIZE 10 MILLISECONDS, ADVANCE BY 4 MILLISECONDS, RETENTION 25 MILLISECONDS, GRACE PERIOD 5 MILLISECONDS) GROUP BY id;
CREATE TABLE kept_sessions AS SELECT id, COUNT(*) AS c FROM s
  WINDOW SESSION (4 MILLISECONDS, RETENTION 30 MILLISECONDS, GRACE PERIOD 5 MILLISECONDS) GROUP BY id;
CREATE TABLE kept_last AS SELECT id, COUNT(*) AS c FROM s
  WINDOW TUMBLING (SIZE 5 MILLISECONDS, RETENTION 30 MILLISECONDS) GROUP BY id EMIT FINAL;
CREATE TABLE kept_last_sessions AS SELECT id, COUNT(*) AS c FROM s
  WINDOW SESSION (3 MILLISECONDS, RETENTION 20 MILLISECONDS, GRACE PERIOD 2 MILLISECONDS) GROUP BY id EMIT FINAL;
CREATE STREAM w (id STRING KEY, k STRING, n INT)
  WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', WINDOW_TYPE='SESSION');
CREATE STREAM copied AS SELECT id, n, WINDOWEND - WINDOWSTART AS long FROM w WHERE n > 2;
CREATE TABLE taken (id STRING PRIMARY KEY, k STRING, n INT)
  WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', WINDOW_TYPE='SESSION');
CREATE TABLE by_start AS SELECT WINDOWSTART AS started, SUM(n) AS s FROM w GROUP BY WINDOWSTART;
"""
TABLES = (
    "TUMBLING",
    "HOPPING",
    "SESSIONS",
    "SOME",
    "KEPT",
    "KEPT_NUMBERS",
    "KEPT_HOPS",
    "KEPT_SESSIONS",
    "TAKEN",
    "BY_START",
)
EXPIRING = ("KEPT_LAST", "KEPT_LAST_SESSIONS")
FINAL = ("LAST", "LAST_HOPS", "LAST_SESSIONS")
PARTITIONS = {b"a": 0, b"b": 0, b"c": 1}


@st.composite
def records(draw) -> Record:
    key = draw(st.sampled_from(list(PARTITIONS)))
    value = draw(st.one_of(st.integers(1, 6).map(lambda n: f'{{"N": {n}}}'.encode()), st.sampled_from([None, b"?"])))
    if draw(st.integers(0, 4)) == 0:
        start = draw(st.integers(0, 3))
        window = (start + draw(st.integers(0, 2))).to_bytes(8) + start.to_bytes(8)
        return Record("w", key + window, value, draw(st.integers(0, 9)), PARTITIONS[key])
    return Record("s", key, value, draw(st.integers(0, 60)), PARTITIONS[key])


def results(engine, ticks: Sequence[Sequence[Record]]) -> dict[str, object]:
    driver = Driver(engine, SQL)
    outcomes = [driver.tick(tick) for tick in ticks]
    assert {query: why for outcome in outcomes for query, why in outcome.failed.items()} == {}
    found: dict[str, object] = {name: driver.rows(name) for name in (*TABLES, *EXPIRING, *FINAL)}
    # Final rows are emitted once each, so that their records are the same too; those of a tick are by end and key.
    found |= {f"records of {name}": sorted(map(repr, driver.sent(name))) for name in FINAL}
    # So are those of windows that expire in the tick in which they close.
    for name in EXPIRING:
        found[f"results of {name}"] = sorted(repr(sent) for sent in driver.sent(name) if sent.value is not None)
    found["records of COPIED"] = sorted(map(repr, driver.sent("COPIED")))
    driver.close()
    return found


def row(key: bytes, n: int, at: int) -> Record:
    return Record("s", key, f'{{"N": {n}}}'.encode(), at, PARTITIONS[key])


LATE = [
    row(b"a", 1, 50),
    row(b"a", 2, 42),
    row(b"b", 1, 45),
    row(b"a", 3, 46),
    row(b"a", 4, 34),
    row(b"c", 5, 7),
    row(b"b", 6, 60),
    row(b"a", 1, 54),
    row(b"a", 2, 49),
    row(b"c", 3, 12),
    row(b"b", 4, 30),
]


@slow_law(3)
@example(LATE, range(20))
@given(st.lists(records(), min_size=8, max_size=24), st.sets(st.integers(1, 24), max_size=4))
def test_many_ticks_end_as_one(engine, input_records, places):
    assert results(engine, cut(input_records, places)) == results(engine, [input_records])
