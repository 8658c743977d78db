"""Pull queries: the rows of a table as of the latest final time, or of the one that is asked for."""

from typing import Protocol

import pyarrow as pa

from holdfast.catalog.objects import Table
from holdfast.errors import NotSupported
from holdfast.names import CollectionId
from holdfast.runtime.expressions.physical import Dialect, arrow_type
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.store.port import SqlReader, Store, Time
from holdfast.serving.projection import Projection, on_spark
from holdfast.serving.results import PullResult
from holdfast.serving.times import Times
from holdfast.sql.bound import BoundSelect


class ReadStore(Store, SqlReader, Protocol):
    """What reads need of a store."""


def pull(bound: BoundSelect, store: ReadStore, engine: Engine, times: Times) -> PullResult:
    """Answer a SELECT once."""
    if not isinstance(bound.relation, Table):
        raise NotSupported(
            f'stream "{bound.relation.name}" cannot be read by a pull query',
            hint="Write EMIT CHANGES to follow it.",
        )
    projection = Projection(bound)
    collection = CollectionId(bound.relation.name)
    with times.reading([bound.relation], bound.as_of) as choice:
        if projection.dialect is Dialect.DUCKDB:
            key = projection.key_condition(collection, store)
            sql = projection.select("t", Dialect.DUCKDB, key=key, limit=bound.limit)
            rows = store.evaluate(sql, {"t": (collection, choice.time)})
        else:
            rows = on_spark(engine, projection, whole(store, collection, choice.time), bound.limit)
    return PullResult(projection.columns, as_declared(rows, projection), choice.time, choice.notice)


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
