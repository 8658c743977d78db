"""Rows of the in-memory store as plain tuples, and their conversion from and to Arrow."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from holdfast.errors import StoreError
from holdfast.runtime import physical_columns as col
from holdfast.runtime.physical_columns import AFTER, BEFORE
from holdfast.runtime.store import schemas
from holdfast.runtime.store.port import Layout, Time
from holdfast.runtime.store.schemas import names

Key = tuple[Any, ...]


class Row(NamedTuple):
    """A row of a key; `ts` is known also of a delete, `value` is not."""

    present: bool
    value: tuple[Any, ...]
    ts: int | None


Rows = dict[Key, Row]


class Change(NamedTuple):
    time: Time
    key: Key
    before: Row
    after: Row


Delta = dict[Key, tuple[Row, Row]]


def outbox_rows(delta: Delta) -> list[tuple[Key, Row]]:
    return [(key, after) for key, (before, after) in delta.items() if before.present or after.present]


def read_rows(rows: pa.Table, layout: Layout, *, value: str = "c") -> Iterator[tuple[Key, Row]]:
    for row in rows.to_pylist():
        key = tuple(row[name] for name in names("k", layout.key))
        yield key, Row(row.get("present", True), tuple(row[name] for name in names(value, layout.value)), row["ts"])


def unique(rows: Iterator[tuple[Key, Row]], layout: Layout) -> Rows:
    found: Rows = {}
    for key, row in rows:
        if key in found or (schemas.is_plain_key(layout) and key[0] is None):
            raise StoreError("a tick has keys that are null or not unique")
        if row.present is None:
            raise StoreError("rows of a tick do not say whether they are present")
        found[key] = row
    return found


def record(key: Key, row: Row) -> dict[str, Any]:
    keys = {col.key(i): v for i, v in enumerate(key)}
    return keys | {col.value(i): v for i, v in enumerate(row.value)} | {col.ROW_TIME: row.ts}


def delta_record(key: Key, before: Row, after: Row) -> dict[str, Any]:
    record: dict[str, Any] = {col.key(i): v for i, v in enumerate(key)}
    for side, row in ((BEFORE, before), (AFTER, after)):
        record |= {side.present: row.present, side.row_time: row.ts}
        record |= {side.column(i): v for i, v in enumerate(row.value)}
    return record


def in_a_span(key: Key, row: Row, spans: list[dict[str, Any]]) -> bool:
    return any(
        row.ts is not None
        and row.ts <= span["upto"]
        and (span["after"] is None or row.ts > span["after"])
        and all(key[int(name[1:])] == value for name, value in span.items() if re.fullmatch(r"k\d+", name))
        and all(row.value[int(name[1:])] == value for name, value in span.items() if re.fullmatch(r"c\d+", name))
        for span in spans
    )


def rows_table(rows: Rows, layout: Layout) -> pa.Table:
    records = [record(key, row) for key, row in rows.items()]
    return pa.Table.from_pylist(records, schema=schemas.rows_schema(layout))


def delta_table(delta: Delta, layout: Layout) -> pa.Table:
    records = [delta_record(key, before, after) for key, (before, after) in delta.items()]
    return pa.Table.from_pylist(records, schema=schemas.delta_schema(layout))


def wider(row: Row, more: int) -> Row:
    """The row with further values, which are NULL."""
    return row._replace(value=(*row.value, *(None,) * more))


def wider_change(change: Change, more: int) -> Change:
    return change._replace(before=wider(change.before, more), after=wider(change.after, more))
