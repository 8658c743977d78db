"""Rows of pull queries in Arrow's stream format, with the names and types of their columns.

A batch of the format has no names, only buffers. So the rows are sent as they are, after a schema that names them.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from holdfast.runtime.expressions import physical
from holdfast.serving.results import PullResult, ResultColumn
from holdfast.types import Array, Decimal, Map, Scalar, SqlType, Struct

ROWS_PER_BATCH = 64_000
END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def arrow_parts(result: PullResult) -> Iterator[bytes]:
    """The schema, batches of rows, and the end. The schema's metadata have the notice, if there is one."""
    yield named_schema(result.columns, result.notice).serialize().to_pybytes()
    stored = pa.schema([(f"r{i}", physical.arrow_type(column.type)) for i, column in enumerate(result.columns)])
    rows = result.rows.select(range(len(result.columns))).rename_columns(stored.names).cast(stored)
    for batch in rows.to_batches(max_chunksize=ROWS_PER_BATCH):
        yield batch.serialize().to_pybytes()
    yield END


def named_schema(columns: Sequence[ResultColumn], notice: str | None) -> pa.Schema:
    fields = [pa.field(column.name, named_type(column.type)) for column in columns]
    return pa.schema(fields, metadata={"notice": notice} if notice else None)


def named_type(type_: SqlType) -> pa.DataType:
    """Arrow's type of a SQL type; values have the same buffers as those of the physical type."""
    match type_:
        case Scalar.TIME:
            return pa.time32("ms")
        case Scalar.TIMESTAMP:
            return pa.timestamp("us", tz="UTC")
        case Scalar() | Decimal():
            return physical.arrow_type(type_)
        case Array(element):
            return pa.list_(named_type(element))
        case Map(key, value):
            return pa.map_(named_type(key), named_type(value))
        case Struct(fields):
            names = [field.name for field in fields] or [physical.field_name(0)]
            types = map(named_type, physical.physical_fields(type_))
            return pa.struct([pa.field(name, each) for name, each in zip(names, types, strict=True)])
