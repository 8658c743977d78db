"""Converts records between JSON values and bytes in the formats of their topic."""

import json
import struct
from base64 import b64decode, b64encode
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from holdfast.errors import Feature, NotYetSupported
from holdfast.runtime.plan import json_text
from holdfast.runtime.plan.formats import FormatInfo, Formats, SerdeFeature
from holdfast.runtime.plan.json_text import JsonValue
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.windows import WindowInfo, WindowTopic, WindowType
from holdfast.runtime.serdes.side import value_is_unwrapped
from holdfast.runtime.serdes.window import SEQUENCE_BYTES, has_sequence
from holdfast.testing.case import CaseRecord, Window
from holdfast.types import Column, Scalar, Schema, SqlType, Struct, StructField

PACKED = {Scalar.INTEGER: ">i", Scalar.BIGINT: ">q", Scalar.DOUBLE: ">d"}
TIME_WINDOW, SESSION_WINDOW = struct.Struct(">q"), struct.Struct(">qq")
UNTYPED = Struct(())
"""The type where none is known, such as for a topic without an object."""


class Undecodable(Exception):
    """Bytes do not match the topic's format."""


@dataclass(frozen=True, slots=True)
class WireRecord:
    """A record as stored in its topic."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, str | bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Wire:
    """The format of a topic's records."""

    schema: Schema
    formats: Formats
    window: WindowInfo | None
    window_topic: WindowTopic = WindowTopic.TOPIC

    # -- to bytes ------------------------------------------------------------------------------------

    def write(self, record: CaseRecord) -> WireRecord:
        """The record as a producer would have written it."""
        key = _write(record.key, self.schema.key, self.formats.key_format)
        if record.window is not None and key is not None:
            key += _window_bytes(record.window) + bytes(self._sequence_bytes)
        value = _write(record.value, self.schema.value, self.formats.value_format)
        headers = tuple((header.key, header.value) for header in record.headers)
        return WireRecord(key, value, record.timestamp or 0, headers)

    # -- from bytes ----------------------------------------------------------------------------------

    def key(self, raw: bytes | None) -> tuple[JsonValue, Window | None]:
        """The key as JSON, and its window."""
        if raw is None or self.window is None:
            return _read(raw, self.schema.key, self.formats.key_format), None
        width = SESSION_WINDOW.size if self.window.type is WindowType.SESSION else TIME_WINDOW.size
        if len(raw) < width + self._sequence_bytes:
            raise Undecodable(f"a windowed key of {len(raw)} bytes")
        raw = raw[: len(raw) - self._sequence_bytes]
        inner, bounds = raw[:-width], raw[-width:]
        return _read(inner, self.schema.key, self.formats.key_format), self._window(bounds)

    @property
    def _sequence_bytes(self) -> int:
        """The length of the sequence number that the changelog of a window store has after the window: always 0."""
        numbered = self.window is not None and has_sequence(self.window.type, self.window_topic)
        return SEQUENCE_BYTES if numbered else 0

    def _window(self, raw: bytes) -> Window:
        assert self.window is not None
        if self.window.type is WindowType.SESSION:
            end, start = SESSION_WINDOW.unpack(raw)
            return Window(start, end, session=True)
        (start,) = TIME_WINDOW.unpack(raw)
        size = value_of(self.window.size)
        return Window(start, start + (size.millis if size else 0), session=False)

    def value(self, raw: bytes | None) -> JsonValue:
        read: JsonValue = _read(raw, self.schema.value, self.formats.value_format)
        return read

    # -- types ---------------------------------------------------------------------------------------

    @property
    def key_type(self) -> SqlType:
        features = value_of(self.formats.key_features) or ()
        return _type(self.schema.key, unwrapped=SerdeFeature.WRAP_SINGLES not in features)

    @property
    def value_type(self) -> SqlType:
        single = self.formats.value_format.format == "KAFKA" or value_is_unwrapped(self.formats)
        return _type(self.schema.value, unwrapped=single)


def _type(columns: tuple[Column, ...], *, unwrapped: bool) -> SqlType:
    if len(columns) == 1 and unwrapped:
        return columns[0].type
    return Struct(tuple(StructField(column.name, column.type) for column in columns))


def _window_bytes(window: Window) -> bytes:
    return SESSION_WINDOW.pack(window.end, window.start) if window.session else TIME_WINDOW.pack(window.start)


def _write(value: JsonValue, columns: tuple[Column, ...], info: FormatInfo) -> bytes | None:
    if value is None or info.format == "NONE":
        return None
    match info.format:
        case "JSON":
            return json_text.write(value)
        case "DELIMITED":
            return _text(value).encode()
        case "KAFKA":
            return _kafka_bytes(value, columns[0].type if columns else Scalar.STRING)
        case other:
            raise NotYetSupported(Feature.FORMAT, other)


def _kafka_bytes(value: JsonValue, type_: SqlType) -> bytes:
    if isinstance(type_, Scalar) and type_ in PACKED:
        number = float(_text(value)) if type_ is Scalar.DOUBLE else int(_text(value))
        return struct.pack(PACKED[type_], number)
    return b64decode(_text(value)) if type_ is Scalar.BYTES else _text(value).encode()


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json_text.write(value).decode()


def _read(raw: bytes | None, columns: tuple[Column, ...], info: FormatInfo) -> Any:
    if raw is None:
        return None
    try:
        match info.format:
            case "JSON":
                return json.loads(raw, parse_float=Decimal)
            case "KAFKA":
                return _kafka_value(raw, columns[0].type if columns else Scalar.STRING)
            case _:
                return raw.decode()
    except (ValueError, struct.error) as problem:
        raise Undecodable(f"{raw!r} is not {info.format}: {problem}") from None


def _kafka_value(raw: bytes, type_: SqlType) -> JsonValue:
    if isinstance(type_, Scalar) and type_ in PACKED:
        (number,) = struct.unpack(PACKED[type_], raw)
        return Decimal(repr(number)) if type_ is Scalar.DOUBLE else int(number)
    return b64encode(raw).decode() if type_ is Scalar.BYTES else raw.decode()
