"""Pulls by key that are prepared: which queries are, and that they answer as any pull does."""

import pytest

from holdfast.runtime.progress import Progress, Status
from holdfast.serving.pull.key_lookup import key_lookup
from tests.serving.client_reads import Reading, plain

BY_KEY = [
    "t WHERE id = 'a'",
    "t WHERE 'a' = id",
    "t WHERE id = ''",
    "t WHERE id = 'it''s'",
    "t WHERE id = 'nowhere'",
    "i WHERE id = 1",
    "i WHERE id = 7",
    "l WHERE id = 1",
    "l WHERE id = 3000000000",
    "two WHERE a = 1 AND b = 'x'",
    "two WHERE b = 'y' AND a = 1",
]
OTHERWISE = [
    "t",
    "t WHERE id = 'a' LIMIT 1",
    "t WHERE id = 'a' AND n = 1",
    "t WHERE id = 'a' AND id = 'a'",
    "t WHERE id = 'a' OR id = 'b'",
    "t WHERE NOT id = 'a'",
    "t WHERE id IN ('a')",
    "t WHERE id = s",
    "t WHERE id <> 'a'",
    "t WHERE n = 1",
    "i WHERE id = 3000000000",
    "i WHERE id = 1.0",
    "i WHERE id = -1",
    "d WHERE id = 1e0",
    "two WHERE a = 1",
    "two WHERE a = 1 AND b = 'x' AND n = 1",
]


@pytest.fixture(scope="module")
def filled(engine):
    reading = Reading(engine)
    reading.put("T", {"a": (1, "x"), "b": (2, None), "": (None, "y"), "it's": (4, "")})
    reading.put("I", {1: (1,), 2: (2,)})
    reading.put("L", {1: (1,), 3_000_000_000: (2,)})
    reading.put("TWO", {(1, "x"): (1,), (1, "y"): (2,), (2, "x"): (3,)})
    yield reading
    reading.close()


def rows_of(result):
    return result.rows if isinstance(result.rows, list) else plain(result.rows)


def lookup(reading: Reading, text: str):
    return key_lookup(reading.bound(text), reading.store)


@pytest.mark.parametrize("items", ["*, n + 1 AS m, ROWTIME", "n, CAST(n AS DOUBLE) AS d, n = 1 AS b, ARRAY[n] AS a"])
@pytest.mark.parametrize("clause", BY_KEY)
def test_a_lookup_answers_as_the_pull_does(clause, items, filled):
    text = f"SELECT {items} FROM {clause};"
    found = lookup(filled, text)
    pulled = filled.pull(text)
    result = found.read([found.key], filled.times)
    place = result.positions.get(found.key)
    assert plain(pulled.rows) == ([] if place is None else [rows_of(result)[place]])
    assert (result.columns, result.time) == (pulled.columns, pulled.time)


@pytest.mark.parametrize("clause", OTHERWISE)
def test_what_says_more_than_the_key_is_no_lookup(clause, filled):
    assert lookup(filled, f"SELECT * FROM {clause};") is None


def test_many_keys_are_read_at_once(filled):
    found = lookup(filled, "SELECT n, s FROM t WHERE id = 'a';")
    result = found.read([("a",), ("b",), ("gone",), ("a",), ("it's",)], filled.times)
    rows = rows_of(result)
    assert {key: rows[place] for key, place in result.positions.items()} == {
        ("a",): (1, "x"),
        ("b",): (2, None),
        ("it's",): (4, ""),
    }


def test_keys_of_several_columns(filled):
    found = lookup(filled, "SELECT n FROM two WHERE b = 'x' AND a = 1;")
    assert found.key == (1, "x")
    result = found.read([(1, "x"), (2, "x"), (2, "y")], filled.times)
    assert {key: rows_of(result)[place] for key, place in result.positions.items()} == {(1, "x"): (1,), (2, "x"): (3,)}


def test_a_lookup_sees_the_latest_tick(reading):
    reading.put("T", {"a": (1, "x"), "b": (2, "x")})
    found = lookup(reading, "SELECT n FROM t WHERE id = 'a';")
    for value in (5, 6):
        reading.put("T", {"a": (value, "x"), "b": None})
        result = found.read([("a",), ("b",)], reading.times)
        assert (rows_of(result), result.time) == ([(value,)], reading.now)


def test_a_table_whose_query_stopped_comes_with_a_notice(reading):
    reading.put("T", {"a": (1, "x")})
    found = lookup(reading, "SELECT n FROM t WHERE id = 'a';")
    reading.progress = Progress(Status.ERROR, reason="out of memory")
    assert "out of memory" in found.read([("a",)], reading.times).notice
