"""PRINT: the records of a topic as lines of text. The formats are guessed from the bytes.

    Key format: KAFKA_STRING
    Value format: JSON or KAFKA_STRING
    rowtime: 2024/01/31 06:00:00.000 Z, key: roof, value: {"degrees":-3.5}, partition: 0

A format is possible as long as it can read every record so far; the first possible one is used. When the possible
formats change, the two header lines are repeated.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

Read = Callable[[bytes], str]

PLAUSIBLE_MS = 4_102_444_800_000
"""The year 2100. A greater value is not taken for a window bound."""


class FormatMismatch(Exception):
    """The bytes do not match the format."""


def _json(raw: bytes) -> str:
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise FormatMismatch from None
    return raw.decode()


def _string(raw: bytes) -> str:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise FormatMismatch from None
    if any(ord(character) < 32 and character not in "\t\n\r" for character in text):
        raise FormatMismatch
    return text


def _packed(struct_format: str) -> Read:
    packed = struct.Struct(struct_format)

    def read(raw: bytes) -> str:
        if len(raw) != packed.size:
            raise FormatMismatch
        return str(packed.unpack(raw)[0])

    return read


def _bytes(raw: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02X}" for byte in raw)


def _windowed(inner: Read) -> Read:
    """A key followed by its window start, in eight bytes."""

    def read(raw: bytes) -> str:
        if len(raw) <= 8:
            raise FormatMismatch
        return f"[{inner(raw[:-8])}@{_timestamp(raw[-8:])}/-]"

    return read


def _session(inner: Read) -> Read:
    """A key followed by the end and the start of its session, eight bytes each."""

    def read(raw: bytes) -> str:
        if len(raw) <= 16:
            raise FormatMismatch
        end, start = _timestamp(raw[-16:-8]), _timestamp(raw[-8:])
        if end < start:
            raise FormatMismatch
        return f"[{inner(raw[:-16])}@{start}/{end}]"

    return read


def _timestamp(raw: bytes) -> int:
    millis: int = struct.unpack(">q", raw)[0]
    if not 0 <= millis < PLAUSIBLE_MS:
        raise FormatMismatch
    return millis


PLAIN: Mapping[str, Read] = {
    "JSON": _json,
    "KAFKA_STRING": _string,
    "KAFKA_INT": _packed(">i"),
    "KAFKA_BIGINT": _packed(">q"),
    "KAFKA_DOUBLE": _packed(">d"),
}
"""In order of preference. Strings come before numbers: the bytes of a small number are not valid in a string."""
WINDOWED: Mapping[str, Read] = {
    f"{kind}({name})": wrap(PLAIN[name])
    for name in ("KAFKA_STRING", "KAFKA_INT", "KAFKA_BIGINT")
    for kind, wrap in (("SESSION", _session), ("TUMBLING", _windowed), ("HOPPING", _windowed))
}
UNKNOWN = "UNRECOGNIZED_BYTES"


class FormatGuess:
    """The formats that fit all keys, or all values, seen so far."""

    def __init__(self, formats: Mapping[str, Read]) -> None:
        self._formats = dict(formats)
        self.seen = False

    @property
    def description(self) -> str:
        if not self.seen:
            return "no data processed"
        return " or ".join(self._formats) or UNKNOWN

    def observe(self, raw: bytes | None) -> None:
        """Rule out the formats that cannot read the value."""
        if raw is not None:
            self.seen = True
            self._formats = {name: read for name, read in self._formats.items() if _can_read(read, raw)}

    def text(self, raw: bytes | None) -> str:
        if raw is None:
            return "<null>"
        return next(iter(self._formats.values()), _bytes)(raw)


def _can_read(read: Read, raw: bytes) -> bool:
    try:
        read(raw)
    except FormatMismatch:
        return False
    return True


class Printer:
    """Shows every `interval`-th record as a line, at most `limit` of them."""

    def __init__(self, *, interval: int = 1, limit: int | None = None) -> None:
        self._interval, self._left = interval, limit
        self._count = 0
        self._key, self._value = FormatGuess({**PLAIN, **WINDOWED}), FormatGuess(PLAIN)
        self._formats = ("", "")

    @property
    def done(self) -> bool:
        return self._left == 0

    def lines(self, records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        for record in records:
            if self.done:
                return
            self._key.observe(record["key"])
            self._value.observe(record["value"])
            self._count += 1
            if (self._count - 1) % self._interval:
                continue
            if self._left is not None:
                self._left -= 1
            formats = (self._key.description, self._value.description)
            if formats != self._formats:
                self._formats = formats
                yield f"Key format: {formats[0]}"
                yield f"Value format: {formats[1]}"
            yield self._line(record)

    def _line(self, record: Mapping[str, Any]) -> str:
        key, value = self._key.text(record["key"]), self._value.text(record["value"])
        time = _format_time(record["timestamp"])
        return f"rowtime: {time}, key: {key}, value: {value}, partition: {record['partition']}"


def _format_time(ms: int | None) -> str:
    if ms is None or ms < 0:
        return "N/A"
    seconds, rest = divmod(ms, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y/%m/%d %H:%M:%S}.{rest:03d} Z"
