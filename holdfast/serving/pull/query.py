"""Pull queries with joins, aggregates or subqueries: all tables at one time, evaluated in the store or on Spark."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from holdfast.catalog.objects import IndexedView
from holdfast.errors import HoldfastError, ReadError
from holdfast.runtime.expressions.physical import Dialect, arrow_type
from holdfast.runtime.spark.engine import Engine, Round
from holdfast.runtime.store.port import Time
from holdfast.serving.pull.paths import Access, Paths, ReadStore, all_rows, names_key, paths_to
from holdfast.serving.pull.table import check_size, rows_of
from holdfast.serving.results import PullResult, ResultColumn
from holdfast.serving.time.read_times import Times
from holdfast.sql.read.pull import BoundRead


def read(bound: BoundRead, store: ReadStore, engine: Engine, times: Times) -> PullResult:
    """Run a pull query, on indexes of its views if they have everything it needs."""
    indexed = indexed_read(bound, times)
    if indexed is not None:
        # The indexes may have compacted the time away since.
        with suppress(ReadError):
            return _run(indexed, store, engine, times)
    return _run(bound, store, engine, times)


def indexed_read(bound: BoundRead, times: Times) -> BoundRead | None:
    """The query over the indexes of its views, if they are current and have everything it needs at its time.

    Indexes leave out groups with a null key; a query that does not name its groups may need them.
    """
    if bound.indexed is None:
        return None
    # A transaction or an evaluated now() may have set the time since the query was bound.
    indexed = replace(bound.indexed, as_of=bound.as_of)
    for name, table in indexed.relations:
        if isinstance(table, IndexedView):
            conditions = indexed.conditions.get(name, ())
            if not times.is_current(table) or (table.of_groups and not names_key(table, conditions)):
                return None
    try:
        times.choose(indexed.tables, indexed.as_of, indexed.indexes)
    except HoldfastError:
        return None
    return indexed


def _run(bound: BoundRead, store: ReadStore, engine: Engine, times: Times) -> PullResult:
    columns = tuple(ResultColumn(column.name, column.type) for column in bound.columns)
    paths = read_paths(bound, store)
    usable = {index.name: index for each in paths.values() for index in each.indexes}
    with times.reading(bound.tables, bound.as_of, list(usable.values())) as choice:
        accesses = {name: each.at(choice.readable) for name, each in paths.items()}
        rows = rows_at(bound, choice.time, store, engine, accesses)
        return PullResult(columns, rows, choice.time, choice.notice)


def read_paths(bound: BoundRead, store: ReadStore) -> dict[str, Paths]:
    """The access paths to each relation of a query."""
    return {
        name: paths_to(table, bound.conditions.get(name, ()), bound.indexes, store, by_key=False)
        for name, table in bound.relations
    }


def rows_at(
    bound: BoundRead, time: Time, store: ReadStore, engine: Engine, accesses: Mapping[str, Access] | None = None
) -> pa.Table:
    """The rows of a query at a pinned time: `r0`, `r1`, … in the types of its columns.

    Reads through `accesses`; without them, all rows of its tables.
    """
    accesses = accesses or {name: all_rows(table, bound.indexes) for name, table in bound.relations}
    if bound.dialect is Dialect.DUCKDB:
        rows = store.evaluate(bound.sql, {name: access.relation(time) for name, access in accesses.items()})
    else:
        tables = {name: rows_of(access, store, time) for name, access in accesses.items()}
        try:
            rows = engine.read(bound.sql, Round(tables, {}))
        except HoldfastError:
            raise
        except Exception as problem:
            # Spark rejects some subqueries in expressions, with its own messages.
            raise ReadError("the query failed", detail=str(problem).strip().splitlines()[0]) from problem
        check_size(rows, store)
    schema = pa.schema([(f"r{i}", arrow_type(column.type)) for i, column in enumerate(bound.columns)])
    return rows.select(schema.names).cast(schema)
