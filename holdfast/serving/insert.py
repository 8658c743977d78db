"""INSERT INTO … VALUES: one row, as the record or the row that its object takes."""

import pyarrow as pa

from holdfast.catalog.objects import Table
from holdfast.errors import BindError
from holdfast.runtime.expressions.physical import Dialect, arrow_type
from holdfast.runtime.expressions.render import render
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import Cast, Expression, NullLiteral
from holdfast.runtime.store.port import SqlReader
from holdfast.sql.bound import BoundInsert
from holdfast.types import Scalar, SqlType

ROWTIME = "ROWTIME"


def row_of(bound: BoundInsert, reader: SqlReader, now_ms: int) -> pa.Table:
    """The row by position: `present, k0.., c0.., ts`; columns that are not named are null."""
    given = {column.name: value for column, value in zip(bound.columns, bound.values, strict=True)}
    schema = bound.target.schema
    values: dict[str, pa.Array] = {"present": pa.array([True])}
    for prefix, columns in (("k", schema.key), ("c", schema.value)):
        for i, column in enumerate(columns):
            values[f"{prefix}{i}"] = _value(given.get(column.name), column.type, reader)
    rowtime = given.get(ROWTIME)
    values["ts"] = _value(rowtime, Scalar.BIGINT, reader) if rowtime is not None else pa.array([now_ms], pa.int64())
    if isinstance(bound.target, Table) and any(values[f"k{i}"].null_count for i in range(len(schema.key))):
        raise BindError(
            f'a row of table "{bound.target.name}" needs its primary key',
            hint=f"Give a value for {', '.join(c.name for c in schema.key)}.",
        )
    return pa.table(values)


def _value(expression: Expression | None, type_: SqlType, reader: SqlReader) -> pa.Array:
    if expression is None or isinstance(expression, NullLiteral):
        return pa.nulls(1, arrow_type(type_))
    sql = render(Cast(expression, type_), Scope.of([]), Dialect.DUCKDB)
    found = reader.evaluate_over(f"SELECT {sql} AS v", {})
    return found.column("v").combine_chunks().cast(arrow_type(type_))
