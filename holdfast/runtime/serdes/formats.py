"""The formats of keys and values. To add one, write its decoder and encoder and add its row to `FORMATS`.

Everything that depends on the format of a topic comes from this table: what can be declared, decoded and encoded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from holdfast.errors import Feature, NotYetSupported
from holdfast.runtime.plan.formats import FormatInfo, SerdeFeature
from holdfast.runtime.serdes import kafka
from holdfast.runtime.serdes.delimited import dialect as delimited
from holdfast.runtime.serdes.delimited.decode import decode_delimited
from holdfast.runtime.serdes.delimited.encode import delimited_sql
from holdfast.runtime.serdes.json import values as json
from holdfast.runtime.serdes.json.encode import json_sql
from holdfast.runtime.serdes.json.native import decode_json
from holdfast.runtime.serdes.side import DecodedSide, RecordSide
from holdfast.runtime.store.port import SqlReader
from holdfast.types import Column, SqlType

Encode = Callable[[pa.Table, RecordSide, SqlReader], pa.Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class SerdeFormat:
    """A format: the types that it supports, its decoder and its encoder."""

    name: str
    fits: Callable[[SqlType], bool]
    """Whether it supports a column of a type."""
    check: Callable[[Sequence[Column], FormatInfo], None]
    """Refuses columns and properties of a stored plan that it does not support."""
    decode: Callable[[RecordSide], DecodedSide]
    """Bytes to columns, as Spark SQL."""
    encode: Encode
    """Columns to bytes."""
    most_columns: int | None = None
    wrapping: tuple[SerdeFeature, ...] = ()
    """How it can write a single value; empty when there is no choice."""


def _as_text(sql: Callable[[RecordSide], str]) -> Encode:
    """An encoder that writes each row as text, with SQL of the store's engine."""

    def encode(rows: pa.Table, side: RecordSide, reader: SqlReader) -> pa.Array:
        encoded = reader.evaluate_over(f"SELECT encode({sql(side)}) AS bytes FROM rows", {"rows": rows})
        return encoded.column("bytes").combine_chunks().cast(pa.binary())

    return encode


FORMATS: Mapping[str, SerdeFormat] = {
    format_.name: format_
    for format_ in (
        SerdeFormat(
            name="DELIMITED",
            fits=delimited.fits,
            check=delimited.check,
            decode=decode_delimited,
            encode=_as_text(delimited_sql),
        ),
        SerdeFormat(
            name="JSON",
            fits=json.fits,
            check=json.check,
            decode=decode_json,
            encode=_as_text(json_sql),
            wrapping=(SerdeFeature.WRAP_SINGLES, SerdeFeature.UNWRAP_SINGLES),
        ),
        SerdeFormat(
            name="KAFKA",
            fits=kafka.fits,
            check=kafka.check,
            decode=kafka.decode,
            encode=kafka.encode,
            most_columns=1,
            wrapping=(SerdeFeature.UNWRAP_SINGLES,),
        ),
        SerdeFormat(
            name="NONE",
            fits=lambda _: True,
            check=lambda _columns, _info: None,
            decode=lambda side: DecodedSide(f"{side.raw} IS NULL", typed=("NULL",) * len(side.columns)),
            encode=lambda rows, _side, _reader: pa.nulls(rows.num_rows, pa.binary()),
            most_columns=0,
        ),
    )
}


def format_of(info: FormatInfo) -> SerdeFormat:
    """The format that a plan names. AVRO, PROTOBUF and JSON_SR need a schema registry."""
    found = FORMATS.get(info.format)
    if found is None:
        *others, last = FORMATS
        raise NotYetSupported(Feature.FORMAT, info.format, hint=f"Use {', '.join(others)} or {last}.")
    return found
