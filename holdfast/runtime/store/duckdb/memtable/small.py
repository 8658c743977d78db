"""Small ticks: results as Arrow tables, joined with rows of the memtable or looked up in the tables.

Nothing is written to tables when staging; expressions run as prepared statements of a database without tables.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from holdfast.names import QueryId
from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb import columns
from holdfast.runtime.store.duckdb.columns import listed
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.disk.large import cast, check_rows, is_present
from holdfast.runtime.store.duckdb.errors import translate_errors
from holdfast.runtime.store.duckdb.memtable import delta
from holdfast.runtime.store.duckdb.memtable.delta import Counts
from holdfast.runtime.store.duckdb.memtable.rows import encoded_key_type
from holdfast.runtime.store.duckdb.objects import Collection, State
from holdfast.runtime.store.duckdb.statements import as_arrow, one
from holdfast.runtime.store.port import Layout, Merge, StateProjection
from holdfast.runtime.store.schemas import names
from holdfast.types import SqlType

SMALL = 2_000
"""The most rows that one object gets from a small tick."""

LOADED = 10_000
"""A table of at most this many rows is read whole at its first lookup."""


@dataclass(frozen=True, slots=True)
class Delta:
    """Staged rows, laid out as in `delta`, and what they will do."""

    rows: pa.Table
    counts: Counts

    @classmethod
    def of(cls, rows: pa.Table) -> "Delta":
        return cls(rows, delta.count(rows))


@dataclass(frozen=True, slots=True)
class ReadyMerge:
    """Partials that a query merges, with the objects that they concern."""

    query: QueryId
    state: State
    partials: pa.Table
    merge: Merge
    shown: Collection | None
    along: StateProjection | None
    expired: pa.Table | None = None

    @property
    def rows(self) -> int:
        """How many rows it changes at most."""
        return sum(rows.num_rows for rows in (self.partials, self.expired) if rows is not None)

    @property
    def statement(self) -> object:
        """The same for those that one statement can merge."""
        return self.state.layout, self.merge, self.along, None if self.shown is None else self.shown.layout

    @property
    def numbers(self) -> set[int]:
        """Of the objects that it changes."""
        return {target.number for target in (self.state, self.shown) if target is not None}


def upsert(core: Core, target: Collection, rows: pa.Table) -> Delta:
    flagged = rows.num_rows - rows.column("present").null_count
    encoded, known = encoded_keys(core, target.layout, rows, flagged=flagged)
    key = [encoded, *(rows.column(name) for name in names("k", target.layout.key))]
    after = [rows.column(name) for name in [*names("c", target.layout.value), "ts", "present"]]
    return Delta.of(delta.collection_delta(target.layout, key, find(core, target, known), after))


def merge(core: Core, mergings: Sequence[ReadyMerge]) -> list[tuple[Delta, Delta | None]]:
    """The delta of each state, and of the collection that shows it; all are of the same statement."""
    first = mergings[0]
    layout, width = first.state.layout, len(first.state.layout.value)
    found = [encoded_keys(core, layout, merging.partials, flagged=merging.partials.num_rows) for merging in mergings]
    partials = pa.concat_tables([merging.partials for merging in mergings]).combine_chunks()
    before = pa.concat_tables([find(core, m.state, keys) for m, (_, keys) in zip(mergings, found, strict=True)])
    known = [before.column("present"), *before.columns[1 + len(layout.key) : 2 + len(layout.key) + width]]
    arriving = pa.Table.from_arrays([*partials.columns, *known], names=_arriving(layout, first.merge)).combine_chunks()
    with translate_errors():
        sql = _merge_sql(layout, first.merge, first.along, None if first.shown is None else first.shown.layout.value)
        after = core.expressions.run(sql, {"arriving": arriving})
    state = after.select(range(width + 1)).cast(_after_schema(layout, "a"))
    encoded = pa.chunked_array([chunk for keys, _ in found for chunk in keys.chunks], encoded_key_type(layout))
    key = [encoded, *partials.columns[: len(layout.key)]]
    merged = _split(delta.state_delta(layout, key, before, state.columns), found)
    shown = [merging.shown for merging in mergings if merging.shown is not None]
    if not shown:
        return [(rows, None) for rows in merged]
    before = pa.concat_tables([find(core, target, keys) for target, (_, keys) in zip(shown, found, strict=True)])
    value = after.select(range(width + 1, after.num_columns)).cast(_after_schema(shown[0].layout, "c"))
    ts, present = state.column(width), value.column(0)
    upserted = delta.collection_delta(shown[0].layout, key, before, [*value.columns[1:], ts, present])
    return list(zip(merged, _split(upserted, found), strict=True))


def expire(core: Core, target: Collection | State, expired: pa.Table, staged: Delta) -> Delta:
    """What is staged, and deletes of the keys that are `expired`."""
    layout, n = target.layout, expired.num_rows
    encoded, keys = encoded_keys(core, layout, expired, flagged=n)
    key = [encoded, *(expired.column(name) for name in names("k", layout.key))]
    nothing = [pa.nulls(n, field.type) for field in list(schemas.rows_schema(layout))[len(layout.key) : -1]]
    before, ts, absent = (
        find(core, target, keys),
        expired.column("ts"),
        pa.chunked_array([pa.repeat(pa.scalar(False), n)]),
    )
    if isinstance(target, Collection):
        deleted = delta.collection_delta(layout, key, before, [*nothing, ts, absent])
    else:
        deleted = delta.state_delta(layout, key, before, [*nothing, ts], absent)
    return Delta.of(pa.concat_tables([staged.rows, deleted]))


def _split(rows: pa.Table, found: Sequence[tuple[pa.ChunkedArray, list[Any]]]) -> list[Delta]:
    rows, start, parts = rows.combine_chunks(), 0, []
    for _, keys in found:
        parts.append(Delta.of(rows.slice(start, len(keys))))
        start += len(keys)
    return parts


def find(core: Core, target: Collection | State, keys: Sequence[Any]) -> pa.Table:
    """The committed row of each key, with nulls where there is none, laid out as in the memtable."""
    with core.memory_lock:
        # Before the load: afterwards it could drop rows of the keys that were already here.
        target.memtable.limit(core.allowance())
        unknown = target.memtable.unknown(keys)
    if unknown:
        load(core, target, unknown)
    with core.memory_lock:
        return target.memtable.of(keys)


def encode(core: Core, layout: Layout, rows: pa.Table) -> pa.ChunkedArray:
    """The encoded keys of rows."""
    key = names("k", layout.key)
    if schemas.is_plain_key(layout):
        return rows.column("k0")
    with translate_errors():
        sql = f"SELECT {columns.key_sql(layout, key)} AS k FROM arriving"
        return core.expressions.run(sql, {"arriving": rows.select(key)}).column("k")


def encoded_keys(core: Core, layout: Layout, rows: pa.Table, *, flagged: int) -> tuple[pa.ChunkedArray, list[Any]]:
    """The encoded keys, also as Python values for looking up; unique."""
    encoded = encode(core, layout, rows)
    keys = encoded.to_pylist()
    unique = set(keys)
    unique.discard(None)
    check_rows(len(keys), len(unique), flagged)
    return encoded, keys


def load(core: Core, target: Collection | State, keys: list[Any]) -> None:
    """Read the rows of keys, or the whole table when it is small."""
    memtable = target.memtable
    table = target.current if isinstance(target, Collection) else target.table
    schema = pa.schema(list(memtable.schema)[:-3])
    with translate_errors():
        found = None if memtable.tables_tried else _whole(core, table, schema)
        everything = found is not None
        if found is None:
            found = _looked_up(core, table, target.layout, schema, keys)
    with core.memory_lock:
        memtable.load(schemas.fit(found, schema), everything=everything)


def _whole(core: Core, table: str, schema: pa.Schema) -> pa.Table | None:
    """All rows of a table; None when they are too many."""
    with closing(core.database.cursor()) as cursor:
        if one(cursor, f"SELECT count(*) FROM {table}")[0] > min(LOADED, core.allowance()):
            return None
        return as_arrow(cursor, f"SELECT {listed(schema.names)} FROM {table}")


def _looked_up(core: Core, table: str, layout: Layout, schema: pa.Schema, keys: list[Any]) -> pa.Table:
    """The rows of keys. A plain key is its own encoding, and is read once."""
    twice = schemas.is_plain_key(layout)
    read = [f"t.{name}" for name in schema.names if not (twice and name == "k0")]
    asked = pa.table({"k": pa.array(keys, schema.field("k").type)})
    found = core.lookups.run(f"SELECT {listed(read)} FROM asked x JOIN {table} t ON t.k = x.k", {"asked": asked})
    return found.append_column("k0", found.column("k")).select(schema.names) if twice else found


@lru_cache(maxsize=1024)
def _arriving(layout: Layout, merge: Merge) -> list[str]:
    key, p, b = names("k", layout.key), names("p", merge.arriving(layout).value), names("b", layout.value)
    return [*key, *p, "p_ts", "b_present", *b, "b_ts"]


@lru_cache(maxsize=1024)
def _after_schema(layout: Layout, prefix: str) -> pa.Schema:
    fields = list(schemas.rows_schema(layout, value=prefix))[len(layout.key) :]
    if prefix == "a":
        return pa.schema([*fields[:-1], pa.field("a_ts", pa.int64())])
    return pa.schema([pa.field("present", pa.bool_()), *fields[:-1]])


@lru_cache(maxsize=1024)
def _merge_sql(layout: Layout, merge: Merge, along: StateProjection | None, shown: tuple[SqlType, ...] | None) -> str:
    key, width = names("k", layout.key), range(len(layout.value))
    p, a = names("p", merge.arriving(layout).value), names("a", layout.value)
    known = [f"CASE WHEN b_present THEN b{i} ELSE {cast(merge.initial[i], layout.value[i])} END AS s{i}" for i in width]
    merged = [f"{cast(merge.merged[i], layout.value[i])} AS a{i}" for i in width]
    before = f"SELECT {listed(key, p, ['p_ts', 'b_ts'], known)} FROM arriving"
    after = f"SELECT {listed(key, merged)}, greatest(b_ts, p_ts) AS a_ts FROM ({before})"
    if along is None or shown is None:
        return f"SELECT {listed(a)}, a_ts FROM ({after})"
    states = f"SELECT *, {listed(f'a{i} AS s{i}' for i in width)} FROM ({after})"
    projected = [
        f"CASE WHEN present THEN {cast(e, t)} END AS c{i}"
        for i, (e, t) in enumerate(zip(along.columns, shown, strict=True))
    ]
    return (
        f"SELECT {listed(a, ['a_ts', 'present'], projected)} FROM "
        f"(SELECT *, {is_present(along)} AS present FROM ({states}))"
    )
