"""Committed rows to topic records: vectorised, over Arrow, with the reading dialect for texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime.plan.formats import FormatInfo, Formats
from holdfast.runtime.plan.windows import WindowInfo
from holdfast.runtime.serdes import kafka
from holdfast.runtime.serdes.decoding import Decoder, unsupported
from holdfast.runtime.serdes.delimited import dialect as delimited
from holdfast.runtime.serdes.delimited import writing as delimited_lines
from holdfast.runtime.serdes.json import values as json
from holdfast.runtime.serdes.json import writing as json_texts
from holdfast.runtime.serdes.window import windowed
from holdfast.runtime.serdes.wrapping import key_is_bare, value_is_bare
from holdfast.runtime.store.port import SqlReader
from holdfast.types import Column, Schema


@dataclass(frozen=True, slots=True)
class Encoder:
    """How rows (`present, k0.., c0.., ts`) become the records of a topic. One key more is a record's headers."""

    schema: Schema
    formats: Formats
    window: WindowInfo | None = None

    def check(self) -> None:
        """Refuse formats and types that could not be written."""
        _check(self.schema.key, self.formats.key_format)
        _check(self.schema.value, self.formats.value_format)

    def decoder(self) -> Decoder:
        """How the records are read again."""
        return Decoder(self.schema, self.formats, window=self.window)

    def encode(self, rows: pa.Table, reader: SqlReader) -> pa.Table:
        """`key, value, timestamp`, in the order of the rows; a row that is not present has a null value.

        With `headers` when a row has any.
        """
        schema, formats = self.schema, self.formats
        key = _encoded(rows, schema.key, "k", formats.key_format, key_is_bare(schema.key, formats), reader)
        if len(schema.key) == 1:
            # A record without a key has a single key column that is null; of several, each may be.
            key = pc.if_else(pc.is_valid(rows.column("k0").combine_chunks()), key, pa.scalar(None, pa.binary()))
        if self.window is not None:
            first = len(schema.key)
            key = windowed(key, rows.column(f"k{first}"), rows.column(f"k{first + 1}"), self.window.type)
        value = _encoded(rows, schema.value, "c", formats.value_format, value_is_bare(formats), reader)
        present = rows.column("present").combine_chunks()
        null = pa.scalar(None, pa.binary())
        encoded = pa.table({"key": key, "value": pc.if_else(present, value, null), "timestamp": rows.column("ts")})
        last = f"k{len(schema.key) + (0 if self.window is None else 2)}"
        return _with_headers(encoded, rows.column(last)) if last in rows.column_names else encoded


def _with_headers(encoded: pa.Table, headers: pa.ChunkedArray) -> pa.Table:
    whole = headers.combine_chunks()
    if not pc.any(pc.greater(pc.list_value_length(whole), 0)).as_py():
        return encoded
    parts = [whole.values.field(i) for i in range(2)]
    named = pa.StructArray.from_arrays(parts, names=["key", "value"])
    return encoded.append_column("headers", pa.ListArray.from_arrays(whole.offsets, named))


def _encoded(
    rows: pa.Table, columns: Sequence[Column], prefix: str, info: FormatInfo, unwrapped: bool, reader: SqlReader
) -> pa.Array:
    """The bytes of one side of each row."""
    if not columns or info.format == "NONE":
        return pa.nulls(rows.num_rows, pa.binary())
    if info.format == "KAFKA":
        return kafka.encode(rows.column(f"{prefix}0"), columns[0].type)
    physical = [f"{prefix}{i}" for i in range(len(columns))]
    text = (
        delimited_lines.encode_sql(columns, physical, info)
        if info.format == "DELIMITED"
        else json_texts.encode_sql(columns, physical, unwrapped=unwrapped)
    )
    encoded = reader.evaluate_over(f"SELECT encode({text}) AS bytes FROM rows", {"rows": rows})
    return encoded.column("bytes").combine_chunks().cast(pa.binary())


def _check(columns: Sequence[Column], info: FormatInfo) -> None:
    match info.format:
        case "KAFKA":
            kafka.check(columns)
        case "JSON":
            for column in columns:
                json.check(column)
        case "DELIMITED":
            delimited.check(columns, info)
        case "NONE":
            pass
        case other:
            raise unsupported(other)
