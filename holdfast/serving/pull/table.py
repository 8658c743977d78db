"""Pull queries over one table: its rows as of the latest final time, or of AS OF."""

from collections.abc import Sequence

import pyarrow as pa

from holdfast.catalog.objects import Table
from holdfast.errors import NotSupported, ResultTooLarge
from holdfast.names import CollectionId
from holdfast.runtime.expressions.physical import Dialect, arrow_type, duckdb_type
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.store.port import KeyRead, Time
from holdfast.serving.projection import Projection, on_spark
from holdfast.serving.pull.paths import Access, Paths, ReadStore, paths_to
from holdfast.serving.results import PullResult
from holdfast.serving.time.read_times import Times
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.walk import conjuncts


def pull(bound: BoundSelect, store: ReadStore, engine: Engine, times: Times) -> PullResult:
    """Run a pull query over one table."""
    if not isinstance(bound.relation, Table):
        raise NotSupported(
            f'stream "{bound.relation.name}" cannot be read by a pull query',
            hint="Use EMIT CHANGES to follow it.",
        )
    projection, paths = Projection(bound), select_paths(bound, store)
    with times.reading([bound.relation], bound.as_of, paths.indexes) as choice:
        access = paths.at(choice.readable)
        if projection.dialect is Dialect.DUCKDB:
            keys = projection.named_keys() if access.by_key else None
            relation = (
                access.relation(choice.time) if keys is None else key_read(store, access.collection, choice.time, keys)
            )
            rows = store.evaluate(projection.select("t", Dialect.DUCKDB, limit=bound.limit), {"t": relation})
        else:
            rows = on_spark(engine, projection, rows_of(access, store, choice.time), bound.limit)
            check_size(rows, store)
    return PullResult(projection.columns, as_declared(rows, projection), choice.time, choice.notice)


def select_paths(bound: BoundSelect, store: ReadStore) -> Paths:
    """The access paths of a pull query."""
    assert isinstance(bound.relation, Table)
    collection = CollectionId(bound.relation.name)
    by_key = collection in store.collections() and Projection(bound).named_keys() is not None
    return paths_to(bound.relation, list(conjuncts(bound.where)), bound.indexes, store, by_key=by_key)


def key_read(store: ReadStore, collection: CollectionId, at: Time, keys: Sequence[Sequence[str]]) -> KeyRead:
    """A read of the rows with these keys, whose values are SQL constants."""
    types = [duckdb_type(type_) for type_ in store.collections()[collection].key]
    rows = (", ".join(f"CAST({text} AS {type_})" for text, type_ in zip(key, types, strict=True)) for key in keys)
    columns = ", ".join(f"k{i}" for i in range(len(types)))
    values = f"SELECT * FROM (VALUES {', '.join(f'({row})' for row in rows)}) t({columns})"
    return KeyRead(collection, at, store.evaluate_over(values, {}))


def rows_of(access: Access, store: ReadStore, at: Time) -> pa.Table:
    """The rows of an access path, for evaluation outside the store."""
    found = access.rows(store, at)
    return read_all(store, access.collection, at) if found is None else found


def read_all(store: ReadStore, collection: CollectionId, at: Time) -> pa.Table:
    """All rows of a collection, if they are not too many. An empty result has the columns, too."""
    pages, size = [], 0
    for page in store.snapshot(collection, at):
        size += page.nbytes
        if size > store.max_result_bytes:
            raise ResultTooLarge(store.max_result_bytes, "what the query reads")
        pages.append(page)
    if pages:
        return pa.concat_tables(pages)
    layout = store.collections()[collection]
    fields = [(f"k{i}", arrow_type(t)) for i, t in enumerate(layout.key)]
    fields += [(f"c{i}", arrow_type(t)) for i, t in enumerate(layout.value)]
    return pa.schema([*fields, ("ts", pa.int64())]).empty_table()


def check_size(rows: pa.Table, store: ReadStore) -> None:
    """Refuse a result of Spark that is too large; the store checks its own."""
    if rows.nbytes > store.max_result_bytes:
        raise ResultTooLarge(store.max_result_bytes)


def as_declared(rows: pa.Table, projection: Projection) -> pa.Table:
    """Cast the result columns to their declared types."""
    schema = [(f"r{i}", arrow_type(column.type)) for i, column in enumerate(projection.columns)]
    extra = [(name, rows.schema.field(name).type) for name in rows.column_names if not name.startswith("r")]
    target = pa.schema([*schema, *extra])
    return rows.select(target.names).cast(target)
