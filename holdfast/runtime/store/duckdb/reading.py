"""Reads as of a time. Each statement is a short transaction of its own, on a cursor of its own.

A version of a row is in `current` from `since` on, until a tick moves it to `history`, where `until` ends it.
Both carry the key's seq, given when the key was inserted: pages are ranges of it, and a commit between two
pages moves versions from one table to the other but never to another page.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TypeVar

import duckdb
import pyarrow as pa

from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb import columns
from holdfast.runtime.store.duckdb.columns import listed, renamed
from holdfast.runtime.store.duckdb.contents import Contents
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.fetching import Fetch, as_arrow
from holdfast.runtime.store.duckdb.objects import Collection
from holdfast.runtime.store.duckdb.prepared import check_select
from holdfast.runtime.store.duckdb.problems import telling, telling_reader
from holdfast.runtime.store.duckdb.small import encode
from holdfast.runtime.store.port import Keyed, KeyRange, PageSize, Part, Relation, Time
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
    """What a change led to is what the key's next change superseded, or what is current."""
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
    with telling(), closing(core.database.cursor()) as cursor:
        contents.register(cursor, past=at is not None)
        cursor.register("asked", keys)
        return schemas.fit(as_arrow(cursor, sql), schema)


@dataclass(frozen=True, slots=True)
class Read:
    """A relation of a statement: a collection as of a time, whole or as far as a `condition` on its key or group is
    true; `parameters` are that condition's. A `part` is without the columns of the group."""

    collection: Collection
    at: Time
    part: bool = False
    condition: str | None = None
    parameters: tuple[object, ...] = ()

    @classmethod
    def of(cls, core: Core, relation: Relation, collection: Collection) -> "Read":
        match relation:
            case Keyed(at=at, condition=condition):
                return cls(collection, at, condition=condition)
            case Part(at=at, groups=None):
                return cls(collection, at, part=True)
            case Part(at=at, groups=groups):
                wanted = tuple(encoded_groups(core, collection, groups))
                condition = f"g IN ({listed('?' for _ in wanted)})" if wanted else "false"
                return cls(collection, at, part=True, condition=condition, parameters=wanted)
            case (_, at):
                return cls(collection, at)

    def view(self, contents: Contents, *, latest: bool, found: str) -> str:
        """The relation as SQL; `found` is what has the stored rows for which the condition is true."""
        stored, layout = found if self.condition is not None else None, self.collection.layout
        rows = contents.current(stored) if latest else contents.as_of(self.at, stored)
        where = f" WHERE {self.condition}" if self.condition is not None else ""
        names = schemas.rows_schema(layout).names
        if not self.part:
            return f"SELECT {listed(['k'], names)} FROM ({rows}){where}"
        own = schemas.rows_schema(schemas.part_layout(layout)).names
        shown = [f"{a} AS {b}" for a, b in zip(names[layout.group :], own, strict=True)]
        return f"SELECT {listed(shown)} FROM ({rows}){where}"


def encoded_groups(core: Core, collection: Collection, groups: pa.Table) -> list[object]:
    """Groups as the store compares them; one with a null is equal to none."""
    layout = schemas.group_layout(collection.layout)
    asked = schemas.fit(groups, schemas.key_schema(layout)).drop_null()
    return list(dict.fromkeys(encode(core, layout, asked).to_pylist())) if asked.num_rows else []


def find(core: Core, collection: Collection, part: Part) -> pa.Table:
    schema = schemas.rows_schema(schemas.part_layout(collection.layout))
    sql = f"SELECT {listed(schema.names)} FROM part"
    return schemas.fit(evaluate(core, sql, {"part": Read.of(core, part, collection)}, (), as_arrow), schema)


def _select(core: Core, contents: Contents, sql: str, parameters: Sequence[object] = ()) -> pa.Table:
    with telling(), closing(core.database.cursor()) as cursor:
        contents.register(cursor)
        return as_arrow(cursor, sql, parameters)


def evaluate(
    core: Core,
    sql: str,
    relations: Mapping[str, Read],
    parameters: Sequence[object],
    fetch: Fetch[T],
) -> T:
    """Where no tick is newer than the time, the current rows are the answer, at two thirds of the cost.

    Tables that are written meanwhile are noticed afterwards, and the read done again with history.
    """
    given = [value for read in relations.values() for value in (*read.parameters, *read.parameters)]
    kept = {f"{name}_found" for name, read in relations.items() if read.condition is not None}
    with _reading(core) as cursor:
        while True:
            views: dict[str, str] = {}
            latest: list[Read] = []
            for name, read in relations.items():
                contents = Contents.of(core, read.collection)
                found = f"{name}_found"
                if read.condition is not None:
                    views[found] = contents.stored(read.condition)
                is_latest = max(contents.written, read.collection.writing) <= read.at
                contents.register(cursor, past=not is_latest)
                latest += [read] if is_latest else []
                views[name] = read.view(contents, latest=is_latest, found=_quote(found))
            answer = _run(cursor, with_relations(sql, views, kept), [*given, *parameters], fetch)
            if all(read.collection.writing <= read.at for read in latest):
                return answer


def evaluate_over(core: Core, sql: str, tables: Mapping[str, pa.Table], parameters: Sequence[object]) -> pa.Table:
    """Statements over a few rows come again and again, so they are prepared."""
    if tables and not parameters and sum(table.num_rows for table in tables.values()) <= FEW:
        with telling_reader(core.deadlines.seconds):
            return core.expressions.run(sql, tables, core.deadlines)
    with _reading(core) as cursor:
        for name, table in tables.items():
            cursor.register(name, table)
        return _run(cursor, sql, parameters, as_arrow)


def with_relations(sql: str, views: Mapping[str, str], kept: Set[str] = frozenset()) -> str:
    """The statement with each relation as a CTE, inlined so that predicates on the key reach its index.

    Those that are `kept` are not: nothing beyond them reaches into them.
    """
    if not views:
        return sql
    how = {name: "MATERIALIZED" if name in kept else "NOT MATERIALIZED" for name in views}
    ctes = ", ".join(f"{_quote(name)} AS {how[name]} ({view})" for name, view in views.items())
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
    with telling_reader(core.deadlines.seconds), reading as cursor, core.deadlines.over(cursor.interrupt):
        yield cursor


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
