"""How records are cut into ticks changes no result: joins, windows, flat maps, new keys, streams of several writers and
aggregates over tables.

What two topics have to do with each other in one tick is decided: a table's records come before a stream's. So the
records of tables are given first here. Where a result's ROWTIME is the greatest of several, times do not go back.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from laws import slow_law
from runtime.driver import Driver, Record

pytestmark = pytest.mark.law

PARTITIONS = {b"a": 0, b"b": 1, b"c": 1, b"d": 0}
SLOW = slow_law(2)

JOINS = """
CREATE STREAM s (id STRING KEY, k STRING, xs ARRAY<STRING>) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
CREATE TABLE u (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON');
CREATE STREAM st AS SELECT s.id AS id, k, t.n AS n FROM s LEFT JOIN t ON s.id = t.id;
CREATE STREAM stu AS SELECT s.id AS id, k, t.n AS n, u.n AS m FROM s JOIN t ON s.id = t.id LEFT JOIN u ON s.id = u.id;
CREATE STREAM flat AS SELECT id, EXPLODE(xs) AS x, k FROM s;
CREATE STREAM cubes AS SELECT id, CUBE_EXPLODE(xs) AS corner FROM s;
CREATE STREAM keyed AS SELECT x, k, id FROM flat PARTITION BY x;
CREATE STREAM found AS SELECT keyed.x AS x, k, t.n AS n FROM keyed JOIN t ON keyed.x = t.id;
CREATE TABLE counted AS SELECT x, COUNT(*) AS c, SUM(n) AS s FROM found GROUP BY x;
CREATE TABLE left_ AS SELECT t.id AS id, t.n AS n, u.n AS m FROM t LEFT JOIN u ON t.id = u.id WHERE t.n > 1;
CREATE TABLE outer_ AS SELECT ROWKEY AS id, t.n AS n, u.n AS m FROM t FULL OUTER JOIN u ON t.id = u.id;
CREATE TABLE right_ AS SELECT u.id AS id, t.n AS n, u.n AS m FROM t RIGHT JOIN u ON t.id = u.id;
CREATE TABLE three AS SELECT t.id AS id, t.n + u.n AS n, left_.n AS l
  FROM t JOIN u ON t.id = u.id LEFT JOIN left_ ON t.id = left_.id;
"""
WINDOWS = """
CREATE STREAM s (id STRING KEY, k STRING, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE TABLE tumbling AS SELECT id, COUNT(*) AS c, LATEST_BY_OFFSET(n) AS n FROM s
  WINDOW TUMBLING (SIZE 10 MILLISECONDS, GRACE PERIOD 5 MILLISECONDS) GROUP BY id;
CREATE TABLE hopping AS SELECT id, COUNT(*) AS c, SUM(n) + 0 AS n FROM s
  WINDOW HOPPING (SIZE 20 MILLISECONDS, ADVANCE BY 5 MILLISECONDS, GRACE PERIOD 0 MILLISECONDS) GROUP BY id
  HAVING SUM(n) > 0;
CREATE TABLE by_k AS SELECT k, COUNT(*) AS c FROM s WINDOW TUMBLING (SIZE 30 MILLISECONDS) GROUP BY k;
"""
MIXED = "MIXED"
"""Its records of a key are of several partitions, and how these are mixed is not decided."""
REKEYED = """
CREATE STREAM s (id STRING KEY, k STRING, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE TABLE by_k AS SELECT k, LATEST_BY_OFFSET(n) AS l, EARLIEST_BY_OFFSET(n, 2) AS e, COLLECT_LIST(n) AS every,
  COLLECT_SET(n) AS different, ATTR(n) AS a FROM s GROUP BY k;
CREATE STREAM mixed AS SELECT * FROM s PARTITION BY k;
CREATE TABLE again AS SELECT k, LATEST_BY_OFFSET(n) AS l, COLLECT_LIST(n) AS every FROM mixed GROUP BY k;
CREATE TABLE per_five AS SELECT k, LATEST_BY_OFFSET(n) AS l, COLLECT_LIST(n) AS every FROM s
  WINDOW TUMBLING (SIZE 5 MILLISECONDS) GROUP BY k;
CREATE TABLE visits AS SELECT k, LATEST_BY_OFFSET(n) AS l, COLLECT_LIST(n) AS every FROM s
  WINDOW SESSION (3 MILLISECONDS) GROUP BY k;
"""
UNION = """
CREATE STREAM s (id STRING KEY, k STRING, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE STREAM u (id STRING KEY, k STRING, n INT) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON');
CREATE STREAM every AS SELECT id, 's' AS writer, n FROM s;
INSERT INTO every SELECT id, 'u' AS writer, n FROM u WHERE n > 0;
CREATE STREAM passed AS SELECT id, writer, n FROM every;
CREATE TABLE sums AS SELECT id, COUNT(*) AS c, SUM(n) AS s, MIN(n) AS lo FROM every GROUP BY id;
CREATE TABLE orders WITH (KEY_FORMAT='JSON') AS SELECT id, writer, COLLECT_LIST(n) AS every FROM every
  GROUP BY id, writer;
"""
OVER_TABLES = """
CREATE TABLE t (id STRING PRIMARY KEY, k STRING, n INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
CREATE TABLE u (id STRING PRIMARY KEY, k STRING, n INT) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON');
CREATE TABLE few AS SELECT id, k, n FROM t WHERE n > 0;
CREATE TABLE counts AS SELECT k, COUNT(*) AS c, SUM(n) AS s, AVG(n) AS a, STDDEV_SAMPLE(n) AS d FROM t GROUP BY k
  HAVING COUNT(*) > 0;
CREATE TABLE lists AS SELECT k, ARRAY_SORT(COLLECT_LIST(n)) AS l, HISTOGRAM(id) AS h, ATTR(n) AS n FROM few GROUP BY k
  HAVING COUNT(*) > 0;
CREATE TABLE pairs WITH (KEY_FORMAT='JSON') AS SELECT k, n, COUNT(*) AS c FROM t GROUP BY k, n HAVING COUNT(*) > 0;
CREATE TABLE joined AS SELECT t.k AS k, COUNT(*) AS c, SUM(u.n) AS s FROM t LEFT JOIN u ON t.id = u.id GROUP BY t.k
  HAVING COUNT(*) > 0;
CREATE TABLE again AS SELECT c, COUNT(*) AS groups FROM counts GROUP BY c HAVING COUNT(*) > 0;
"""


def rows(topic: str, texts: st.SearchStrategy[str | None], *, most: int) -> st.SearchStrategy[list[Record]]:
    """Records of a topic, or tombstones, at times that do not go back."""

    @st.composite
    def drawn(draw: Any) -> list[Record]:
        found, at = [], 0
        for _ in range(draw(st.integers(2, most))):
            at += draw(st.integers(0, 3))
            key, text = draw(st.sampled_from(list(PARTITIONS))), draw(texts)
            found.append(Record(topic, key, None if text is None else text.encode(), at, PARTITIONS[key]))
        return found

    return drawn()


@st.composite
def late(draw: Any) -> list[Record]:
    """Records of `s` at any time."""
    found = []
    for _ in range(draw(st.integers(6, 14))):
        key, k, n = draw(st.sampled_from(list(PARTITIONS))), draw(letters), draw(numbers)
        at = draw(st.integers(0, 60))
        found.append(Record("s", key, f'{{"K": {k}, "N": {n}}}'.encode(), at, PARTITIONS[key]))
    return found


letters = st.sampled_from(['"a"', '"b"', '"c"', "null"])
numbers = st.sampled_from(["-1", "1", "2", "3", "null"])
lists = st.lists(letters, max_size=3).map(", ".join)
of_numbers = st.one_of(numbers.map('{{"N": {}}}'.format), numbers.map('{{"N": {}}}'.format), st.none())
of_groups = st.one_of(st.tuples(letters, numbers).map(lambda v: '{{"K": {}, "N": {}}}'.format(*v)), st.none())
of_two_groups = st.tuples(st.sampled_from("ab"), numbers).map(lambda v: '{{"K": "{}", "N": {}}}'.format(*v))
IN_TWO_PARTITIONS = [
    Record("s", key, b'{"K": "%b", "N": %d}' % (group, n), partition=PARTITIONS[key])
    for n, (key, group) in enumerate(
        zip([b"b", b"a", b"b", b"c", b"a", b"d"], [b"x", b"x", b"y", b"x", b"y", b"x"], strict=True)
    )
]
of_lists = st.tuples(letters, lists).map(lambda v: '{{"K": {}, "XS": [{}]}}'.format(*v))
places = st.sets(st.integers(1, 20), max_size=3)


def cut(records: Sequence[Record], edges: set[int]) -> list[Sequence[Record]]:
    inside = sorted({edge for edge in edges if 0 < edge < len(records)})
    return [records[a:b] for a, b in pairwise([0, *inside, len(records)])]


def results(engine: Any, sql: str, ticks: Sequence[Sequence[Record]]) -> dict[str, object]:
    """The rows of every table, the records of every stream by key: the records of a key are in order."""
    driver = Driver(engine, sql)
    for tick in ticks:
        outcome = driver.tick(tick)
        assert not outcome.failed
    found: dict[str, object] = {}
    for program in driver.dataflow.programs.values():
        if program.collection is not None:
            found[program.object] = driver.rows(program.object)
            continue
        sent = defaultdict(list)
        for record in () if program.object == MIXED else driver.sent(program.object):
            sent[record.key].append(record)
        found[program.object] = dict(sent)
    driver.close()
    return found


def holds(engine: Any, sql: str, records: Sequence[Record], edges: set[int]) -> None:
    whole = results(engine, sql, [records])
    assert results(engine, sql, cut(records, edges)) == whole
    assert any(whole.values())


@SLOW
@given(rows("t", of_numbers, most=5), rows("u", of_numbers, most=5), rows("s", of_lists, most=6), places)
def test_joins_and_flat_maps(engine, left, right, stream, edges):
    tables = [record for pair in zip(left, right, strict=False) for record in pair]
    later = [record for side in (left, right) for record in side[len(tables) // 2 :]]
    records = [Record(r.topic, r.key, r.value, i, r.partition) for i, r in enumerate([*tables, *later, *stream])]
    holds(engine, JOINS, records, edges)


@SLOW
@given(late(), places)
def test_windows(engine, records, edges):
    holds(engine, WINDOWS, records, edges)


@SLOW
@given(rows("t", of_groups, most=9), rows("u", of_groups, most=4), places)
def test_aggregates_over_tables(engine, left, right, edges):
    records = [Record(r.topic, r.key, r.value, i, r.partition) for i, r in enumerate([*right[:2], *left, *right[2:]])]
    holds(engine, OVER_TABLES, records, edges)


@SLOW
@example(IN_TWO_PARTITIONS, {2, 5})
@given(rows("s", of_two_groups, most=10), places)
def test_new_groups_of_several_partitions(engine, drawn, edges):
    records = [Record(r.topic, r.key, r.value, i, r.partition) for i, r in enumerate(drawn)]
    holds(engine, REKEYED, records, edges)


@SLOW
@given(rows("s", of_groups, most=6), rows("u", of_groups, most=6), places)
def test_streams_of_two_writers(engine, left, right, edges):
    """Each writer's records of a key are in order; how those of two writers are mixed is not decided."""
    mixed = [record for pair in zip(left, right, strict=False) for record in pair]
    records = [Record(r.topic, r.key, r.value, i, r.partition) for i, r in enumerate(mixed)]

    def by_writer(ticks: Sequence[Sequence[Record]]) -> dict[str, object]:
        found = results(engine, UNION, ticks)
        for name in ("EVERY", "PASSED"):
            sent: dict[object, list[object]] = defaultdict(list)
            for key, of_key in found[name].items():
                for record in of_key:
                    sent[key, None if record.value is None else json.loads(record.value)["WRITER"]].append(record)
            found[name] = dict(sent)
        return found

    whole = by_writer([records])
    assert by_writer(cut(records, edges)) == whole
    assert whole["EVERY"]


@pytest.mark.parametrize(
    "sql", [JOINS, WINDOWS, REKEYED, OVER_TABLES], ids=["joins", "windows", "rekeyed", "over tables"]
)
def test_a_tick_of_one_record_each(engine, sql):
    """The extreme cut, over records that meet in every join, window and group."""
    records = [
        Record(topic, key, value, at, PARTITIONS[key])
        for at, (topic, key, value) in enumerate(
            [
                ("t", b"a", b'{"K": "a", "N": 1}'),
                ("u", b"a", b'{"K": "b", "N": 2}'),
                ("t", b"b", b'{"K": "a", "N": 3}'),
                ("t", b"a", b'{"K": "b", "N": 2}'),
                ("u", b"a", None),
                ("u", b"b", b'{"K": "a", "N": 5}'),
                ("t", b"b", None),
                ("t", b"b", b'{"K": "a", "N": 7}'),
                ("s", b"a", b'{"K": "x", "N": 1, "XS": ["a", "b", "z"]}'),
                ("s", b"b", b'{"K": "y", "N": 2, "XS": ["b", null, "b"]}'),
                ("s", b"a", b'{"K": "z", "N": 3, "XS": null}'),
            ]
        )
    ]
    read = {topic for topic in "stu" if f"KAFKA_TOPIC='{topic}'" in sql}
    records = [record for record in records if record.topic in read]
    holds(engine, sql, records, set(range(len(records))))
