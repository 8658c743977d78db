"""What a small tick does to an object, as one Arrow table: per key the row before and the row after.

k, k0..                           the key
stored                            whether the tables have a row of the key
seq, since                        of the row before; collections only
b_present, b0.., b_ts             before
a_present, a0.., a_ts             after; a_ts of a delete is the deleting row's
"""

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime.store.duckdb.recent import (
    collection_rows_schema,
    encoded_key_type,
    history_schema,
    state_rows_schema,
)
from holdfast.runtime.store.port import Layout, Time
from holdfast.runtime.store.schemas import delta_schema, names, outbox_schema

TRUE, FALSE = pa.scalar(True), pa.scalar(False)


@dataclass(frozen=True, slots=True)
class Counts:
    """What staged rows will do; both sides absent (a delete of nothing) is none of them."""

    updates: int
    inserts: int
    deletes: int

    @property
    def changes(self) -> int:
        return self.updates + self.inserts + self.deletes


@lru_cache(maxsize=1024)
def state_delta_schema(layout: Layout) -> pa.Schema:
    return _schema(layout, [])


@lru_cache(maxsize=1024)
def collection_delta_schema(layout: Layout) -> pa.Schema:
    return _schema(layout, ["seq", "since"])


def _schema(layout: Layout, numbers: list[str]) -> pa.Schema:
    delta = list(delta_schema(layout))
    keys, sides = delta[: len(layout.key)], delta[len(layout.key) :]
    stored = [pa.field("stored", pa.bool_()), *(pa.field(name, pa.uint64()) for name in numbers)]
    return pa.schema([pa.field("k", encoded_key_type(layout)), *keys, *stored, *sides])


def count(delta: pa.Table) -> Counts:
    before, after = delta.column("b_present"), delta.column("a_present")
    updates = _true(pc.and_(before, after))
    return Counts(updates, _true(after) - updates, _true(before) - updates)


def _true(flags: pa.ChunkedArray) -> int:
    return pc.sum(flags).as_py() or 0


def state_delta(layout: Layout, keys: list[pa.Array], before: pa.Table, after: list[pa.Array]) -> pa.Table:
    """`keys` are k and k0..; `after` a0.. and a_ts."""
    schema, width = state_delta_schema(layout), len(layout.value)
    start = 1 + len(layout.key)
    values = [before.column(i) for i in range(start, start + width + 1)]
    present = pa.repeat(TRUE, before.num_rows)
    columns = [*keys, _flag(before, "stored"), _flag(before, "present"), *values, present, *after]
    return pa.Table.from_arrays(columns, schema=schema)


def collection_delta(layout: Layout, keys: list[pa.Array], before: pa.Table, after: list[pa.Array]) -> pa.Table:
    """`keys` are k and k0..; `after` c0.., ts and present: the values of what is not present are left out."""
    schema, width = collection_delta_schema(layout), len(layout.value)
    start = 1 + len(layout.key)
    *values, ts, present = after
    if _true(present) < len(present):
        places = pc.if_else(present, pa.array(range(len(present)), pa.int64()), None)
        values = [column.take(places) for column in values]
    columns = [
        *keys,
        _flag(before, "stored"),
        before.column("seq"),
        before.column("since"),
        _flag(before, "present"),
        *(before.column(i) for i in range(start, start + width + 1)),
        present,
        *values,
        ts,
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _flag(before: pa.Table, name: str) -> pa.ChunkedArray:
    flags = before.column(name)
    return flags if flags.null_count == 0 else pc.fill_null(flags, FALSE)


def numbered(delta: pa.Table, next_seq: int) -> pa.Table:
    """The changes alone, the keys that are new with a seq of their own; a key that was deleted takes its old one."""
    before, after = delta.column("b_present"), delta.column("a_present")
    changes = pc.or_(before, after)
    if _true(changes) < delta.num_rows:
        delta = delta.filter(changes)
    seq = delta.column("seq")
    if seq.null_count == 0:
        return delta
    new = pc.is_null(seq)
    fresh = pc.cast(pc.add(pc.cumulative_sum(pc.cast(new, pa.int64())), next_seq - 1), pa.uint64())
    return delta.set_column(delta.schema.get_field_index("seq"), "seq", pc.if_else(new, fresh, seq))


# -- what becomes of it ------------------------------------------------------------------------------


def states_after(delta: pa.Table, layout: Layout) -> pa.Table:
    """The rows as `Recent` takes them."""
    n = delta.num_rows
    columns = [
        *(delta.column(name) for name in ["k", *names("k", layout.key), *names("a", layout.value), "a_ts"]),
        pa.repeat(TRUE, n),
        delta.column("stored"),
        pa.repeat(TRUE, n),
    ]
    return pa.Table.from_arrays(columns, schema=state_rows_schema(layout))


def rows_after(delta: pa.Table, layout: Layout, time: Time) -> pa.Table:
    n, present = delta.num_rows, delta.column("a_present")
    ts = delta.column("a_ts")
    if _true(present) < n:
        ts = pc.if_else(present, ts, None)
    columns = [
        *(delta.column(name) for name in ["k", *names("k", layout.key), *names("a", layout.value)]),
        ts,
        delta.column("seq"),
        pa.repeat(pa.scalar(time, pa.uint64()), n),
        present,
        delta.column("stored"),
        pa.repeat(TRUE, n),
    ]
    return pa.Table.from_arrays(columns, schema=collection_rows_schema(layout))


def superseded(delta: pa.Table, layout: Layout, time: Time) -> pa.Table:
    """The rows that go to history."""
    until = pa.repeat(pa.scalar(time, pa.uint64()), delta.num_rows)
    shown = ["k", "seq", *names("k", layout.key), *names("b", layout.value), "b_ts", "since"]
    columns = [*(delta.column(name) for name in shown), until, delta.column("b_present")]
    return pa.Table.from_arrays(columns, schema=history_schema(layout))


def owed(delta: pa.Table, layout: Layout) -> pa.Table:
    """The rows that an outbox gets of changes."""
    shown = ["a_present", *names("k", layout.key), *names("a", layout.value), "a_ts"]
    return pa.Table.from_arrays([delta.column(name) for name in shown], schema=outbox_schema(layout))
