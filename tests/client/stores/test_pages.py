"""Rows of stores in pages: each row once, in order, at one time, and no page larger than the database allows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest

from holdfast.client.stores.pages import OrderedQuery, PagedRows
from holdfast.client.stores.port import StoreSchema
from holdfast.errors import ResultTooLarge

ROWS = [
    (key, start, n) for n, (key, start) in enumerate((key, start) for start in range(9) for key in ("b", "a", None))
]
SELECT = "SELECT k, WINDOWSTART, n FROM t"
ORDER = (("WINDOWSTART", 1), ("k", 0))


class Database:
    """A database that refuses results of more than `most` rows, and changes as soon as it is read."""

    def __init__(self, most: int) -> None:
        self.most, self.texts, self.snapshots = most, list[str](), 0
        self.connection = duckdb.connect()
        self.connection.execute("SET default_null_order = 'postgres'")
        self.connection.execute("CREATE TABLE t (k VARCHAR, WINDOWSTART BIGINT, n BIGINT)")
        self.connection.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS)

    def schema(self, name: str) -> StoreSchema:
        raise NotImplementedError(name)

    def rows(self, sql: str) -> "Rows":
        self.texts.append(sql)
        assert sql.count("AS OF") <= 1
        found = self.connection.execute(sql.partition(" AS OF")[0].rstrip(";")).fetchall()
        if len(found) > self.most:
            raise ResultTooLarge(self.most)
        return Rows(found)

    @contextmanager
    def at_one_time(self) -> Iterator["Database"]:
        self.snapshots += 1
        try:
            yield self
        finally:
            self.snapshots -= 1


class Rows(Iterator[tuple[Any, ...]]):
    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = iter(rows)

    def __next__(self) -> tuple[Any, ...]:
        return next(self._rows)

    def close(self) -> None:
        self._rows = iter(())


def ordered(*, backward: bool) -> list[tuple[Any, ...]]:
    return sorted(ROWS, key=lambda row: (row[1], row[0] is None, row[0] or ""), reverse=backward)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 26, 27, 28, 1_000])
def test_pages_together_are_the_result(size: int, backward: bool) -> None:
    database = Database(most=1_000)
    found = PagedRows(database, OrderedQuery(SELECT, ("n >= 0",), ORDER, backward, None), size)
    assert list(found) == ordered(backward=backward)


@pytest.mark.parametrize("most", [1, 3, 5])
def test_a_page_that_is_too_large_is_read_in_smaller_ones(most: int) -> None:
    database = Database(most)
    assert list(PagedRows(database, OrderedQuery(SELECT, (), ORDER, False, None))) == ordered(backward=False)
    assert database.snapshots == 0


def test_one_row_that_is_too_large_is_an_error() -> None:
    with pytest.raises(ResultTooLarge):
        next(PagedRows(Database(most=0), OrderedQuery(SELECT, (), ORDER, False, None)))


def test_a_small_result_is_one_query_and_a_large_one_reads_at_one_time() -> None:
    database = Database(most=1_000)
    list(PagedRows(database, OrderedQuery(SELECT, (), ORDER, False, None)))
    assert (len(database.texts), database.snapshots) == (1, 0)
    rows = PagedRows(database, OrderedQuery(SELECT, (), ORDER, False, 7), 10)
    assert next(rows) == ordered(backward=False)[0]
    assert database.snapshots == 1
    assert len(database.texts) == 3, "the next page is read when it is needed"
    list(rows)
    assert ["AS OF 7" in text for text in database.texts[1:]] == [True, True, False, False]
    rows = PagedRows(database, OrderedQuery(SELECT, (), ORDER, False, None), 10)
    next(rows)
    rows.close()
    assert database.snapshots == 0, "closing the rows ends the transaction"
    assert list(rows) == []


def test_keys_that_are_no_constants_are_read_at_once() -> None:
    database = Database(most=1_000)
    database.connection.execute("CREATE TABLE s AS SELECT {'k': k} AS k, WINDOWSTART, n FROM t WHERE k IS NOT NULL")
    query = OrderedQuery("SELECT k, WINDOWSTART, n FROM s", (), ORDER, False, None)
    assert [row[2] for row in PagedRows(database, query, 4)] == [
        n for k, _, n in ordered(backward=False) if k is not None
    ]
