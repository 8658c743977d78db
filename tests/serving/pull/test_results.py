"""Results of pull queries that do not fit into memory are refused, and those that do are whole."""

from pathlib import Path

import pytest

from holdfast.errors import ReadError, ResultTooLarge
from holdfast.runtime.store.duckdb.store import open_store
from tests.serving.client_reads import Reading, plain

MANY = {f"k{n:04}": (n, "x" * 50) for n in range(2_000)}
LIMIT = 20_480


@pytest.fixture
def limited(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> Reading:
    reading.put("T", MANY)
    monkeypatch.setattr(reading.store, "max_result_bytes", LIMIT)
    return reading


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t;",
        "SELECT id, s FROM t ORDER BY n DESC;",
        "SELECT a.id, a.s, b.s FROM t a JOIN t b ON a.id = b.id;",
        "SELECT id, UCASE(s) AS u FROM t;",
    ],
)
def test_a_result_that_is_too_large_is_refused_with_what_to_do_instead(limited: Reading, text: str) -> None:
    with pytest.raises(ResultTooLarge) as raised:
        limited.pull(text)
    assert raised.value.message.endswith("is larger than 20 kB")
    assert raised.value.sqlstate == "54000"
    assert "max_result_bytes" in (raised.value.detail or "")
    assert "EMIT ALL" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT COUNT(*) AS c, MAX(s) AS s FROM t;", [(2_000, "x" * 50)]),
        ("SELECT n FROM t WHERE id = 'k0007';", [(7,)]),
        ("SELECT n FROM t ORDER BY n LIMIT 3;", [(0,), (1,), (2,)]),
    ],
)
def test_a_small_result_of_many_rows_is_whole(limited: Reading, text: str, rows: list[tuple[object, ...]]) -> None:
    assert plain(limited.pull(text).rows) == rows


def test_emit_all_sends_a_table_of_any_size(limited: Reading) -> None:
    push = limited.push("SELECT id, s FROM t EMIT CHANGES;", snapshot=True)
    read = 0
    while read < len(MANY):
        batch = push.next(timeout=1.0)
        assert batch is not None
        read += batch.rows.num_rows
    push.close()


def test_an_error_in_the_middle_of_a_result_is_the_errors_own(tmp_path: Path) -> None:
    store = open_store(tmp_path, read_timeout=1.0)
    with pytest.raises(ReadError, match="the query failed") as raised:
        store.evaluate(
            "SELECT CASE WHEN range = 900000 THEN error('no such row') ELSE range END FROM range(1000000)", {}
        )
    assert "no such row" in (raised.value.detail or "")
    with pytest.raises(ReadError, match="longer than 1 seconds"):
        store.evaluate("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b", {})
    assert store.evaluate("SELECT 1 AS one", {}).to_pylist() == [{"one": 1}]
    store.close()
