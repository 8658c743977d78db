"""Queries that read several objects or compute over many rows: evaluated where the rows are, all at one time."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from holdfast.catalog.objects import IndexedView
from holdfast.errors import HoldfastError, ReadError
from holdfast.runtime.expressions.physical import Dialect, arrow_type
from holdfast.runtime.spark.engine import Engine, Round
from holdfast.runtime.store.port import Time
from holdfast.serving.paths import Access, Paths, ReadStore, all_rows, names_key, paths_to
from holdfast.serving.pull import rows_of
from holdfast.serving.results import PullResult, ResultColumn
from holdfast.serving.times import Times
from holdfast.sql.bound_read import BoundRead


def read(bound: BoundRead, store: ReadStore, engine: Engine, times: Times) -> PullResult:
    """Answer a query once; from what is kept of the views that it reads, where that reaches."""
    kept = kept_for(bound, times)
    if kept is not None:
        # What could be read may be forgotten by now.
        with suppress(ReadError):
            return _answer(kept, store, engine, times)
    return _answer(bound, store, engine, times)


def kept_for(bound: BoundRead, times: Times) -> BoundRead | None:
    """The query over what indexes keep of views, when they are kept current and have all that it asks for, at its time.

    The groups of nulls are in no index: a query that does not name its groups may want them.
    """
    if bound.kept is None:
        return None
    # A transaction, or a now() that was read before, has given the query its time since it was bound.
    kept = replace(bound.kept, as_of=bound.as_of)
    for name, table in kept.relations:
        if isinstance(table, IndexedView):
            conditions = kept.conditions.get(name, ())
            if not times.follows(table) or (table.of_groups and not names_key(table, conditions)):
                return None
    try:
        times.choose(kept.tables, kept.as_of, kept.indexes)
    except HoldfastError:
        return None
    return kept


def _answer(bound: BoundRead, store: ReadStore, engine: Engine, times: Times) -> PullResult:
    columns = tuple(ResultColumn(column.name, column.type) for column in bound.columns)
    paths = read_paths(bound, store)
    usable = {index.name: index for each in paths.values() for index in each.indexes}
    with times.reading(bound.tables, bound.as_of, list(usable.values())) as choice:
        accesses = {name: each.at(choice.readable) for name, each in paths.items()}
        rows = rows_at(bound, choice.time, store, engine, accesses)
        return PullResult(columns, rows, choice.time, choice.notice)


def read_paths(bound: BoundRead, store: ReadStore) -> dict[str, Paths]:
    """The ways to the rows of each relation of a query."""
    return {
        name: paths_to(table, bound.conditions.get(name, ()), bound.indexes, store, by_key=False)
        for name, table in bound.relations
    }


def rows_at(
    bound: BoundRead, time: Time, store: ReadStore, engine: Engine, accesses: Mapping[str, Access] | None = None
) -> pa.Table:
    """The rows of a query at a time that its reader holds: `r0`, `r1`, … in the types of its columns.

    By the ways that are given, or through all rows of its tables.
    """
    ways = accesses or {name: all_rows(table, bound.indexes) for name, table in bound.relations}
    if bound.dialect is Dialect.DUCKDB:
        rows = store.evaluate(bound.sql, {name: way.relation(time) for name, way in ways.items()})
    else:
        tables = {name: rows_of(way, store, time) for name, way in ways.items()}
        try:
            rows = engine.select(bound.sql, Round(tables, {}))
        except HoldfastError:
            raise
        except Exception as problem:
            # Spark refuses some forms of queries inside expressions, in words of its own.
            raise ReadError("the query failed", detail=str(problem).strip().splitlines()[0]) from problem
    schema = pa.schema([(f"r{i}", arrow_type(column.type)) for i, column in enumerate(bound.columns)])
    return rows.select(schema.names).cast(schema)
