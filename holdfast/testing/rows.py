"""Rows of queries as a test writes them, and where they are not those expected."""

import json
from collections.abc import Sequence
from decimal import Decimal

import orjson
import pyarrow as pa

from holdfast.runtime.plan.jsontext import JsonValue
from holdfast.server.values import json_rows
from holdfast.serving.results import ResultColumn
from holdfast.testing.case import ExpectedRow
from holdfast.testing.comparing import same, shown
from holdfast.types import SqlType

TOMBSTONE = "tombstone"


def shown_rows(rows: pa.Table, columns: Sequence[ResultColumn]) -> list[ExpectedRow]:
    """The rows as HTTP would send them."""
    values = [tuple(map(_plain, row)) for row in json_rows(rows, columns)]
    gone = rows.column(TOMBSTONE).to_pylist() if TOMBSTONE in rows.column_names else [False] * len(values)
    return [ExpectedRow(row, tombstone) for row, tombstone in zip(values, gone, strict=True)]


def _plain(value: object) -> JsonValue:
    return json.loads(orjson.dumps(value), parse_float=Decimal)  # type: ignore[no-any-return]


def row_difference(
    expected: Sequence[ExpectedRow], actual: Sequence[ExpectedRow], types: Sequence[SqlType]
) -> str | None:
    """How rows are not those expected, in their order; None when they are."""
    for number, (wanted, found) in enumerate(zip(expected, actual, strict=False), start=1):
        if not _same_row(wanted, found, types):
            return f"row {number}: {_told(wanted)} expected, {_told(found)} came"
    if len(expected) != len(actual):
        more = f"; the next is {_told(actual[len(expected)])}" if len(actual) > len(expected) else ""
        return f"{len(expected)} rows expected, {len(actual)} came{more}"
    return None


def _same_row(expected: ExpectedRow, actual: ExpectedRow, types: Sequence[SqlType]) -> bool:
    return (
        expected.tombstone == actual.tombstone
        and len(expected.values) == len(actual.values)
        and all(map(same, expected.values, actual.values, types))
    )


def _told(row: ExpectedRow) -> str:
    return f"{TOMBSTONE + ' ' if row.tombstone else ''}{shown(list(row.values))}"
