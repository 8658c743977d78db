"""Records of topics as Python values, for tests of topologies."""

import csv
import io
import json
import struct
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from holdfast import types as sql
from holdfast.catalog.objects import CatalogObject, Table
from holdfast.client.stores.windowed import EPOCH, Window, Windowed
from holdfast.errors import TopologyError
from holdfast.runtime import physical_columns as physical
from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.plan.formats import FormatInfo
from holdfast.runtime.plan.windows import WindowTopic
from holdfast.runtime.serdes.delimited.dialect import delimiter
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.runtime.serdes.side import value_is_unwrapped
from holdfast.runtime.serdes.window_bytes import WindowedKeyCodec
from holdfast.runtime.store.port import SqlReader
from holdfast.testing.wire import PACKED, WireRecord
from holdfast.types import Column, SqlType


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A record with Python values. A key with a window is `Windowed`; a value of several columns is a dictionary."""

    key: Any
    value: Any
    timestamp: int = 0


@dataclass(frozen=True, slots=True)
class TopicCodec:
    """Encodes and decodes the records of the topic of an object, in its formats."""

    of: CatalogObject

    # -- to bytes

    def encode(self, record: TopicRecord, reader: SqlReader) -> WireRecord:
        """The record as a producer would have written it."""
        schema = self.of.schema
        key, bounds = self._parts(record.key)
        keys = cells(key, schema.key, single=len(schema.key) == 1, of=self.of.name)
        single = len(schema.value) == 1 and self._is_bare
        values = [None] * len(schema.value)
        if record.value is not None:
            values = cells(record.value, schema.value, single=single, of=self.of.name)
        columns = _arrays(keys, schema.key, physical.key) | _arrays(values, schema.value, physical.value)
        columns |= {physical.key(len(keys) + i): pa.array([bound], pa.int64()) for i, bound in enumerate(bounds)}
        columns[physical.ROW_TIME] = pa.array([record.timestamp], pa.int64())
        columns[physical.PRESENT] = pa.array([record.value is not None])
        encoder = Encoder(schema, self.of.formats, self.of.window, self._layout)
        (row,) = encoder.encode(pa.table(columns), reader).to_pylist()
        return WireRecord(row["key"], row["value"], record.timestamp)

    def _parts(self, key: Any) -> tuple[Any, tuple[int, ...]]:
        """The raw key and the bounds of its window."""
        if self.of.window is None:
            return key, ()
        if not isinstance(key, Windowed):
            raise TopologyError(
                f'the keys of topic "{self.of.topic}" have windows',
                hint="Write Windowed(key, Window(start, end)), with times in milliseconds.",
            )
        return key.key, (key.window.start, key.window.end)

    @property
    def _layout(self) -> WindowTopic:
        store = self.of.window_store if isinstance(self.of, Table) else None
        return WindowTopic.TOPIC if store is None else store.topic

    # -- from bytes

    def decode(self, record: WireRecord) -> TopicRecord:
        schema, formats = self.of.schema, self.of.formats
        raw, window = record.key, None
        if self.of.window is not None:
            parts = WindowedKeyCodec(self.of.window, self._layout).decode(raw)
            if parts is not None:
                raw, window = parts.key, Window(parts.start, parts.end)
        single = len(schema.key) == 1
        key = None if raw is None else _read(raw, schema.key, formats.key_format, bare=single)
        key = key if single or key is None else tuple(key.values())
        value = None if record.value is None else _read(record.value, schema.value, formats.value_format, self._is_bare)
        return TopicRecord(key if window is None else Windowed(key, window), value, record.timestamp)

    @property
    def _is_bare(self) -> bool:
        """Whether a value is that of its only column."""
        formats = self.of.formats
        return formats.value_format.format == "KAFKA" or value_is_unwrapped(formats)


def cells(row: Any, columns: Sequence[Column], *, single: bool, of: str) -> list[Any]:
    """The values of columns: one value, a tuple, or a mapping or dataclass by name."""
    if single:
        return [row]
    if isinstance(row, tuple | list):
        return list(row)
    named = asdict(row) if is_dataclass(row) and not isinstance(row, type) else row
    if not isinstance(named, Mapping):
        raise TopologyError(f'{row!r} is not a row of "{of}"', hint="Write a dictionary by column name.")
    by_name = {name.upper(): each for name, each in named.items()}
    unknown = by_name.keys() - {column.name.upper() for column in columns}
    if unknown:
        known = ", ".join(column.name for column in columns)
        raise TopologyError(f'"{of}" has no column {sorted(unknown)[0]}', hint=f"Its columns are: {known}.")
    return [by_name.get(column.name.upper()) for column in columns]


# ---- Arrow


def _arrays(values: Sequence[Any], columns: Sequence[Column], name: Callable[[int], str]) -> dict[str, pa.Array]:
    """A row of one side, as columns."""
    return {
        name(i): pa.array([_physical(value, column.type)], arrow_type(column.type))
        for i, (value, column) in enumerate(zip(values, columns, strict=True))
    }


def _physical(value: Any, type_: SqlType) -> Any:
    """A value with the positional fields of the engines."""
    match type_:
        case _ if value is None:
            return None
        case sql.Struct(fields):
            parts = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
            return {f"f{i}": _physical(parts.get(each.name), each.type) for i, each in enumerate(fields)}
        case sql.Array(element):
            return [_physical(each, element) for each in value]
        case sql.Map(_, inner):
            return [(name, _physical(each, inner)) for name, each in value.items()]
        case sql.Scalar.TIME:
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000 + value.microsecond // 1_000
        case sql.Scalar.TIMESTAMP if value.tzinfo is not None:
            return value.astimezone(UTC).replace(tzinfo=None)
        case _:
            return value


# ---- bytes


def _read(raw: bytes, columns: Sequence[Column], info: FormatInfo, bare: bool) -> Any:
    """A value, or a dictionary by column name."""
    match info.format:
        case "KAFKA":
            return _kafka(raw, columns[0].type)
        case "JSON":
            found = json.loads(raw, parse_float=Decimal)
            if bare:
                return _from_json(found, columns[0].type)
            return {column.name: _from_json(found.get(column.name), column.type) for column in columns}
        case "DELIMITED":
            (line,) = csv.reader(io.StringIO(raw.decode()), delimiter=delimiter(info))
            row = {c.name: _from_text(text, c.type) for c, text in zip(columns, line, strict=True)}
            return row[columns[0].name] if bare else row
        case other:
            raise TopologyError(f"records of the format {other} cannot be read here")


def _kafka(raw: bytes, type_: SqlType) -> Any:
    if isinstance(type_, sql.Scalar) and type_ in PACKED:
        (number,) = struct.unpack(PACKED[type_], raw)
        return number
    return raw if type_ is sql.Scalar.BYTES else raw.decode()


def _from_text(text: str, type_: SqlType) -> Any:
    match type_:
        case _ if text == "":
            return None
        case sql.Scalar.STRING | sql.Scalar.BYTES:
            return _from_json(text, type_)
        case sql.Scalar.BOOLEAN:
            return text == "true"
        case _:
            return _from_json(Decimal(text), type_)


def _from_json(value: Any, type_: SqlType) -> Any:
    match type_:
        case _ if value is None:
            return None
        case sql.Scalar.INTEGER | sql.Scalar.BIGINT:
            return int(value)
        case sql.Scalar.DOUBLE:
            return float(value)
        case sql.Scalar.BYTES:
            return b64decode(value)
        case sql.Scalar.DATE:
            return date(1970, 1, 1) + timedelta(days=int(value))
        case sql.Scalar.TIME:
            return (EPOCH + timedelta(milliseconds=int(value))).time()
        case sql.Scalar.TIMESTAMP:
            return EPOCH + timedelta(milliseconds=int(value))
        case sql.Decimal(_, scale):
            return Decimal(value).quantize(Decimal(1).scaleb(-scale))
        case sql.Array(element):
            return [_from_json(each, element) for each in value]
        case sql.Map(_, inner):
            return {name: _from_json(each, inner) for name, each in value.items()}
        case sql.Struct(fields):
            return {each.name: _from_json(value.get(each.name), each.type) for each in fields}
        case _:
            return value
