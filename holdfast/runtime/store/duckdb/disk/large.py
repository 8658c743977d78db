"""Large ticks: results in temporary tables of the stage's own connection, checked there.

A staged object is one temporary table: per key the row before the tick, with the row id and the seq it has, and the
row after it. Writing then only moves rows between tables, and cannot fail for what is in them. What memory has of
the object must be flushed before.

Row ids are valid until a checkpoint. With `find_again`, one came in between and they are looked up again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from holdfast.errors import StoreError
from holdfast.runtime.expressions.physical import duckdb_type
from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb import columns
from holdfast.runtime.store.duckdb.columns import listed, renamed
from holdfast.runtime.store.duckdb.errors import translate_errors
from holdfast.runtime.store.duckdb.memtable.delta import Counts
from holdfast.runtime.store.duckdb.objects import Collection, Outbox, State
from holdfast.runtime.store.duckdb.statements import as_arrow, one
from holdfast.runtime.store.port import Layout, Merge, StateProjection, Time
from holdfast.runtime.store.schemas import group_layout, names
from holdfast.types import SqlType

Run = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class StagedTable:
    """A temporary table with staged rows, and what they will do."""

    name: str
    counts: Counts


# -- staging -----------------------------------------------------------------------------------------


def upsert(connection: duckdb.DuckDBPyConnection, target: Collection, rows: pa.Table) -> StagedTable:
    key, value = names("k", target.layout.key), names("c", target.layout.value)
    connection.register("arriving", rows)
    source = f"SELECT {columns.key_sql(target.layout, key)} AS k, {listed(key, value, ['ts', 'present'])} FROM arriving"
    return _stage_rows(connection, target, source)


def merge(
    connection: duckdb.DuckDBPyConnection,
    target: State,
    partials: pa.Table,
    merge: Merge,
    expired: pa.Table | None = None,
) -> StagedTable:
    """`expired` are the keys of rows to delete."""
    layout = target.layout
    key, s = names("k", layout.key), names("s", layout.value)
    p = names("p", merge.arriving(layout).value)
    connection.register("arriving", partials)
    known = [f"CASE WHEN t.k IS NULL THEN {cast(i, t)} ELSE t.{name} END AS {name}"
             for name, i, t in zip(s, merge.initial, layout.value, strict=True)]  # fmt: skip
    merged = [f"{cast(e, t)} AS a{i}" for i, (e, t) in enumerate(zip(merge.merged, layout.value, strict=True))]
    before = names("b", layout.value)
    source = f"SELECT {columns.key_sql(layout, key)} AS k, {listed(key, p, ['ts'])} FROM arriving"
    joined = (
        f"SELECT {listed(_of_x(['k', *key, *p]), ['t.rowid AS r', 't.k IS NOT NULL AS b_present'])}, "
        f"{listed(renamed('t', s, before), ['t.ts AS b_ts'], known, ['x.ts AS p_ts'])} "
        f"FROM ({source}) x LEFT JOIN {target.table} t ON t.k = x.k"
    )
    select = (
        f"SELECT {listed(['k'], key, ['r', 'b_present'], before, ['b_ts', 'TRUE AS a_present'], merged)}, "
        f"greatest(b_ts, p_ts) AS a_ts FROM ({joined})"
    )
    if expired is not None:
        connection.register("expired", expired)
        nothing = [f"CAST(NULL AS {duckdb_type(type_)})" for type_ in layout.value]
        stored = listed(
            ["x.k"], (f"x.{name}" for name in key), ["t.rowid", "t.k IS NOT NULL"], (f"t.{name}" for name in s)
        )
        select += (
            f" UNION ALL SELECT {stored}, t.ts, FALSE, {listed(nothing, ['x.ts'])} "
            f"FROM (SELECT {columns.key_sql(layout, key)} AS k, {listed(key, ['ts'])} FROM expired) x "
            f"LEFT JOIN {target.table} t ON t.k = x.k"
        )
    return _create(connection, f"temp.stage_{target.table}", select)


def put(
    connection: duckdb.DuckDBPyConnection, target: State, rows: pa.Table, expired: pa.Table | None, in_a_span: str
) -> StagedTable:
    """`in_a_span` is the condition that a row `t` is in one of the spans `x`, which are `expired`."""
    layout = target.layout
    key, s, value = names("k", layout.key), names("s", layout.value), names("c", layout.value)
    before, after = names("b", layout.value), names("a", layout.value)
    group = [f"{columns.key_sql(group_layout(layout), key[: layout.group])} AS g"] if layout.group else []
    connection.register("arriving", rows)
    encoded = f"{columns.key_sql(layout, key)} AS k"
    source = f"SELECT {listed([encoded, *group], key, value, ['ts', 'present'])} FROM arriving"
    arriving = [f"CASE WHEN x.present THEN x.{c} END AS {a}" for c, a in zip(value, after, strict=True)]
    own = ["k", *(["g"] if layout.group else []), *key]
    was = ["t.rowid AS r", "t.k IS NOT NULL AS b_present", *renamed("t", s, before), "t.ts AS b_ts"]
    select = (
        f"SELECT {listed(_of_x(own), was, ['x.present AS a_present'], arriving, ['x.ts AS a_ts'])} "
        f"FROM ({source}) x LEFT JOIN {target.table} t ON t.k = x.k"
    )
    if expired is not None:
        connection.register("x", expired)
        nothing = [f"CAST(NULL AS {duckdb_type(type_)})" for type_ in layout.value]
        select += (
            f" UNION ALL SELECT {listed((f't.{name}' for name in own), was, ['FALSE'], nothing, ['t.ts'])} "
            f"FROM {target.table} t ANTI JOIN ({source}) y ON y.k = t.k WHERE {in_a_span}"
        )
    return _create(connection, f"temp.stage_{target.table}", select)


def derive(
    connection: duckdb.DuckDBPyConnection,
    merged: StagedTable,
    state: Layout,
    target: Collection,
    along: StateProjection,
) -> StagedTable:
    layout = target.layout
    key, s, a = names("k", layout.key), names("s", state.value), names("a", state.value)
    shown = [f"CASE WHEN present THEN {cast(e, t)} END AS c{i}"
             for i, (e, t) in enumerate(zip(along.columns, layout.value, strict=True))]  # fmt: skip
    renamed_ = (f"{x} AS {y}" for x, y in zip(a, s, strict=True))
    states = f"SELECT {listed(['k'], key, renamed_)}, a_ts AS ts, a_present"
    source = (
        f"SELECT {listed(['k'], key, shown)}, ts, present "
        f"FROM (SELECT *, a_present AND {is_present(along)} AS present FROM ({states} FROM {merged.name}))"
    )
    return _stage_rows(connection, target, source)


def read(connection: duckdb.DuckDBPyConnection, table: StagedTable, layout: Layout) -> pa.Table:
    """The delta that a temporary table holds."""
    schema = schemas.delta_schema(layout)
    with translate_errors():
        return schemas.fit(as_arrow(connection, f"SELECT {listed(schema.names)} FROM {table.name}"), schema)


def cast(expression: str, type_: SqlType) -> str:
    return f"CAST({expression} AS {duckdb_type(type_)})"


def is_present(along: StateProjection) -> str:
    return f"({along.having}) IS TRUE" if along.having else "TRUE"


def _stage_rows(connection: duckdb.DuckDBPyConnection, target: Collection, source: str) -> StagedTable:
    """Stage ``k, k0.., c0.., ts, present`` beside the row that each key has now."""
    layout = target.layout
    key, value = names("k", layout.key), names("c", layout.value)
    before, after = names("b", layout.value), names("a", layout.value)
    arriving = [f"CASE WHEN x.present THEN x.{c} END AS {a}" for c, a in zip(value, after, strict=True)]
    select = (
        f"SELECT {listed(_of_x(['k', *key]), ['t.rowid AS r', 't.seq', 't.since'])}, "
        f"t.k IS NOT NULL AS b_present, {listed(renamed('t', value, before), ['t.ts AS b_ts'])}, "
        f"x.present AS a_present, {listed(arriving, ['x.ts AS a_ts'])} "
        f"FROM ({source}) x LEFT JOIN {target.current} t ON t.k = x.k"
    )
    return _create(connection, f"temp.stage_{target.current}", select)


def _create(connection: duckdb.DuckDBPyConnection, table: str, select: str) -> StagedTable:
    with translate_errors():
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {select}")
        row = one(
            connection,
            "SELECT count(*) FILTER (b_present AND a_present), count(*) FILTER (NOT b_present AND a_present), "
            "count(*) FILTER (b_present AND NOT a_present), count(*), count(DISTINCT k), count(a_present) "
            f"FROM {table}",
        )
    updates, inserts, deletes, rows, keys, flagged = row
    check_rows(rows, keys, flagged)
    return StagedTable(table, Counts(updates, inserts, deletes))


def check_rows(rows: int, keys: int, flagged: int) -> None:
    """Refuse rows whose keys are null or not unique, or that do not say whether they are present."""
    if keys != rows:
        raise StoreError("a tick has keys that are null or not unique", detail=f"{rows} rows, {keys} keys.")
    if flagged != rows:
        raise StoreError("rows of a tick do not say whether they are present")


def _of_x(columns_: Sequence[str]) -> list[str]:
    return [f"x.{column}" for column in columns_]


# -- writing -----------------------------------------------------------------------------------------

LOOKED_UP = 1_000
"""Up to this many keys are found through the index, more by the row ids found when staging.

CPU time of a tick, index against row ids: no difference at 1,000,000 keys; at 10,000,000 31 to 35 ms (20 keys) and
213 to 296 ms (1,000 keys).
"""


def write_state(state: State, stage: StagedTable, run: Run, *, find_again: bool) -> None:
    key, counts = names("k", state.layout.key), stage.counts
    s, a = names("s", state.layout.value), names("a", state.layout.value)
    if counts.updates:
        same_row = _same_row(state.table, stage.name, counts.updates, run, find_again=find_again)
        sets = listed((f"{x} = x.{y}" for x, y in zip(s, a, strict=True)), ["ts = x.a_ts"])
        run(f"UPDATE {state.table} SET {sets} FROM {stage.name} x WHERE {same_row} AND x.b_present AND x.a_present")
    if counts.deletes:
        same_row = _same_row(state.table, stage.name, counts.deletes, run, find_again=find_again)
        run(f"DELETE FROM {state.table} USING {stage.name} x WHERE {same_row} AND x.b_present AND NOT x.a_present")
    if counts.inserts:
        new = listed(["k"], key, a, ["a_ts"], ["g"] if state.layout.group else [])
        run(f"INSERT INTO {state.table} SELECT {new} FROM {stage.name} WHERE a_present AND NOT b_present")


def write_collection(collection: Collection, stage: StagedTable, time: Time, run: Run, *, find_again: bool) -> None:
    current, layout, counts = collection.current, collection.layout, stage.counts
    key, value = names("k", layout.key), names("c", layout.value)
    before, after = names("b", layout.value), names("a", layout.value)
    replaced = counts.updates + counts.deletes
    same_row = _same_row(current, stage.name, replaced, run, find_again=find_again)
    if collection.keeps_history and counts.changes:
        run(
            f"INSERT INTO {collection.history} "
            f"SELECT {listed(['k', 'seq'], key, before, ['b_ts', 'since', str(time), 'b_present'])} "
            f"FROM {stage.name} WHERE a_present OR b_present"
        )
    if counts.updates:
        sets = listed((f"{c} = x.{a}" for c, a in zip(value, after, strict=True)), ["ts = x.a_ts", f"since = {time}"])
        run(f"UPDATE {current} SET {sets} FROM {stage.name} x WHERE {same_row} AND x.b_present AND x.a_present")
    if counts.deletes:
        run(f"DELETE FROM {current} USING {stage.name} x WHERE {same_row} AND x.b_present AND NOT x.a_present")
    if counts.inserts:
        group = [columns.group_sql(layout)] if layout.group else []
        run(
            f"INSERT INTO {current} SELECT k, {collection.next_seq} + row_number() OVER () - 1, "
            f"{listed(key, after, ['a_ts', str(time)], group)} FROM {stage.name} WHERE a_present AND NOT b_present"
        )


def write_outbox(
    connection: duckdb.DuckDBPyConnection, outbox: Outbox, parts: Sequence[pa.Table | StagedTable], time: Time
) -> int:
    """Write rows, and the changes in temporary tables, to an outbox. Returns the number of rows."""
    n = 0
    key, value = names("k", outbox.layout.key), names("c", outbox.layout.value)
    after = names("a", outbox.layout.value)
    for part in parts:
        if isinstance(part, StagedTable):
            connection.execute(
                f"INSERT INTO {outbox.table} "
                f"SELECT {time}, {n} - 1 + row_number() OVER (), {listed(['a_present'], key, after, ['a_ts'])} "
                f"FROM {part.name} WHERE a_present OR b_present"
            )
            n += part.counts.changes
        else:
            order = pa.array(range(n, n + part.num_rows), pa.uint64())
            connection.register("arriving", part.append_column("n", order))
            connection.execute(
                f"INSERT INTO {outbox.table} "
                f"SELECT {time}, n, {listed(['present'], key, value, ['ts'])} FROM arriving ORDER BY n"
            )
            n += part.num_rows
    return n


def _same_row(table: str, stage: str, keys: int, run: Run, *, find_again: bool) -> str:
    """The condition that joins a staged row `x` to the row that it replaces."""
    if keys <= LOOKED_UP:
        return f"{table}.k = x.k"
    if find_again:
        run(f"UPDATE {stage} SET r = t.rowid FROM {table} t WHERE t.k = {stage}.k")
    return f"{table}.rowid = x.r"
