"""The rows of a store in pages, so that neither the database nor the client has all of them in memory.

A result of one page is one query. A larger one is read in a transaction, whose queries all read at one time; each page
begins after the last row of the one before.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from holdfast.client.stores.literals import constant
from holdfast.client.stores.port import StoreReader
from holdfast.errors import HoldfastError, ResultTooLarge, TypeMismatch

PAGE_ROWS = 5_000

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class OrderedQuery:
    """A query of a table in the order of some of its columns, by their positions in the row; together they are unique.

    NULL is greater than any value.
    """

    select: str
    conditions: tuple[str, ...]
    order: tuple[tuple[str, int], ...]
    backward: bool
    at: int | None

    def text(self, limit: int | None) -> str:
        where = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        direction = " DESC" if self.backward else ""
        ordered = ", ".join(f"{column}{direction}" for column, _ in self.order)
        order = f" ORDER BY {ordered}" if ordered else ""
        limited = "" if limit is None else f" LIMIT {limit}"
        return f"{self.select}{where}{order}{limited}{'' if self.at is None else f' AS OF {self.at}'};"

    def after(self, row: Row) -> "OrderedQuery":
        """The rest of the query; raises `TypeMismatch` for keys that cannot be written as constants."""
        values = [(column, row[position]) for column, position in self.order]
        later = [
            " AND ".join([*(_equal(*each) for each in values[:i]), self._beyond(*each)])
            for i, each in enumerate(values)
        ]
        # The first condition alone restricts the rows to those from the last one on, which an index can find.
        first = [] if values[0][1] is None else [self._from(*values[0])]
        rest = " OR ".join(f"({each})" for each in later)
        return replace(self, conditions=(*self.conditions, *first, f"({rest})"))

    def _from(self, column: str, value: Any) -> str:
        if self.backward:
            return f"{column} <= {constant(value)}"
        bound = f"{column} >= {constant(value)}"
        return bound if _is_bound(column) else f"({bound} OR {column} IS NULL)"

    def _beyond(self, column: str, value: Any) -> str:
        if value is None:
            return f"{column} IS NOT NULL" if self.backward else "FALSE"
        if self.backward:
            return f"{column} < {constant(value)}"
        bound = f"{column} > {constant(value)}"
        return bound if _is_bound(column) else f"({bound} OR {column} IS NULL)"


class PagedRows(Iterator[Row]):
    """The rows of a query, read page by page as they are used."""

    def __init__(self, reader: StoreReader, query: OrderedQuery, size: int = PAGE_ROWS) -> None:
        self._rows = _read(reader, query, size)

    def __next__(self) -> Row:
        return next(self._rows)

    def close(self) -> None:
        self._rows.close()


def _read(reader: StoreReader, query: OrderedQuery, size: int) -> Generator[Row]:
    page = _page(reader, query.text(size))
    if page is not None and len(page) < size:
        yield from page
        return
    del page
    with reader.at_one_time() as snapshot:
        yield from _pages(snapshot, query, size)


def _pages(reader: StoreReader, query: OrderedQuery, size: int) -> Generator[Row]:
    """All rows, in pages that become smaller when one is too large for the database."""
    rest, returned = query, 0
    while True:
        page = _page(reader, rest.text(size), may_fail=size > 1)
        if page is None:
            size = max(1, size // 4)
            continue
        yield from page
        returned += len(page)
        if len(page) < size:
            return
        # The transaction has its time from now on.
        query = replace(query, at=None)
        try:
            rest = query.after(page[-1])
        except TypeMismatch:
            with closing(reader.rows(query.text(None))) as rows:
                yield from islice(rows, returned, None)
            return


def _page(reader: StoreReader, text: str, *, may_fail: bool = True) -> Sequence[Row] | None:
    """The rows of a query; None if they are too large and it `may_fail`."""
    try:
        with closing(reader.rows(text)) as rows:
            return list(rows)
    except HoldfastError as error:
        # An error of a server has the first class of its SQLSTATE, which can be another one.
        if error.sqlstate != ResultTooLarge.sqlstate or not may_fail:
            raise
        return None


def _equal(column: str, value: Any) -> str:
    return f"{column} IS NULL" if value is None else f"{column} = {constant(value)}"


def _is_bound(column: str) -> bool:
    """Whether it is a bound of windows, which is never NULL."""
    return column in ("WINDOWSTART", "WINDOWEND")
