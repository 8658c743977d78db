"""Committed rows to topic records: vectorised, over Arrow, with the reading dialect for texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import Feature, NotYetSupported
from holdfast.runtime.plan.formats import FormatInfo, Formats, SerdeFeature
from holdfast.runtime.plan.presence import given
from holdfast.runtime.plan.windows import WindowType
from holdfast.runtime.serdes import json, kafka
from holdfast.runtime.serdes.window import windowed
from holdfast.runtime.store.port import SqlReader
from holdfast.types import Column, Schema


@dataclass(frozen=True, slots=True)
class Encoder:
    """How rows (`present, k0.., c0.., ts`) become the records of a topic."""

    schema: Schema
    formats: Formats
    window: WindowType | None = None

    def check(self) -> None:
        """Refuse formats and types that could not be written."""
        _check(self.schema.key, self.formats.key_format)
        _check(self.schema.value, self.formats.value_format)

    def encode(self, rows: pa.Table, reader: SqlReader) -> pa.Table:
        """`key, value, timestamp`, in the order of the rows; a row that is not present has a null value."""
        key = self._side(rows, self.schema.key, "k", self.formats.key_format, self._key_unwrapped(), reader)
        if self.window is not None:
            first = len(self.schema.key)
            key = windowed(key, rows.column(f"k{first}"), rows.column(f"k{first + 1}"), self.window)
        value = self._side(rows, self.schema.value, "c", self.formats.value_format, self._value_unwrapped(), reader)
        present = rows.column("present").combine_chunks()
        null = pa.scalar(None, pa.binary())
        return pa.table({"key": key, "value": pc.if_else(present, value, null), "timestamp": rows.column("ts")})

    def _side(
        self,
        rows: pa.Table,
        columns: Sequence[Column],
        prefix: str,
        info: FormatInfo,
        unwrapped: bool,
        reader: SqlReader,
    ) -> pa.Array:
        if not columns or info.format == "NONE":
            return pa.nulls(rows.num_rows, pa.binary())
        if info.format == "KAFKA":
            return kafka.encode(rows.column(f"{prefix}0"), columns[0].type)
        physical = [f"{prefix}{i}" for i in range(len(columns))]
        text = json.encode_sql(columns, physical, unwrapped=unwrapped)
        whole = f"SELECT encode({text}) AS bytes FROM rows"
        encoded = reader.evaluate_over(whole, {"rows": rows}).column("bytes").combine_chunks()
        all_null = pc.invert(pc.is_valid(rows.column(physical[0]).combine_chunks())) if unwrapped else None
        if all_null is not None:
            encoded = pc.if_else(all_null, pa.scalar(None, pa.binary()), encoded.cast(pa.binary()))
        return encoded.cast(pa.binary())

    def _key_unwrapped(self) -> bool:
        features = given(self.formats.key_features) or ()
        return len(self.schema.key) == 1 and SerdeFeature.WRAP_SINGLES not in features

    def _value_unwrapped(self) -> bool:
        return SerdeFeature.UNWRAP_SINGLES in (given(self.formats.value_features) or ())


def _check(columns: Sequence[Column], info: FormatInfo) -> None:
    match info.format:
        case "KAFKA":
            kafka.check(columns)
        case "JSON":
            for column in columns:
                json.check(column.type)
        case "NONE":
            pass
        case other:
            raise NotYetSupported(Feature.FORMAT, other, hint="Use JSON, KAFKA or NONE.")
