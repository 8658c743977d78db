"""How records are cut into ticks changes no result."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from laws import slow_law
from runtime.driver import Driver, Record, Sent

pytestmark = pytest.mark.law

SQL = """
CREATE STREAM s (id STRING KEY, k STRING, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE STREAM p AS SELECT id, UCASE(k) AS k, n + 1 AS n FROM s WHERE n > 0;
CREATE STREAM q AS SELECT id, n * 2 AS n FROM p WHERE k IS NOT NULL;
CREATE TABLE along AS SELECT id, COUNT(*) AS c, SUM(n) AS s, MIN(n) AS lo, MAX(n) AS hi, AVG(n) AS a,
  LATEST_BY_OFFSET(n) AS latest, EARLIEST_BY_OFFSET(n) AS earliest FROM s GROUP BY id;
CREATE TABLE back AS SELECT COALESCE(k, 'none') AS k, SUM(n) + 0 AS s FROM s GROUP BY COALESCE(k, 'none')
  HAVING SUM(n) > 3;
CREATE TABLE deep AS SELECT id, SUM(n) AS s FROM q GROUP BY id HAVING COUNT(*) > 1;
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
CREATE TABLE u AS SELECT id, n * 2 AS n FROM t WHERE n > 2;
CREATE TABLE v AS SELECT id, n FROM u WHERE n < 12;
"""
STREAMS, TABLES = ("P", "Q"), ("ALONG", "BACK", "DEEP", "T", "U", "V")
PARTITIONS = {b"a": 0, b"b": 1, b"c": 1, None: 0}

numbers = st.sampled_from([*map(str, range(-3, 9)), "null", '"4"'])
names = st.sampled_from([("K", "N"), ("k", "n"), ("K", "n")])
texts = st.sampled_from(['"x"', '"y"', "null"])
good = st.tuples(names, texts, numbers).map(lambda v: f'{{"{v[0][0]}": {v[1]}, "{v[0][1]}": {v[2]}}}'.encode())
values = st.one_of(good, good, good, st.sampled_from([None, b"nonsense", b"", b'{"N": "x"}', b'{"N": 3000000000}']))


@st.composite
def records(draw) -> Record:
    key = draw(st.sampled_from(list(PARTITIONS)))
    topic, timestamp = draw(st.sampled_from(["s", "s", "t"])), draw(st.integers(0, 50))
    return Record(topic, key, draw(values), timestamp, PARTITIONS[key])


def cut(all_records: Sequence[Record], places: Iterable[int]) -> list[Sequence[Record]]:
    edges = [0, *sorted({p for p in places if 0 < p < len(all_records)}), len(all_records)]
    return [all_records[a:b] for a, b in pairwise(edges)]


def by_partition(sent: Sequence[Sent]) -> dict[int, list[Sent]]:
    found = defaultdict(list)
    for record in sent:
        found[PARTITIONS[record.key]].append(record)
    return found


def results(engine, ticks: Sequence[Sequence[Record]]) -> dict[str, object]:
    driver = Driver(engine, SQL)
    outcomes = [driver.tick(tick) for tick in ticks]
    assert not any(outcome.failed for outcome in outcomes)
    skipped: dict[str, int] = defaultdict(int)
    for problem in (problem for outcome in outcomes for problem in outcome.undecodable):
        skipped[problem.object] += problem.total
    found = {name: driver.rows(name) for name in TABLES}
    found |= {name: by_partition(driver.sent(name)) for name in STREAMS}
    driver.close()
    return {**found, "skipped": dict(skipped)}


LATE_AND_BAD = [
    Record("s", b"a", b'{"K": "x", "N": 5}', 9, 0),
    Record("s", b"b", b'{"K": null, "n": 2}', 3, 1),
    Record("s", b"a", b'{"k": "x", "N": -4}', 1, 0),
    Record("s", b"a", b"nonsense", 2, 0),
    Record("s", b"b", b'{"N": 7}', 8, 1),
    Record("t", b"c", b'{"N": 4}', 5, 1),
    Record("t", b"c", b'{"N": 1}', 4, 1),
    Record("t", None, b'{"N": 1}', 4, 0),
]


@slow_law(3)
@example(LATE_AND_BAD, range(20))
@given(st.lists(records(), min_size=6, max_size=20), st.sets(st.integers(1, 20), max_size=3))
def test_many_ticks_end_as_one(engine, input_records, places):
    assert results(engine, cut(input_records, places)) == results(engine, [input_records])
