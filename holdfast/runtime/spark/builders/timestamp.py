"""The TIMESTAMP property: a column in place of a record's own timestamp."""

from collections.abc import Sequence

from holdfast.errors import Feature, NotYetSupported, PlanError
from holdfast.runtime.plan.formats import TimestampColumn
from holdfast.runtime.plan.presence import Maybe, given
from holdfast.types import Column, Scalar


def timestamp_sql(
    wanted: Maybe[TimestampColumn],
    key: Sequence[Column],
    value: Sequence[Column],
    *,
    present: str,
    prefix: str = "c",
    ts: str = "ts",
) -> str:
    """The Spark SQL of a row's timestamp. It is NULL where the column has none that can be one, which `timed` drops."""
    column = given(wanted)
    if column is None:
        return ts
    named = {c.name: (f"k{i}", c.type) for i, c in enumerate(key)}
    named |= {c.name: (f"{prefix}{i}", c.type) for i, c in enumerate(value)}
    if column.column not in named:
        raise PlanError(f'the timestamp column "{column.column}" is not there')
    sql, type_ = named[column.column]
    if given(column.format) is not None or type_ not in (Scalar.BIGINT, Scalar.TIMESTAMP):
        raise NotYetSupported(
            Feature.PROPERTY,
            f"TIMESTAMP of type {type_}",
            f'the timestamp column "{column.column}" of type {type_} is not supported',
            hint="Use a BIGINT of milliseconds since the epoch, or a TIMESTAMP.",
        )
    millis = sql if type_ is Scalar.BIGINT else f"unix_millis(CAST({sql} AS TIMESTAMP_LTZ))"
    return f"IF({present}, IF({millis} >= 0, {millis}, NULL), {ts})"


def timed(sql: str, wanted: Maybe[TimestampColumn], kept: str = "false") -> str:
    """A SELECT without the rows that a timestamp column has left without a timestamp, but with those of `kept`."""
    return sql if given(wanted) is None else f"SELECT * FROM ({sql}) WHERE ts IS NOT NULL OR {kept}"
