"""Committed rows to topic records, vectorized over Arrow; text formats are written with SQL of the store's engine."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime import physical_columns as col
from holdfast.runtime.plan.formats import Formats
from holdfast.runtime.plan.windows import WindowInfo, WindowTopic
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.serdes.formats import format_of
from holdfast.runtime.serdes.side import RecordSide, record_sides
from holdfast.runtime.serdes.window import windowed
from holdfast.runtime.store.port import SqlReader
from holdfast.types import Schema


@dataclass(frozen=True, slots=True)
class Encoder:
    """How rows (`present, k0.., c0.., ts`) become the records of a topic. An additional last key holds headers.

    With `window`, the last two keys are its start and end, written in the layout of `window_topic`.
    """

    schema: Schema
    formats: Formats
    window: WindowInfo | None = None
    window_topic: WindowTopic = WindowTopic.TOPIC

    def check(self) -> None:
        """Reject formats and types that cannot be written."""
        for side in record_sides(self.schema, self.formats):
            format_of(side.info).check(side.columns, side.info)

    def decoder(self) -> Decoder:
        """The decoder that reads these records back."""
        return Decoder(self.schema, self.formats, window=self.window, window_topic=self.window_topic)

    def encode(self, rows: pa.Table, reader: SqlReader) -> pa.Table:
        """`key, value, timestamp`, in the order of the rows; a row that is not present has a null value.

        With `headers` when a row has any.
        """
        schema = self.schema
        key_side, value_side = record_sides(schema, self.formats)
        key = _encoded(rows, key_side, reader)
        if len(schema.key) == 1:
            # If the only key column is null, the record has no key; of several key columns, all may be null.
            key = pc.if_else(pc.is_valid(rows.column(col.key(0)).combine_chunks()), key, pa.scalar(None, pa.binary()))
        if self.window is not None:
            first = len(schema.key)
            start, end = (rows.column(col.key(i)) for i in (first, first + 1))
            key = windowed(key, start, end, self.window.type, self.window_topic)
        value = _encoded(rows, value_side, reader)
        present = rows.column(col.PRESENT).combine_chunks()
        null = pa.scalar(None, pa.binary())
        encoded = pa.table(
            {"key": key, "value": pc.if_else(present, value, null), "timestamp": rows.column(col.ROW_TIME)}
        )
        last = col.key(len(schema.key) + (0 if self.window is None else 2))
        return _with_headers(encoded, rows.column(last)) if last in rows.column_names else encoded


def _with_headers(encoded: pa.Table, headers: pa.ChunkedArray) -> pa.Table:
    lists = headers.combine_chunks()
    if not pc.any(pc.greater(pc.list_value_length(lists), 0)).as_py():
        return encoded
    parts = [lists.values.field(i) for i in range(2)]
    named = pa.StructArray.from_arrays(parts, names=["key", "value"])
    return encoded.append_column("headers", pa.ListArray.from_arrays(lists.offsets, named))


def _encoded(rows: pa.Table, side: RecordSide, reader: SqlReader) -> pa.Array:
    """The bytes of one side of each row."""
    if not side.columns:
        return pa.nulls(rows.num_rows, pa.binary())
    return format_of(side.info).encode(rows, side, reader)
