"""Pull queries: the rows of a table as of the latest final time, or of the one that is asked for."""

from collections.abc import Sequence

import pyarrow as pa

from holdfast.catalog.objects import Table
from holdfast.errors import NotSupported
from holdfast.names import CollectionId
from holdfast.runtime.expressions.physical import Dialect, arrow_type, duckdb_type
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.store.port import Named, Store, Time
from holdfast.serving.paths import Access, Paths, ReadStore, paths_to
from holdfast.serving.projection import Projection, on_spark
from holdfast.serving.results import PullResult
from holdfast.serving.times import Times
from holdfast.sql.bound import BoundSelect
from holdfast.sql.walk import conjuncts


def pull(bound: BoundSelect, store: ReadStore, engine: Engine, times: Times) -> PullResult:
    """Answer a SELECT once."""
    if not isinstance(bound.relation, Table):
        raise NotSupported(
            f'stream "{bound.relation.name}" cannot be read by a pull query',
            hint="Write EMIT CHANGES to follow it.",
        )
    projection, paths = Projection(bound), select_paths(bound, store)
    with times.reading([bound.relation], bound.as_of, paths.indexes) as choice:
        access = paths.at(choice.readable)
        if projection.dialect is Dialect.DUCKDB:
            keys = projection.named_keys() if access.by_key else None
            wanted = (
                access.relation(choice.time) if keys is None else named(store, access.collection, choice.time, keys)
            )
            rows = store.evaluate(projection.select("t", Dialect.DUCKDB, limit=bound.limit), {"t": wanted})
        else:
            rows = on_spark(engine, projection, rows_of(access, store, choice.time), bound.limit)
    return PullResult(projection.columns, as_declared(rows, projection), choice.time, choice.notice)


def select_paths(bound: BoundSelect, store: ReadStore) -> Paths:
    """The ways to the rows of a SELECT that is answered once."""
    assert isinstance(bound.relation, Table)
    collection = CollectionId(bound.relation.name)
    by_key = collection in store.collections() and Projection(bound).named_keys() is not None
    return paths_to(bound.relation, list(conjuncts(bound.where)), bound.indexes, store, by_key=by_key)


def named(store: ReadStore, collection: CollectionId, at: Time, keys: Sequence[Sequence[str]]) -> Named:
    """The rows of keys whose columns are given as constants of SQL."""
    types = [duckdb_type(type_) for type_ in store.collections()[collection].key]
    rows = (", ".join(f"CAST({text} AS {type_})" for text, type_ in zip(key, types, strict=True)) for key in keys)
    columns = ", ".join(f"k{i}" for i in range(len(types)))
    values = f"SELECT * FROM (VALUES {', '.join(f'({row})' for row in rows)}) t({columns})"
    return Named(collection, at, store.evaluate_over(values, {}))


def rows_of(access: Access, store: ReadStore, at: Time) -> pa.Table:
    """The rows that an access leads to, for who evaluates them elsewhere."""
    found = access.rows(store, at)
    return whole(store, access.collection, at) if found is None else found


def whole(store: Store, collection: CollectionId, at: Time) -> pa.Table:
    """All rows of a collection; empty, it still has columns."""
    pages = list(store.snapshot(collection, at))
    if pages:
        return pa.concat_tables(pages)
    layout = store.collections()[collection]
    fields = [(f"k{i}", arrow_type(t)) for i, t in enumerate(layout.key)]
    fields += [(f"c{i}", arrow_type(t)) for i, t in enumerate(layout.value)]
    return pa.schema([*fields, ("ts", pa.int64())]).empty_table()


def as_declared(rows: pa.Table, projection: Projection) -> pa.Table:
    """The columns in the types that the query's columns have."""
    schema = [(f"r{i}", arrow_type(column.type)) for i, column in enumerate(projection.columns)]
    extra = [(name, rows.schema.field(name).type) for name in rows.column_names if not name.startswith("r")]
    target = pa.schema([*schema, *extra])
    return rows.select(target.names).cast(target)
