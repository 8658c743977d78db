"""Queries that read several objects or compute over many rows: evaluated where the rows are, all at one time."""

import pyarrow as pa

from holdfast.errors import HoldfastError, ReadError
from holdfast.names import CollectionId
from holdfast.runtime.expressions.physical import Dialect, arrow_type
from holdfast.runtime.spark.engine import Engine, Round
from holdfast.runtime.store.port import Time
from holdfast.serving.pull import ReadStore, whole
from holdfast.serving.results import PullResult, ResultColumn
from holdfast.serving.times import Times
from holdfast.sql.bound_read import BoundRead


def read(bound: BoundRead, store: ReadStore, engine: Engine, times: Times) -> PullResult:
    """Answer a query once."""
    columns = tuple(ResultColumn(column.name, column.type) for column in bound.columns)
    with times.reading(bound.tables, bound.as_of) as choice:
        return PullResult(columns, rows_at(bound, choice.time, store, engine), choice.time, choice.notice)


def rows_at(bound: BoundRead, time: Time, store: ReadStore, engine: Engine) -> pa.Table:
    """The rows of a query at a time that its reader holds: `r0`, `r1`, … in the types of its columns."""
    if bound.dialect is Dialect.DUCKDB:
        relations = {name: (CollectionId(table.name), time) for name, table in bound.relations}
        rows = store.evaluate(bound.sql, relations)
    else:
        tables = {name: whole(store, CollectionId(table.name), time) for name, table in bound.relations}
        try:
            rows = engine.select(bound.sql, Round(tables, {}))
        except HoldfastError:
            raise
        except Exception as problem:
            # Spark refuses some forms of queries inside expressions, in words of its own.
            raise ReadError("the query failed", detail=str(problem).strip().splitlines()[0]) from problem
    schema = pa.schema([(f"r{i}", arrow_type(column.type)) for i, column in enumerate(bound.columns)])
    return rows.select(schema.names).cast(schema)
