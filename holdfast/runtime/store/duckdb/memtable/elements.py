"""Rows of a state that are put, not merged, and found by their group or in a span of time.

The memtable decides for the keys it has; the table for all others.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import StoreError
from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb.columns import listed
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.errors import translate_errors
from holdfast.runtime.store.duckdb.memtable import delta, small
from holdfast.runtime.store.duckdb.objects import State
from holdfast.runtime.store.duckdb.statements import as_arrow, one
from holdfast.runtime.store.port import Period
from holdfast.runtime.store.schemas import names

LOADED_ELEMENTS = 10_000
"""The most elements that memory loads from the table at once."""


# -- small ticks -------------------------------------------------------------------------------------


def put(core: Core, state: State, rows: pa.Table, expired: pa.Table | None) -> small.Delta:
    """`expired` are rows as `spans` gives them; those that `rows` replaces are left out."""
    layout, present = state.layout, rows.column("present")
    encoded, keys = small.encoded_keys(core, layout, rows, flagged=rows.num_rows - present.null_count)
    group = [] if not layout.group else [_groups(core, state, rows)]
    before = _find(core, state, keys, group)
    key = [encoded, *(rows.column(name) for name in names("k", layout.key)), *group]
    after = [rows.column(name) for name in [*names("c", layout.value), "ts"]]
    changed = delta.state_delta(layout, key, before, after, present)
    if expired is not None and expired.num_rows:
        replaced = pc.is_in(expired.column("k"), encoded.combine_chunks())
        changed = pa.concat_tables([changed, delta.deleted(expired.filter(pc.invert(replaced)), layout)])
    return small.Delta.of(changed)


def _find(core: Core, state: State, keys: Sequence[Any], group: Sequence[pa.ChunkedArray]) -> pa.Table:
    """The committed row of each key; one of a group that memory has as a whole need not be looked for."""
    if not group:
        return small.find(core, state, keys)
    groups = group[0].to_pylist()
    with core.memory_lock:
        state.memtable.limit(core.allowance())
        unknown = state.memtable.unknown_elements(keys, groups)
    if unknown:
        small.load(core, state, unknown)
    with core.memory_lock:
        return state.memtable.of(keys)


# -- by group ----------------------------------------------------------------------------------------


def lookup_groups(core: Core, state: State, asked: pa.Table, within: Period | None = None) -> pa.Table:
    """Gives ``k0.., s0.., ts``."""
    if not state.layout.group:
        raise StoreError(f"the state {state.id} has no groups")
    wanted = list(dict.fromkeys(group for group in _groups(core, state, asked).to_pylist() if group is not None))
    with core.memory_lock:
        state.memtable.limit(core.allowance())
        unknown = state.memtable.unknown_groups(wanted)
    read = _read_groups(core, state, unknown, within) if unknown else None
    with core.memory_lock:
        found = state.memtable.elements(wanted)
    shown = schemas.rows_schema(state.layout, value="s").names
    rows = found.select(shown) if read is None else pa.concat_tables([found.select(shown), read.select(shown)])
    return rows if within is None else rows.filter(_is_within(rows, within))


def _read_groups(core: Core, state: State, groups: list[Any], within: Period | None) -> pa.Table | None:
    """What the table has of groups and memory knows nothing about; None when memory has loaded it."""
    if not state.memtable.tables_tried and _rows(core, state) <= min(small.LOADED, core.allowance()):
        rows = _select(core, state, f"SELECT {{shown}} FROM {state.table} t")
        with core.memory_lock:
            state.memtable.load(rows, everything=True)
        return None
    asked = pa.table({"g": pa.array(groups, _table_schema(state).field("g").type)})
    sql = f"SELECT {{shown}} FROM asked x JOIN {state.table} t ON t.g = x.g"
    few = len(groups) <= small.SMALL
    if few or within is None:
        # Whole groups serve the next ticks too, unless they are too large for memory.
        limit = "" if within is None else f" LIMIT {LOADED_ELEMENTS + 1}"
        rows = _select(core, state, sql + limit, asked, again=few)
        with core.memory_lock:
            if rows.num_rows + len(groups) <= min(LOADED_ELEMENTS, core.allowance()):
                state.memtable.load_groups(groups, rows)
                return None
            if within is None:
                return state.memtable.unknown_rows(rows)
    assert within is not None
    rows = _select(core, state, f"{sql} AND t.ts BETWEEN {within[0]} AND {within[1]}", asked)
    with core.memory_lock:
        return state.memtable.unknown_rows(rows)


def _select(core: Core, state: State, sql: str, asked: pa.Table | None = None, *, again: bool = False) -> pa.Table:
    """Rows of a state's table `t` as memory has them, by `asked`; `again` says that the statement will come again."""
    schema = _table_schema(state)
    sql = sql.format(shown=listed(f"t.{name}" for name in schema.names))
    with translate_errors(), closing(core.database.cursor()) as cursor:
        if asked is not None and again:
            return schemas.fit(core.lookups.run(sql, {"asked": asked}), schema)
        if asked is not None:
            cursor.register("asked", asked)
        return schemas.fit(as_arrow(cursor, sql), schema)


def _is_within(rows: pa.Table, period: Period) -> pa.ChunkedArray:
    ts = rows.column("ts")
    return pc.and_(pc.greater_equal(ts, period[0]), pc.less_equal(ts, period[1]))


def _groups(core: Core, state: State, rows: pa.Table) -> pa.ChunkedArray:
    return small.encode(core, schemas.group_layout(state.layout), rows)


# -- by time -----------------------------------------------------------------------------------------


def spans(core: Core, state: State, asked: pa.Table) -> pa.Table:
    """The rows within spans of time, as memory has them: ``k, k0.., s0.., ts, g``, and whether the table has them."""
    schema = state.memtable.schema
    latest = pc.max(asked.column("upto")).as_py()
    if latest is None:
        return schema.empty_table()
    with core.memory_lock:
        found = state.memtable.upto(latest)
        complete = state.memtable.complete
    if found.num_rows:
        with translate_errors():
            found = core.expressions.run(_spans_sql(asked, "here", schema.names), {"here": found, "x": asked})
    if complete or _oldest(core, state) > latest:
        return schemas.fit(found, schema)
    stored = _table_schema(state)
    with translate_errors(), closing(core.database.cursor()) as cursor:
        cursor.register("x", asked)
        sql = f"{_spans_sql(asked, state.table, stored.names)} AND t.ts <= {latest}"
        read = schemas.fit(as_arrow(cursor, sql), stored)
    with core.memory_lock:
        read = state.memtable.unknown_rows(read)
    flags = [pa.repeat(pa.scalar(flag), read.num_rows) for flag in (True, True, False)]
    read = pa.Table.from_arrays([*read.columns, *flags], schema=schema)
    return pa.concat_tables([schemas.fit(found, schema), read])


def _spans_sql(asked: pa.Table, table: str, shown: Sequence[str]) -> str:
    """Each row once, also when spans overlap."""
    return f"SELECT {listed(f't.{name}' for name in shown)} FROM {table} t WHERE {in_a_span(asked)}"


def in_a_span(asked: pa.Table) -> str:
    """The condition that a row `t` is in one of the spans `x`."""
    columns = [name for name in asked.column_names if name not in ("after", "upto")]
    same = [f"x.{name} IS NOT DISTINCT FROM t.{_stored(name)} AND " for name in columns]
    return f"EXISTS (SELECT 1 FROM x WHERE {''.join(same)}t.ts <= x.upto AND (x.after IS NULL OR t.ts > x.after))"


def _stored(column: str) -> str:
    """What a state calls a column: its values are ``s0..``."""
    return f"s{column[1:]}" if column[0] == "c" else column


def _oldest(core: Core, state: State) -> int:
    """No row of the table is older."""
    if state.oldest is None:
        with translate_errors(), closing(core.database.cursor()) as cursor:
            [found] = one(cursor, f"SELECT min(ts) FROM {state.table}")
        state.oldest = NEVER if found is None else found
    return state.oldest


NEVER = 2**63 - 1


def _rows(core: Core, state: State) -> int:
    with closing(core.database.cursor()) as cursor:
        return int(one(cursor, f"SELECT count(*) FROM {state.table}")[0])


def _table_schema(state: State) -> pa.Schema:
    return pa.schema(list(state.memtable.schema)[:-3])
