"""Joins by a foreign key: however the records come, the table is the join of what both sides have at the end."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from laws import slow_law
from runtime.driver import Driver, Record

pytestmark = pytest.mark.law

SQL = """
CREATE TABLE people (id STRING PRIMARY KEY, city STRING, age INT) WITH (KAFKA_TOPIC='people', VALUE_FORMAT='JSON');
CREATE TABLE cities (id STRING PRIMARY KEY, size INT) WITH (KAFKA_TOPIC='cities', VALUE_FORMAT='JSON');
CREATE TABLE names (id STRING PRIMARY KEY, name STRING) WITH (KAFKA_TOPIC='names', VALUE_FORMAT='JSON');
CREATE TABLE settled AS SELECT p.id AS id, age, size FROM people p JOIN cities c ON LCASE(p.city) = c.id;
CREATE TABLE anyone AS SELECT p.id AS id, age, size FROM people p LEFT JOIN cities c ON LCASE(p.city) = c.id;
CREATE TABLE named AS SELECT p.id AS id, size, name FROM people p JOIN cities c ON LCASE(p.city) = c.id
  LEFT JOIN names n ON p.id = n.id;
"""

CITIES = ["rome", "bern"]
people = st.tuples(
    st.sampled_from("ab"),
    st.none() | st.tuples(st.sampled_from(["Rome", "rome", "bern", "x", None]), st.integers(0, 3)),
).map(lambda v: Record("people", v[0].encode(), v[1] and json.dumps({"CITY": v[1][0], "AGE": v[1][1]}).encode()))
cities = st.tuples(st.sampled_from(CITIES), st.none() | st.integers(0, 3)).map(
    lambda v: Record("cities", v[0].encode(), None if v[1] is None else json.dumps({"SIZE": v[1]}).encode())
)
names = st.tuples(st.sampled_from("ab"), st.none() | st.sampled_from(["Ann", "Bob"])).map(
    lambda v: Record("names", v[0].encode(), v[1] and json.dumps({"NAME": v[1]}).encode())
)


def latest(records: Sequence[Record], topic: str) -> dict[str, dict]:
    found = {r.key.decode(): r.value for r in records if r.topic == topic and r.key is not None}
    return {key: json.loads(value) for key, value in found.items() if value is not None}


def expected(records: Sequence[Record]) -> dict[str, list[tuple]]:
    sizes = {key: city["SIZE"] for key, city in latest(records, "cities").items()}
    called = {key: row["NAME"] for key, row in latest(records, "names").items()}
    rows = {key: (row["AGE"], (row["CITY"] or "").lower()) for key, row in latest(records, "people").items()}
    return {
        "SETTLED": sorted((key, age, sizes[city]) for key, (age, city) in rows.items() if city in sizes),
        "ANYONE": sorted(((key, age, sizes.get(city)) for key, (age, city) in rows.items()), key=repr),
        "NAMED": sorted(
            ((key, sizes[city], called.get(key)) for key, (_, city) in rows.items() if city in sizes), key=repr
        ),
    }


def results(engine, ticks: Sequence[Sequence[Record]]) -> dict[str, list[tuple]]:
    driver = Driver(engine, SQL)
    for tick in ticks:
        assert not driver.tick(tick).failed
    found = {name: driver.rows(name) for name in expected([])}
    driver.close()
    return found


def values(tables: dict[str, list[tuple]]) -> dict[str, list[tuple]]:
    """Rows without their times."""
    return {name: sorted((row[:3] for row in rows), key=repr) for name, rows in tables.items()}


def _people(key: bytes, city: str | None, age: int) -> Record:
    return Record("people", key, json.dumps({"CITY": city, "AGE": age}).encode())


MOVES = [
    _people(b"a", "Rome", 1),
    Record("cities", b"rome", b'{"SIZE": 5}'),
    _people(b"b", "rome", 2),
    Record("names", b"a", b'{"NAME": "Ann"}'),
    _people(b"a", "bern", 3),
    Record("cities", b"bern", b'{"SIZE": 1}'),
    Record("cities", b"rome", b'{"SIZE": 6}'),
    Record("cities", b"bern", None),
    _people(b"a", None, 4),
    Record("people", b"b", None),
    _people(b"a", "rome", 4),
]


@slow_law(1)
@example(MOVES)
@given(st.lists(st.one_of(people, people, cities, names), min_size=6, max_size=14))
def test_the_table_is_the_join_of_both_at_every_time(engine, records):
    wanted = expected(records)
    records = [Record(r.topic, r.key, r.value, i) for i, r in enumerate(records)]
    one_by_one = results(engine, [[record] for record in records])
    assert values(one_by_one) == wanted
    assert results(engine, [records]) == one_by_one
