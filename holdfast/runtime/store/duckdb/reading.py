"""Reads as of a time. Each statement is a short transaction of its own, on a cursor of its own.

A version of a row is in `current` from `since` on, until a tick moves it to `history`, where `until` ends it.
Both carry the key's seq, given when the key was inserted: pages are ranges of it, and a commit between two
pages moves versions from one table to the other but never to another page.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from threading import Timer

import duckdb
import pyarrow as pa

from holdfast.errors import ReadError
from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb.columns import listed, renamed
from holdfast.runtime.store.duckdb.objects import Collection
from holdfast.runtime.store.duckdb.problems import telling, telling_reader
from holdfast.runtime.store.port import KeyRange, Time
from holdfast.runtime.store.schemas import names


def as_of_sql(collection: Collection, at: Time, shown: Sequence[str]) -> str:
    what = listed(shown)
    return (
        f"SELECT {what} FROM {collection.current} WHERE since <= {at} UNION ALL "
        f"SELECT {what} FROM {collection.history} WHERE until > {at} AND since <= {at} AND present"
    )


def read_pages(database: duckdb.DuckDBPyConnection, collection: Collection, at: Time, page: int) -> Iterator[pa.Table]:
    schema = schemas.rows_schema(collection.layout)
    shown = ["seq", *schema.names]
    # Keys inserted from now on were not there at `at`.
    low, end, width = 0, collection.next_seq, page
    while low < end:
        high = min(low + width, end)
        sql = (
            f"SELECT * FROM ({as_of_sql(collection, at, shown)}) WHERE seq >= {low} AND seq < {high} "
            f"ORDER BY seq LIMIT {page}"
        )
        with telling(), closing(database.cursor()) as cursor:
            found = cursor.sql(sql).to_arrow_table()
        if found.num_rows == page:
            low = found.column("seq")[-1].as_py() + 1
            width = page
        else:
            # Where many keys were deleted, longer ranges skip the gaps.
            low, width = high, width * 2 if found.num_rows < page // 2 else width
        if found.num_rows:
            yield schemas.fit(found, schema)


def read_changes(
    database: duckdb.DuckDBPyConnection,
    collection: Collection,
    after: Time,
    to: Time,
    keys: KeyRange | None = None,
) -> pa.Table:
    """What a change led to is what the key's next change superseded, or what is current."""
    layout = collection.layout
    key, value = names("k", layout.key), names("c", layout.value)
    before = [*renamed("h", value, names("b", layout.value)), "h.ts AS b_ts"]
    later = [f"CASE WHEN h.n IS NULL THEN t.{c} ELSE h.n.{c} END AS a{i}" for i, c in enumerate(value)]
    following = f"lead(struct_pack({listed(f'{c} := {c}' for c in [*value, 'ts', 'present'])})) OVER later"
    schema = schemas.changes_schema(layout)
    wanted = [] if keys is None else [key for key in keys if key is not None]
    within = " AND ".join(("k >= ?", "k < ?")[: len(wanted)]) or "true"
    sql = (
        f"SELECT {listed(['h.until AS time'], (f'h.{k}' for k in key), ['h.present AS b_present'], before)}, "
        f"CASE WHEN h.n IS NULL THEN t.k IS NOT NULL ELSE h.n.present END AS a_present, "
        f"{listed(later, ['CASE WHEN h.n IS NULL THEN t.ts ELSE h.n.ts END AS a_ts'])} "
        f"FROM (SELECT *, {following} AS n FROM {collection.history} WHERE until > {after} AND {within} "
        f"WINDOW later AS (PARTITION BY k ORDER BY until)) h "
        f"LEFT JOIN {collection.current} t ON t.k = h.k "
        f"WHERE h.until <= {to} ORDER BY h.until"
    )
    with telling(), closing(database.cursor()) as cursor:
        return schemas.fit(cursor.sql(sql, params=wanted or None).to_arrow_table(), schema)


def evaluate(
    database: duckdb.DuckDBPyConnection,
    sql: str,
    relations: Mapping[str, tuple[Collection, Time]],
    parameters: Sequence[object],
    timeout: float,
) -> pa.Table:
    """Where no tick is newer than the time, the current rows are the answer, at two thirds of the cost.

    A tick that commits meanwhile is noticed afterwards, and the read done again with history.
    """
    views = {name: _relation_sql(collection, at) for name, (collection, at) in relations.items()}
    with _reading(database, timeout) as cursor:
        while True:
            answer = _run(cursor, with_relations(sql, views), parameters)
            before, views = views, {name: _relation_sql(collection, at) for name, (collection, at) in relations.items()}
            if views == before:
                return answer


def _relation_sql(collection: Collection, at: Time) -> str:
    shown = ["k", *schemas.rows_schema(collection.layout).names]
    if collection.writing <= at:
        return f"SELECT {listed(shown)} FROM {collection.current}"
    return as_of_sql(collection, at, shown)


def evaluate_over(
    database: duckdb.DuckDBPyConnection,
    sql: str,
    tables: Mapping[str, pa.Table],
    parameters: Sequence[object],
    timeout: float,
) -> pa.Table:
    with _reading(database, timeout) as cursor:
        for name, table in tables.items():
            cursor.register(name, table)
        return _run(cursor, sql, parameters)


def with_relations(sql: str, views: Mapping[str, str]) -> str:
    """The statement with each relation as a CTE, inlined so that predicates on the key reach its index."""
    if not views:
        return sql
    ctes = ", ".join(f"{_quote(name)} AS NOT MATERIALIZED ({view})" for name, view in views.items())
    first, _, rest = sql.lstrip().partition(" ")
    if first.upper() != "WITH":
        return f"WITH {ctes} {sql}"
    second, _, after = rest.lstrip().partition(" ")
    if second.upper() == "RECURSIVE":
        return f"WITH RECURSIVE {ctes}, {after}"
    return f"WITH {ctes}, {rest}"


def _run(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object]) -> pa.Table:
    statements = cursor.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ReadError("only one SELECT can be evaluated")
    return cursor.sql(sql, params=list(parameters) or None).to_arrow_table()


@contextmanager
def _reading(database: duckdb.DuckDBPyConnection, timeout: float) -> Iterator[duckdb.DuckDBPyConnection]:
    with telling_reader(timeout), closing(database.cursor()) as cursor:
        timer = Timer(timeout, cursor.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield cursor
        finally:
            timer.cancel()


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
