"""Kafka's own serializers: one column, big-endian.

| type    | bytes                                    |
|---------|------------------------------------------|
| INTEGER | 4                                        |
| BIGINT  | 8                                        |
| DOUBLE  | 8, IEEE 754                              |
| STRING  | UTF-8                                    |
| BYTES   | as they are                              |

A number of another length, or a text that is not UTF-8, cannot be decoded.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from holdfast.errors import NotSupported
from holdfast.runtime.plan.formats import FormatInfo
from holdfast.runtime.serdes.native import number_sql
from holdfast.runtime.serdes.scalar_text import literal
from holdfast.runtime.serdes.side import DecodedSide, DecodeFailure, RecordSide
from holdfast.runtime.store.port import SqlReader
from holdfast.types import Column, Scalar, SqlType

WIDTHS = {Scalar.INTEGER: 4, Scalar.BIGINT: 8, Scalar.DOUBLE: 8}
NATIVE = {Scalar.INTEGER: "int", Scalar.BIGINT: "long", Scalar.DOUBLE: "double"}
NUMPY = {Scalar.INTEGER: ">i4", Scalar.BIGINT: ">i8", Scalar.DOUBLE: ">f8"}


def fits(type_: SqlType) -> bool:
    return type_ in (*WIDTHS, Scalar.STRING, Scalar.BYTES)


def check(columns: Sequence[Column], _info: FormatInfo) -> None:
    """Refuse more than one column, and unsupported types."""
    if len(columns) > 1:
        raise NotSupported(
            "the KAFKA format supports only a single column",
            detail=f"The columns are: {', '.join(c.name for c in columns)}.",
            hint="Use another format, such as JSON.",
        )
    for column in columns:
        if not fits(column.type):
            raise NotSupported(
                f'the KAFKA format cannot hold column "{column.name}" of type {column.type}',
                hint="It supports INTEGER, BIGINT, DOUBLE, STRING and BYTES. Use another format, such as JSON.",
            )


def decode(side: RecordSide) -> DecodedSide:
    """The decoding of a side that Kafka's serializers wrote."""
    absent = f"{side.raw} IS NULL"
    if not side.columns:
        return DecodedSide(absent)
    check(side.columns, side.info)
    column = side.columns[0]
    failure = DecodeFailure(corrupt_sql(side.raw, column.type), _reason(column, side.raw))
    return DecodedSide(absent, typed=(decode_sql(side.raw, column.type),), failed=(failure,))


def decode_sql(raw: str, type_: SqlType) -> str:
    """The Spark SQL of a value; undefined where `corrupt_sql` is true."""
    match type_:
        case Scalar.INTEGER | Scalar.BIGINT | Scalar.DOUBLE:
            return number_sql(NATIVE[type_], raw, WIDTHS[type_])
        case Scalar.STRING:
            return f"CAST({raw} AS STRING)"
        case _:
            return raw


def corrupt_sql(raw: str, type_: SqlType) -> str:
    if type_ is Scalar.STRING:
        return f"NOT is_valid_utf8(CAST({raw} AS STRING))"
    width = WIDTHS.get(type_) if isinstance(type_, Scalar) else None
    return "false" if width is None else f"octet_length({raw}) <> {width}"


def _reason(column: Column, raw: str) -> str:
    if column.type is Scalar.STRING:
        return literal(f"the {raw} is not UTF-8")
    width = WIDTHS.get(column.type) if isinstance(column.type, Scalar) else None
    mismatch = literal(f' bytes, but column "{column.name}" of type {column.type} needs {width}')
    return f"concat({literal(f'the {raw} has ')}, octet_length({raw}), {mismatch})"


def encode(rows: pa.Table, side: RecordSide, _reader: SqlReader) -> pa.Array:
    """The bytes of the side's only column; null stays null."""
    values, type_ = rows.column(side.physical[0]), side.columns[0].type
    flat = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    if type_ not in WIDTHS:
        return flat.cast(pa.binary())
    assert isinstance(type_, Scalar)
    numbers = flat.fill_null(0).to_numpy(zero_copy_only=False).astype(NUMPY[type_])
    fixed = pa.Array.from_buffers(
        pa.binary(WIDTHS[type_]), len(flat), [None, pa.py_buffer(np.ascontiguousarray(numbers).tobytes())]
    ).cast(pa.binary())
    return pa.compute.if_else(flat.is_valid(), fixed, pa.scalar(None, pa.binary()))
