"""Records of a topic as lines of text, for PRINT: what their bytes may be is found out from the bytes themselves.

    Key format: KAFKA_STRING
    Value format: JSON or KAFKA_STRING
    rowtime: 2024/01/31 06:00:00.000 Z, key: roof, value: {"degrees":-3.5}, partition: 0

A format is possible as long as every record so far can be read in it; the first possible one is used. When the formats
that are possible change, the first two lines come again.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

Read = Callable[[bytes], str]

PLAUSIBLE_MS = 4_102_444_800_000
"""The year 2100: what ends like a later time is not the start of a window."""


class NotOfFormat(Exception):
    """Bytes that cannot be of a format."""


def _json(raw: bytes) -> str:
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise NotOfFormat from None
    return raw.decode()


def _string(raw: bytes) -> str:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise NotOfFormat from None
    if any(ord(character) < 32 and character not in "\t\n\r" for character in text):
        raise NotOfFormat
    return text


def _packed(form: str) -> Read:
    packed = struct.Struct(form)

    def read(raw: bytes) -> str:
        if len(raw) != packed.size:
            raise NotOfFormat
        return str(packed.unpack(raw)[0])

    return read


def _bytes(raw: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02X}" for byte in raw)


def _windowed(inner: Read) -> Read:
    """A key with the start of its window, in eight bytes, behind it."""

    def read(raw: bytes) -> str:
        if len(raw) <= 8:
            raise NotOfFormat
        return f"[{inner(raw[:-8])}@{_moment(raw[-8:])}/-]"

    return read


def _session(inner: Read) -> Read:
    """A key with the end and the start of its session behind it."""

    def read(raw: bytes) -> str:
        if len(raw) <= 16:
            raise NotOfFormat
        end, start = _moment(raw[-16:-8]), _moment(raw[-8:])
        if end < start:
            raise NotOfFormat
        return f"[{inner(raw[:-16])}@{start}/{end}]"

    return read


def _moment(raw: bytes) -> int:
    found: int = struct.unpack(">q", raw)[0]
    if not 0 <= found < PLAUSIBLE_MS:
        raise NotOfFormat
    return found


PLAIN: Mapping[str, Read] = {
    "JSON": _json,
    "KAFKA_STRING": _string,
    "KAFKA_INT": _packed(">i"),
    "KAFKA_BIGINT": _packed(">q"),
    "KAFKA_DOUBLE": _packed(">d"),
}
"""What may be a text is taken for one: a number of few digits has bytes that no text has."""
WINDOWED: Mapping[str, Read] = {
    f"{kind}({name})": around(PLAIN[name])
    for name in ("KAFKA_STRING", "KAFKA_INT", "KAFKA_BIGINT")
    for kind, around in (("SESSION", _session), ("TUMBLING", _windowed), ("HOPPING", _windowed))
}
UNKNOWN = "UNRECOGNIZED_BYTES"


class Side:
    """The keys or the values that were seen, and the formats that they all can be."""

    def __init__(self, formats: Mapping[str, Read]) -> None:
        self._formats = dict(formats)
        self.seen = False

    @property
    def told(self) -> str:
        if not self.seen:
            return "no data processed"
        return " or ".join(self._formats) or UNKNOWN

    def look(self, raw: bytes | None) -> None:
        """Strike out the formats that a value cannot be of."""
        if raw is not None:
            self.seen = True
            self._formats = {name: read for name, read in self._formats.items() if _fits(read, raw)}

    def text(self, raw: bytes | None) -> str:
        if raw is None:
            return "<null>"
        return next(iter(self._formats.values()), _bytes)(raw)


def _fits(read: Read, raw: bytes) -> bool:
    try:
        read(raw)
    except NotOfFormat:
        return False
    return True


class Printer:
    """Lines of records, of which every `interval`-th is shown, up to `limit` of them."""

    def __init__(self, *, interval: int = 1, limit: int | None = None) -> None:
        self._interval, self._left = interval, limit
        self._count = 0
        self._key, self._value = Side({**PLAIN, **WINDOWED}), Side(PLAIN)
        self._told = ("", "")

    @property
    def done(self) -> bool:
        return self._left == 0

    def lines(self, records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        for record in records:
            if self.done:
                return
            self._key.look(record["key"])
            self._value.look(record["value"])
            self._count += 1
            if (self._count - 1) % self._interval:
                continue
            if self._left is not None:
                self._left -= 1
            formats = (self._key.told, self._value.told)
            if formats != self._told:
                self._told = formats
                yield f"Key format: {formats[0]}"
                yield f"Value format: {formats[1]}"
            yield self._line(record)

    def _line(self, record: Mapping[str, Any]) -> str:
        key, value = self._key.text(record["key"]), self._value.text(record["value"])
        time = _shown_time(record["timestamp"])
        return f"rowtime: {time}, key: {key}, value: {value}, partition: {record['partition']}"


def _shown_time(ms: int | None) -> str:
    if ms is None or ms < 0:
        return "N/A"
    seconds, rest = divmod(ms, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y/%m/%d %H:%M:%S}.{rest:03d} Z"
