"""Reads tables of a service in the same process, as the client reads those of a server."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from holdfast.catalog.objects import Table
from holdfast.client.stores.http import not_a_store
from holdfast.client.stores.port import StoreSchema
from holdfast.client.values import nullable
from holdfast.errors import NoTransaction
from holdfast.serving.json_values import json_rows
from holdfast.serving.results import ResultColumn
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import parse
from holdfast.types import Scalar

if TYPE_CHECKING:
    from holdfast.service.service import ServiceApi

PLAIN = (Scalar.BOOLEAN, Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE, Scalar.STRING)
"""Types whose values are the same in Arrow and in the client."""
PAGE_ROWS = 1_000


class ServiceReader:
    """Runs pull queries in this process; rows become Python values page by page, as they are used."""

    def __init__(self, service: "ServiceApi", transaction: str | None = None) -> None:
        self._service, self._transaction = service, transaction

    def schema(self, name: str) -> StoreSchema:
        found = self._service.catalog.relation(name)
        if not isinstance(found, Table):
            raise not_a_store(name)
        key, value = (tuple(column.name for column in side) for side in (found.schema.key, found.schema.value))
        return StoreSchema(name, key, value, None if found.window is None else found.window.type.value)

    def rows(self, sql: str) -> "ServiceRows":
        (parsed,) = parse(sql)
        bound = bind(parsed.statement, self._service.catalog, {})
        assert isinstance(bound, BoundSelect | BoundRead)
        result = self._service.pull(bound, self._transaction)
        return ServiceRows(result.rows, result.columns)

    @contextmanager
    def at_one_time(self) -> Iterator["ServiceReader"]:
        opened = self._service.begin_transaction(read_only=True)
        try:
            yield ServiceReader(self._service, opened)
        finally:
            # One that timed out has ended.
            with suppress(NoTransaction):
                self._service.end_transaction(opened, commits=False)


class ServiceRows:
    """The rows of a result."""

    def __init__(self, rows: pa.Table, columns: tuple[ResultColumn, ...]) -> None:
        self._rows = _values(rows, columns)

    def __iter__(self) -> "ServiceRows":
        return self

    def __next__(self) -> tuple[Any, ...]:
        return next(self._rows)

    def close(self) -> None:
        self._rows = iter(())


def _values(rows: pa.Table, columns: tuple[ResultColumn, ...]) -> Iterator[tuple[Any, ...]]:
    is_plain = all(column.type in PLAIN for column in columns)
    readers = [nullable(column.type) for column in columns]
    for start in range(0, rows.num_rows, PAGE_ROWS):
        page = rows.slice(start, PAGE_ROWS)
        if is_plain:
            yield from zip(*(page.column(i).to_pylist() for i in range(len(columns))), strict=True)
            continue
        for row in json_rows(page, columns):
            # Through JSON, so that values are those of the client over HTTP.
            cells = json.loads(orjson.dumps(row), parse_float=Decimal)
            yield tuple(read(cell) for read, cell in zip(readers, cells, strict=True))
