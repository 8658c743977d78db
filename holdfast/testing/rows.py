"""Query rows in the form that tests use, and their first difference from the expected rows."""

import json
from collections.abc import Sequence
from decimal import Decimal

import orjson
import pyarrow as pa

from holdfast.runtime.plan.json_text import JsonValue
from holdfast.serving.json_values import json_rows
from holdfast.serving.results import ResultColumn
from holdfast.testing.case import ExpectedRow
from holdfast.testing.comparison import same, to_text
from holdfast.types import SqlType

TOMBSTONE = "tombstone"


def result_rows(rows: pa.Table, columns: Sequence[ResultColumn]) -> list[ExpectedRow]:
    """The rows as HTTP would send them."""
    values = [tuple(map(_plain, row)) for row in json_rows(rows, columns)]
    tombstones = rows.column(TOMBSTONE).to_pylist() if TOMBSTONE in rows.column_names else [False] * len(values)
    return [ExpectedRow(row, tombstone) for row, tombstone in zip(values, tombstones, strict=True)]


def _plain(value: object) -> JsonValue:
    return json.loads(orjson.dumps(value), parse_float=Decimal)  # type: ignore[no-any-return]


def row_difference(
    expected: Sequence[ExpectedRow], actual: Sequence[ExpectedRow], types: Sequence[SqlType]
) -> str | None:
    """The first difference from the expected rows, as text; None if there is none."""
    for number, (wanted, found) in enumerate(zip(expected, actual, strict=False), start=1):
        if not _same_row(wanted, found, types):
            return f"row {number}: expected {_text(wanted)}, got {_text(found)}"
    if len(expected) != len(actual):
        more = f"; the next is {_text(actual[len(expected)])}" if len(actual) > len(expected) else ""
        return f"expected {len(expected)} rows, got {len(actual)}{more}"
    return None


def _same_row(expected: ExpectedRow, actual: ExpectedRow, types: Sequence[SqlType]) -> bool:
    return (
        expected.tombstone == actual.tombstone
        and len(expected.values) == len(actual.values)
        and all(map(same, expected.values, actual.values, types))
    )


def _text(row: ExpectedRow) -> str:
    return f"{TOMBSTONE + ' ' if row.tombstone else ''}{to_text(list(row.values))}"
