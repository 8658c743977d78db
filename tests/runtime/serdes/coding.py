"""Encodes rows and decodes records as the engine does, without a query."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, Formats, SerdeFeature
from holdfast.runtime.serdes.decoding import Decoder
from holdfast.runtime.serdes.encoding import Encoder
from holdfast.runtime.spark.engine import RECORDS, Engine, Round
from holdfast.runtime.store.port import SqlReader
from holdfast.types import Column, Schema, SqlType


def formats(key: str, value: str, *, unwrapped: bool = False) -> Formats:
    more = {"value_features": (SerdeFeature.UNWRAP_SINGLES,)} if unwrapped else {}
    return Formats(
        key_format=FormatInfo(format=key, properties=FormatProperties()),
        value_format=FormatInfo(format=value, properties=FormatProperties()),
        **more,
    )


def values_of(**types: SqlType) -> Schema:
    return Schema(tuple(Column(name, type_) for name, type_ in types.items()))


def records(values: Sequence[bytes | None], keys: Sequence[bytes | None] = ()) -> pa.Table:
    rows = [
        {"part": 0, "off": i, "ts": 0, "key": keys[i] if keys else None, "value": value}
        for i, value in enumerate(values)
    ]
    return pa.Table.from_pylist(rows, schema=RECORDS)


def decode(engine: Engine, decoder: Decoder, values: Sequence[bytes | None], keys: Sequence[bytes | None] = ()):
    """The decoded rows in the order of the records, bad ones among them."""
    inputs = Round({"records": records(values, keys)}, {})
    return engine.select(decoder.sql("records", frozenset()), inputs).sort_by("off")


def encode(reader: SqlReader, encoder: Encoder, **columns: pa.Array | pa.ChunkedArray) -> pa.Table:
    count = len(next(iter(columns.values())))
    rows = {"present": pa.repeat(pa.scalar(True), count), **columns, "ts": pa.array([0] * count, pa.int64())}
    return encoder.encode(pa.table(rows), reader)


def array(values: Sequence[Any], type_: SqlType) -> pa.Array:
    return pa.array(values, arrow_type(type_))
