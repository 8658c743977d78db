"""Small layouts, rows and reads that the store's tests share."""

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from holdfast.names import CollectionId, QueryId, StateId
from holdfast.runtime.store import schemas
from holdfast.runtime.store.port import Layout, Merge, StateMerge, StateProjection, Store, TickStage, Time
from holdfast.types import Scalar

QUERY = QueryId("Q")
TABLE = CollectionId("table")
LAYOUT = Layout((Scalar.STRING,), (Scalar.BIGINT, Scalar.STRING))
PAIRS = CollectionId("pairs")
PAIRS_LAYOUT = Layout((Scalar.BIGINT, Scalar.STRING), (Scalar.DOUBLE,), 1)
TOTALS = StateId("totals")
TOTALS_LAYOUT = Layout((Scalar.BIGINT,), (Scalar.BIGINT, Scalar.STRING))
SHOWN = CollectionId("shown")
SHOWN_LAYOUT = Layout((Scalar.BIGINT,), (Scalar.BIGINT,))

SUM_AND_LAST = Merge(initial=("0", "NULL"), merged=("s0 + p0", "coalesce(p1, s1)"))
POSITIVE_TWICE = StateProjection(columns=("s0 * 2",), having="s0 > 0")


def upserts(layout: Layout, *rows: tuple[Any, ...]) -> pa.Table:
    """Rows as (key columns, value columns, ts); a value of None deletes."""
    schema = schemas.upsert_schema(layout)
    records = []
    for key, value, ts in rows:
        present = value is not None
        values = value if present else (None,) * len(layout.value)
        records.append([*key, *values, ts, present])
    arrays = zip(*records, strict=True) if records else [[] for _ in schema]
    return pa.Table.from_arrays([pa.array(a, f.type) for a, f in zip(arrays, schema, strict=True)], schema=schema)


def partials(layout: Layout, *rows: tuple[Any, ...]) -> pa.Table:
    schema = schemas.rows_schema(layout, value="p")
    arrays = zip(*([*key, *value, ts] for key, value, ts in rows), strict=True) if rows else [[] for _ in schema]
    return pa.Table.from_arrays([pa.array(a, f.type) for a, f in zip(arrays, schema, strict=True)], schema=schema)


def merge(stage: TickStage, *merging: Any) -> None:
    """Merge for one query (see `StateMerge`); raises its error."""
    for error in stage.merge([StateMerge(*merging)]).values():
        raise error


def plain(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows, sorted, to compare unordered results."""
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def snapshot(store: Store, collection: CollectionId, at: int, page: int = 50_000) -> list[tuple[Any, ...]]:
    pages = list(store.snapshot(collection, Time(at), page=page))
    return sorted((row for p in pages for row in plain(p)), key=repr)


def changes(store: Store, collection: CollectionId, after: int, to: int) -> list[tuple[Any, ...]]:
    table = store.changes(collection, Time(after), Time(to))
    times = table.column("time").to_pylist()
    assert times == sorted(times)
    return plain(table)


def parts_of_changes(store: Store, collection: CollectionId, after: int, to: int, rows: int) -> list[pa.Table]:
    ranges = store.change_ranges(collection, Time(after), Time(to), rows=rows)
    return [store.changes(collection, part.after, part.to, part.keys) for part in ranges]


def apply(rows: Sequence[tuple[Any, ...]], changed: Sequence[tuple[Any, ...]], layout: Layout) -> list[tuple[Any, ...]]:
    """A snapshot with changes applied to it, in order of time; every change must match the row that it changes."""
    keys, values = len(layout.key), len(layout.value)
    known = {row[:keys]: row[keys:] for row in rows}
    for time, *change in sorted(changed, key=lambda change: change[0]):
        key, before, after = tuple(change[:keys]), change[keys : keys + values + 2], change[keys + values + 2 :]
        assert known.pop(key, None) == (tuple(before[1:]) if before[0] else None), (time, key)
        if after[0]:
            known[key] = tuple(after[1:])
    return sorted((key + value for key, value in known.items()), key=repr)


def evaluate(sql: str, scope: Mapping[str, Any]) -> Any:
    """Evaluates SQL expressions for the model. Python integers are BIGINT, as in the layouts above."""
    typed = ", ".join(f"?::{'BIGINT' if name[1:] == '0' else 'VARCHAR'} AS {name}" for name in scope)
    source = f"(SELECT {typed})" if scope else "(SELECT 1)"
    [[value]] = duckdb.execute(f"SELECT {sql} FROM {source}", list(scope.values())).fetchall()
    return value
