"""INSERT INTO … VALUES: the row to insert."""

import pyarrow as pa

from holdfast.catalog.objects import Table
from holdfast.errors import BindError
from holdfast.runtime import physical_columns as col
from holdfast.runtime.compiler.sql import render
from holdfast.runtime.expressions.physical import Dialect, arrow_type
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import Cast, Expression, NullLiteral
from holdfast.runtime.store.port import SqlReader
from holdfast.sql.bind.insert import BoundInsert
from holdfast.types import Scalar, SqlType

ROWTIME = "ROWTIME"


def row_of(bound: BoundInsert, reader: SqlReader, now_ms: int) -> pa.Table:
    """The row as columns by position (`present, k0.., c0.., ts`); columns that the statement omits are null."""
    values_of = {column.name: value for column, value in zip(bound.columns, bound.values, strict=True)}
    schema = bound.target.schema
    values: dict[str, pa.Array] = {col.PRESENT: pa.array([True])}
    for name, columns in ((col.key, schema.key), (col.value, schema.value)):
        for i, column in enumerate(columns):
            values[name(i)] = _value(values_of.get(column.name), column.type, reader)
    rowtime = values_of.get(ROWTIME)
    row_time = pa.array([now_ms], pa.int64()) if rowtime is None else _value(rowtime, Scalar.BIGINT, reader)
    values[col.ROW_TIME] = row_time
    if isinstance(bound.target, Table) and any(values[key].null_count for key in col.keys(len(schema.key))):
        raise BindError(
            f'the primary key of table "{bound.target.name}" needs a value',
            hint=f"Insert a value for {', '.join(c.name for c in schema.key)}.",
        )
    return pa.table(values)


def _value(expression: Expression | None, type_: SqlType, reader: SqlReader) -> pa.Array:
    if expression is None or isinstance(expression, NullLiteral):
        return pa.nulls(1, arrow_type(type_))
    sql = render(Cast(expression, type_), Scope.of([]), Dialect.DUCKDB)
    result = reader.evaluate_over(f"SELECT {sql} AS v", {})
    return result.column("v").combine_chunks().cast(arrow_type(type_))
