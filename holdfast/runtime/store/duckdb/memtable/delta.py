"""What a small tick does to an object, as one Arrow table: per key the row before and the row after.

k, k0..                           the key
stored                            whether the tables have a row of the key
g                                 the group; grouped states only
seq, since                        of the row before; collections only
b_present, b0.., b_ts             before
a_present, a0.., a_ts             after; a_ts of a delete is the deleting row's
"""

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime.physical_columns import AFTER, BEFORE
from holdfast.runtime.store.duckdb.memtable.rows import (
    collection_rows_schema,
    encoded_key_type,
    group_fields,
    history_schema,
    state_rows_schema,
)
from holdfast.runtime.store.port import Layout, Time
from holdfast.runtime.store.schemas import delta_schema, names, outbox_schema, rows_schema

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
    return _schema(layout, [], group_fields(layout))


@lru_cache(maxsize=1024)
def collection_delta_schema(layout: Layout) -> pa.Schema:
    return _schema(layout, ["seq", "since"], [])


def _schema(layout: Layout, numbers: list[str], group: list[pa.Field]) -> pa.Schema:
    delta = list(delta_schema(layout))
    keys, sides = delta[: len(layout.key)], delta[len(layout.key) :]
    stored = [pa.field("stored", pa.bool_()), *(pa.field(name, pa.uint64()) for name in numbers)]
    return pa.schema([pa.field("k", encoded_key_type(layout)), *keys, *group, *stored, *sides])


def count(delta: pa.Table) -> Counts:
    before, after = delta.column(BEFORE.present), delta.column(AFTER.present)
    updates = _true(pc.and_(before, after))
    return Counts(updates, _true(after) - updates, _true(before) - updates)


def _true(flags: pa.ChunkedArray) -> int:
    return pc.sum(flags).as_py() or 0


def state_delta(
    layout: Layout,
    keys: list[pa.Array],
    before: pa.Table,
    after: list[pa.Array],
    present: pa.ChunkedArray | None = None,
) -> pa.Table:
    """`keys` are k, k0.. and the group; `after` a0.. and a_ts, whose values are left out of what is not present."""
    schema, width = state_delta_schema(layout), len(layout.value)
    start = 1 + len(layout.key)
    values = [before.column(i) for i in range(start, start + width + 1)]
    if present is None:
        present = pa.repeat(TRUE, before.num_rows)
    else:
        after = [*_of_present(after[:-1], present), after[-1]]
    columns = [*keys, _flag(before, "stored"), _flag(before, "present"), *values, present, *after]
    return pa.Table.from_arrays(columns, schema=schema)


def collection_delta(layout: Layout, keys: list[pa.Array], before: pa.Table, after: list[pa.Array]) -> pa.Table:
    """`keys` are k and k0..; `after` c0.., ts and present: the values of what is not present are left out."""
    schema, width = collection_delta_schema(layout), len(layout.value)
    start = 1 + len(layout.key)
    *values, ts, present = after
    values = _of_present(values, present)
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


def deleted(rows: pa.Table, layout: Layout) -> pa.Table:
    """The delta that deletes rows of a state, which are as `Memtable` has them."""
    n = rows.num_rows
    group = [field.name for field in group_fields(layout)]
    before = ["stored", "present", *names("s", layout.value), "ts"]
    columns = [rows.column(name) for name in ["k", *names("k", layout.key), *group, *before]]
    nothing = [pa.nulls(n, field.type) for field in list(rows_schema(layout))[len(layout.key) : -1]]
    return pa.Table.from_arrays(
        [*columns, pa.repeat(FALSE, n), *nothing, rows.column("ts")], schema=state_delta_schema(layout)
    )


def _of_present(values: list[pa.Array], present: pa.ChunkedArray) -> list[pa.Array]:
    if _true(present) == len(present):
        return values
    places = pc.if_else(present, pa.array(range(len(present)), pa.int64()), None)
    return [column.take(places) for column in values]


def _flag(before: pa.Table, name: str) -> pa.ChunkedArray:
    flags = before.column(name)
    return flags if flags.null_count == 0 else pc.fill_null(flags, FALSE)


def numbered(delta: pa.Table, next_seq: int) -> pa.Table:
    """The changes alone, the keys that are new with a seq of their own; a key that was deleted takes its old one."""
    before, after = delta.column(BEFORE.present), delta.column(AFTER.present)
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
    """The rows as `Memtable` takes them."""
    columns = [
        *(delta.column(name) for name in ["k", *names("k", layout.key), *names("a", layout.value)]),
        _ts_after(delta),
        *(delta.column(field.name) for field in group_fields(layout)),
        delta.column(AFTER.present),
        delta.column("stored"),
        pa.repeat(TRUE, delta.num_rows),
    ]
    return pa.Table.from_arrays(columns, schema=state_rows_schema(layout))


def rows_after(delta: pa.Table, layout: Layout, time: Time) -> pa.Table:
    n = delta.num_rows
    columns = [
        *(delta.column(name) for name in ["k", *names("k", layout.key), *names("a", layout.value)]),
        _ts_after(delta),
        delta.column("seq"),
        pa.repeat(pa.scalar(time, pa.uint64()), n),
        delta.column(AFTER.present),
        delta.column("stored"),
        pa.repeat(TRUE, n),
    ]
    return pa.Table.from_arrays(columns, schema=collection_rows_schema(layout))


def _ts_after(delta: pa.Table) -> pa.ChunkedArray:
    """What is not present has no timestamp."""
    present, ts = delta.column(AFTER.present), delta.column(AFTER.row_time)
    return ts if _true(present) == delta.num_rows else pc.if_else(present, ts, None)


def superseded(delta: pa.Table, layout: Layout, time: Time) -> pa.Table:
    """The rows that go to history."""
    until = pa.repeat(pa.scalar(time, pa.uint64()), delta.num_rows)
    shown = ["k", "seq", *names("k", layout.key), *names("b", layout.value), BEFORE.row_time, "since"]
    columns = [*(delta.column(name) for name in shown), until, delta.column(BEFORE.present)]
    return pa.Table.from_arrays(columns, schema=history_schema(layout))


def outbox_rows(delta: pa.Table, layout: Layout) -> pa.Table:
    """The rows that an outbox gets of changes."""
    shown = [AFTER.present, *names("k", layout.key), *names("a", layout.value), AFTER.row_time]
    return pa.Table.from_arrays([delta.column(name) for name in shown], schema=outbox_schema(layout))
