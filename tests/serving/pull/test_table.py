import pytest

from holdfast.errors import ReadError
from holdfast.names import CollectionId
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.progress import Progress, Status
from holdfast.serving.projection import Projection
from holdfast.serving.time import read_times as times
from tests.serving.client_reads import Reading, plain

ROWS = {"a": (1, "x"), "b": (2, None), "": (None, "y"), "A": (3, "x"), "it's": (4, "")}

BY_INDEX = [
    "t WHERE id = 'a'",
    "t WHERE 'a' = id",
    "t WHERE id IN ('a', 'b', 'nowhere')",
    "t WHERE id = 'a' AND n > 0",
    "t WHERE n > 0 AND id = 'a'",
    "t WHERE n > 5 AND id = 'a'",
    "t WHERE id = 'a' AND id = 'b'",
    "t WHERE id IN ('a', 'b') AND id = 'b'",
    "t WHERE id = ''",
    "t WHERE id = 'it''s'",
    "i WHERE id = 1",
    "i WHERE id IN (1, 2)",
    "l WHERE id = 1",
    "l WHERE id = 3000000000",
    "l WHERE id IN (1, 3000000000)",
    "two WHERE a = 1 AND b = 'x'",
    "two WHERE b = 'x' AND n > 0 AND a = 1",
    "w WHERE id = 'a' AND WINDOWSTART = 10",
    "w WHERE WINDOWSTART IN (0, 10, 9223372036854775807) AND id = 'a'",
    "w WHERE id = 'a' AND WINDOWSTART = 10 AND WINDOWEND = 30",
]
BY_SCAN = [
    "t",
    "t WHERE id = 'a' OR n = 2",
    "t WHERE NOT id = 'a'",
    "t WHERE id <> 'a'",
    "t WHERE id NOT IN ('a')",
    "t WHERE id > 'a'",
    "t WHERE id LIKE 'a'",
    "t WHERE id = s",
    "t WHERE LEN(id) = 1",
    "t WHERE s = 'x'",
    "t WHERE (id = 'a') = true",
    "i WHERE id = 3000000000",
    "i WHERE id IN (1, 3000000000)",
    "i WHERE id = 1.0",
    "i WHERE id = 1.5",
    "i WHERE id = 1e0",
    "l WHERE id = 1.5",
    "l WHERE id = 1e0",
    "d WHERE id = 0",
    "d WHERE id = 0e0",
    "d WHERE id = 1e0",
    "d WHERE id = 1",
    "w WHERE id = 'a'",
    "w WHERE id = 'a' AND WINDOWSTART >= 10",
    "w WHERE WINDOWSTART = 10",
    "w WHERE id = 'a' AND WINDOWEND = 20",
    "w WHERE id IN ('a', 'b') AND WINDOWSTART = 10",
    "ses WHERE id = 'a' AND WINDOWSTART = 10",
    "two WHERE a = 1",
    "two WHERE a = 1 AND b IN ('x', 'y')",
    "two WHERE a = 1 OR b = 'x'",
]


@pytest.fixture(scope="module")
def filled(engine):
    reading = Reading(engine)
    reading.put("T", ROWS)
    reading.put("I", {1: (1,), 2: (2,)})
    reading.put("L", {1: (1,), 3_000_000_000: (2,)})
    reading.put("D", {-0.0: (1,), 1.0: (2,)})
    reading.put("W", {("a", 0, 10): (1,), ("a", 10, 20): (2,), ("b", 10, 20): (3,)})
    reading.put("SES", {("a", 10, 12): (1,), ("a", 30, 30): (2,)})
    reading.put("TWO", {(1, "x"): (1,), (1, "y"): (2,), (2, "x"): (3,)})
    yield reading
    reading.close()


def named_keys(reading: Reading, text: str) -> list[list[str]] | None:
    return Projection(reading.bound(text)).named_keys()


@pytest.mark.parametrize("clause", BY_INDEX)
def test_keys_that_are_named_are_found_by_the_index(clause, filled):
    assert named_keys(filled, f"SELECT * FROM {clause};") is not None


@pytest.mark.parametrize("clause", BY_SCAN)
def test_the_index_is_left_alone_where_it_could_be_wrong(clause, filled):
    assert named_keys(filled, f"SELECT * FROM {clause};") is None


@pytest.mark.parametrize("clause", BY_INDEX + BY_SCAN)
def test_the_index_changes_no_answer(clause, filled):
    bound = filled.bound(f"SELECT * FROM {clause};")
    result = filled.pull(f"SELECT * FROM {clause};")
    relations = {"t": (CollectionId(bound.relation.name), result.time)}
    scanned = filled.store.evaluate(Projection(bound).select("t", Dialect.DUCKDB), relations)
    assert sorted(plain(result.rows), key=repr) == sorted(plain(scanned), key=repr)


def test_what_a_pull_gives(filled):
    result = filled.pull("SELECT n + 1 AS m, id, s IS NULL AS nothing, ROWTIME FROM t WHERE n < 3;")
    assert [(c.name, str(c.type)) for c in result.columns] == [
        ("M", "INTEGER"), ("ID", "STRING"), ("NOTHING", "BOOLEAN"), ("ROWTIME", "BIGINT"),
    ]  # fmt: skip
    assert sorted(plain(result.rows)) == [(2, "a", False, 5), (3, "b", True, 5)]
    assert result.time == filled.now
    assert result.notice is None


def test_limit(filled):
    assert filled.pull("SELECT * FROM t LIMIT 2;").rows.num_rows == 2
    assert filled.pull("SELECT * FROM t LIMIT 0;").rows.num_rows == 0


def test_a_pull_sees_the_latest_tick_and_no_deleted_row(reading):
    reading.put("T", {"a": (1, "x"), "b": (2, "x")})
    reading.put("T", {"a": (5, "x"), "b": None})
    assert plain(reading.pull("SELECT id, n FROM t;").rows) == [("a", 5)]


def test_a_table_whose_query_stopped_is_read_where_it_stopped_with_a_notice(reading):
    stopped = reading.put("T", {"a": (1, "x")})
    reading.progress = Progress(Status.ERROR, reason="out of memory")
    reading.now += 1_000
    result = reading.pull("SELECT id, n FROM t;")
    assert (plain(result.rows), result.time) == ([("a", 1)], stopped)
    why = "its query TABLE_T stopped: out of memory"
    assert result.notice == f'table "T" has been frozen since {stopped}: {why}'


def test_a_table_that_is_being_built_is_waited_for_then_reported(reading, monkeypatch):
    monkeypatch.setattr(times, "BUILD_WAIT_SECONDS", 0.05)
    reading.progress = Progress(Status.BUILDING, done=0.43)
    with pytest.raises(ReadError, match=r'table "T" is still building, 43%'):
        reading.pull("SELECT * FROM t;")
