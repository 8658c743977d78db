"""The TIMESTAMP property: a column in place of a record's own timestamp."""

from collections.abc import Iterable, Sequence

from holdfast.errors import PlanError
from holdfast.runtime import physical_columns as col
from holdfast.runtime.compiler.sql import render
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.tree import Call, ColumnRef, StringLiteral
from holdfast.runtime.plan.formats import TimestampColumn
from holdfast.runtime.plan.optional import Maybe, value_of
from holdfast.runtime.spark.skips import Skip, marked
from holdfast.types import Column, Scalar, SqlType


def timestamp_sql(
    wanted: Maybe[TimestampColumn],
    key: Sequence[Column],
    value: Sequence[Column],
    *,
    present: str,
    prefix: str = "c",
    ts: str = "ts",
) -> str:
    """The Spark SQL of a row's timestamp; NULL where the value of the timestamp column is not a valid timestamp."""
    column = value_of(wanted)
    if column is None:
        return ts
    named = {c.name: (col.key(i), c.type) for i, c in enumerate(key)}
    named |= {c.name: (f"{prefix}{i}", c.type) for i, c in enumerate(value)}
    if column.column not in named:
        raise PlanError(f'the timestamp column "{column.column}" does not exist')
    sql, type_ = named[column.column]
    millis = _millis(column, sql, type_)
    return f"IF({present}, IF({millis} >= 0, {millis}, NULL), {ts})"


def _millis(column: TimestampColumn, sql: str, type_: SqlType) -> str:
    pattern = value_of(column.format)
    match type_:
        case Scalar.BIGINT:
            return sql
        case Scalar.TIMESTAMP:
            return f"unix_millis(CAST({sql} AS TIMESTAMP_LTZ))"
        case Scalar.STRING if pattern is not None:
            name = ColumnRef(column.column)
            scope = Scope.of([ScopeColumn(column.column, type_, sql)])
            return render(Call("STRINGTOTIMESTAMP", (name, StringLiteral(pattern))), scope, Dialect.SPARK)
    raise PlanError(
        f'the timestamp column "{column.column}" cannot be of type {type_}',
        hint="Use a BIGINT of milliseconds since the epoch, a TIMESTAMP, or a STRING with a format.",
    )


def timed(sql: str, wanted: Maybe[TimestampColumn], names: Iterable[str]) -> str:
    """A SELECT of these columns that skips rows whose timestamp column has no valid timestamp."""
    if value_of(wanted) is None:
        return sql
    return f"SELECT {marked(names, 'ts IS NOT NULL', Skip.NO_TIMESTAMP)} FROM ({sql})"
