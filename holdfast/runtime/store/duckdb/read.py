"""Reads as of a time. Each statement is a short transaction of its own, on a cursor of its own.

A version of a row is in `current` from `since` on, until a tick moves it to `history`, where `until` ends it.
Both carry the key's seq, assigned when the key was inserted: pages are ranges of it, and a commit between two
pages moves versions from one table to the other but never to another page.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from typing import TypeVar

import duckdb
import pyarrow as pa

from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb import columns
from holdfast.runtime.store.duckdb.columns import listed, renamed
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.errors import translate_errors, translate_read_errors
from holdfast.runtime.store.duckdb.objects import Collection
from holdfast.runtime.store.duckdb.relations import Contents, RelationRead, RelationView
from holdfast.runtime.store.duckdb.statements import Fetch, as_arrow, check_select
from holdfast.runtime.store.port import ChangeRange, GroupRead, KeyRange, PageSize, Time
from holdfast.runtime.store.schemas import names

T = TypeVar("T")

FEW = 10_000
"""Rows that one thread evaluates as fast as several."""


def read_pages(core: Core, collection: Collection, at: Time, size: PageSize) -> Iterator[pa.Table]:
    schema = schemas.rows_schema(collection.layout)
    # Keys inserted from now on were not there at `at`.
    low, end, width = 0, collection.next_seq, 0
    while low < end:
        page = size if isinstance(size, int) else size()
        width = max(width, page)
        high = min(low + width, end)
        contents = Contents.of(core, collection)
        sql = (
            f"SELECT {listed(['seq'], schema.names)} FROM ({contents.as_of(at)}) WHERE seq >= {low} AND seq < {high} "
            f"ORDER BY seq LIMIT {page}"
        )
        found = _select(core, contents, sql)
        if found.num_rows == page:
            low = found.column("seq")[-1].as_py() + 1
            width = page
        else:
            # Where many keys were deleted, longer ranges skip the gaps.
            low, width = high, width * 2 if found.num_rows < page // 2 else width
        if found.num_rows:
            yield schemas.fit(found, schema)


def read_changes(core: Core, collection: Collection, after: Time, to: Time, keys: KeyRange | None = None) -> pa.Table:
    """The row after a change is the one that the key's next change superseded, or the current one."""
    layout, contents = collection.layout, Contents.of(core, collection)
    key, value = names("k", layout.key), names("c", layout.value)
    before = [*renamed("h", value, names("b", layout.value)), "h.ts AS b_ts"]
    later = [f"CASE WHEN h.n IS NULL THEN t.{c} ELSE h.n.{c} END AS a{i}" for i, c in enumerate(value)]
    following = f"lead(struct_pack({listed(f'{c} := {c}' for c in [*value, 'ts', 'present'])})) OVER later"
    wanted = [] if keys is None else [key for key in keys if key is not None]
    within = " AND ".join(("k >= ?", "k < ?")[: len(wanted)]) or "true"
    sql = (
        f"SELECT {listed(['h.until AS time'], (f'h.{k}' for k in key), ['h.present AS b_present'], before)}, "
        f"CASE WHEN h.n IS NULL THEN t.k IS NOT NULL ELSE h.n.present END AS a_present, "
        f"{listed(later, ['CASE WHEN h.n IS NULL THEN t.ts ELSE h.n.ts END AS a_ts'])} "
        f"FROM (SELECT *, {following} AS n FROM ({contents.history()}) WHERE until > {after} AND {within} "
        f"WINDOW later AS (PARTITION BY k ORDER BY until)) h "
        f"LEFT JOIN ({contents.current()}) t ON t.k = h.k "
        f"WHERE h.until <= {to} ORDER BY h.until"
    )
    return schemas.fit(_select(core, contents, sql, wanted), schemas.changes_schema(layout))


def count(core: Core, collection: Collection) -> int:
    contents = Contents.of(core, collection)
    return int(_select(core, contents, f"SELECT count(*) AS n FROM ({contents.current()})").column("n")[0].as_py())


def lookup(core: Core, collection: Collection, keys: pa.Table, at: Time | None = None) -> pa.Table:
    """The rows of many keys (``k0..``), now or as of a time."""
    contents, schema = Contents.of(core, collection), schemas.rows_schema(collection.layout)
    encoded = columns.key_sql(collection.layout, names("k", collection.layout.key))
    sql = (
        f"SELECT {listed(f't.{name}' for name in schema.names)} FROM (SELECT DISTINCT {encoded} AS k FROM asked) x "
        f"JOIN ({contents.current() if at is None else contents.as_of(at)}) t ON t.k = x.k"
    )
    with translate_errors(), closing(core.database.cursor()) as cursor:
        contents.register(cursor, past=at is not None)
        cursor.register("asked", keys)
        return schemas.fit(as_arrow(cursor, sql), schema)


def find(core: Core, collection: Collection, part: GroupRead) -> pa.Table:
    layout = collection.layout
    schema = schemas.rows_schema(layout if part.with_group else schemas.part_layout(layout))
    sql = f"SELECT {listed(schema.names)} FROM part"
    return schemas.fit(evaluate(core, sql, {"part": RelationRead.of(core, part, collection)}, (), as_arrow), schema)


def _select(core: Core, contents: Contents, sql: str, parameters: Sequence[object] = ()) -> pa.Table:
    with translate_errors(), closing(core.database.cursor()) as cursor:
        contents.register(cursor)
        return as_arrow(cursor, sql, parameters)


def evaluate(
    core: Core,
    sql: str,
    relations: Mapping[str, RelationRead],
    parameters: Sequence[object],
    fetch: Fetch[T],
) -> T:
    """Where no tick is newer than the time, the current rows are the answer, at two thirds of the cost.

    Tables that are written meanwhile are noticed afterwards, and the read done again with history.
    """
    with _reading(core) as cursor:
        while True:
            views = [view for name, read in relations.items() for view in read.views(core, name, cursor)]
            bound = [value for view in views for value in view.parameters]
            answer = _run(cursor, with_views(sql, views), [*bound, *parameters], fetch)
            if all(view.latest is None or view.latest.collection.writing <= view.latest.at for view in views):
                return answer


def evaluate_over(core: Core, sql: str, tables: Mapping[str, pa.Table], parameters: Sequence[object]) -> pa.Table:
    """Statements over a few rows come again and again, so they are prepared."""
    if tables and not parameters and sum(table.num_rows for table in tables.values()) <= FEW:
        with translate_read_errors(core.deadlines.seconds):
            return core.expressions.run(sql, tables, core.deadlines)
    with _reading(core) as cursor:
        for name, table in tables.items():
            cursor.register(name, table)
        return _run(cursor, sql, parameters, as_arrow)


def with_views(sql: str, views: Sequence[RelationView]) -> str:
    """The statement with each view as a CTE, inlined so that predicates on the key reach its index.

    Those that are `materialized` are not: predicates of the statement do not reach into them.
    """
    if not views:
        return sql
    ctes = ", ".join(f"{v.name} AS {'' if v.materialized else 'NOT '}MATERIALIZED ({v.sql})" for v in views)
    first, _, rest = sql.lstrip().partition(" ")
    if first.upper() != "WITH":
        return f"WITH {ctes} {sql}"
    second, _, after = rest.lstrip().partition(" ")
    if second.upper() == "RECURSIVE":
        return f"WITH RECURSIVE {ctes}, {after}"
    return f"WITH {ctes}, {rest}"


def _run(
    cursor: duckdb.DuckDBPyConnection,
    sql: str,
    parameters: Sequence[object],
    fetch: Fetch[T],
) -> T:
    check_select(cursor, sql, again=bool(parameters))
    return fetch(cursor, sql, parameters)


@contextmanager
def _reading(core: Core) -> Iterator[duckdb.DuckDBPyConnection]:
    reading = closing(core.database.cursor())
    with translate_read_errors(core.deadlines.seconds), reading as cursor, core.deadlines.over(cursor.interrupt):
        yield cursor


def change_ranges(core: Core, collection: Collection, after: Time, to: Time, rows: int) -> list[ChangeRange]:
    """Ticks in a row as long as they fit; one that is larger, by keys."""
    contents = Contents.of(core, collection)
    counts = (
        f"SELECT until, count(*) FROM ({contents.history()}) WHERE until > {after} AND until <= {to} "
        f"GROUP BY until ORDER BY until"
    )
    with translate_errors(), closing(core.database.cursor()) as cursor:
        contents.register(cursor)
        found: list[ChangeRange] = []
        begin, last, room = after, after, rows
        for time, count in cursor.execute(counts).fetchall():
            if count > room and last > begin:
                found.append(ChangeRange(begin, last))
                begin, room = last, rows
            if count > rows:
                found += _by_keys(cursor, contents, Time(time), rows)
                begin = Time(time)
            else:
                room -= count
            last = Time(time)
        if last > begin:
            found.append(ChangeRange(begin, last))
    return found


def change_times(core: Core, collection: Collection, after: Time, to: Time) -> list[Time]:
    contents = Contents.of(core, collection)
    sql = f"SELECT DISTINCT until FROM ({contents.history()}) WHERE until > {after} AND until <= {to} ORDER BY until"
    with translate_errors(), closing(core.database.cursor()) as cursor:
        contents.register(cursor)
        return [Time(time) for (time,) in cursor.execute(sql).fetchall()]


def _by_keys(cursor: duckdb.DuckDBPyConnection, contents: Contents, time: Time, rows: int) -> list[ChangeRange]:
    starts = (
        f"SELECT k FROM (SELECT k, row_number() OVER (ORDER BY k) - 1 AS n FROM ({contents.history()}) "
        f"WHERE until = {time}) WHERE n % {rows} = 0 ORDER BY k"
    )
    keys = [k for (k,) in cursor.execute(starts).fetchall()]
    return [ChangeRange(Time(time - 1), time, pair) for pair in pairwise([*keys, None])]
