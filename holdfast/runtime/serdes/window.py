"""The keys of windowed topics, as Kafka Streams writes them: the key's bytes, then the window's, big-endian.

time windows     key, start (8 bytes)
  in a changelog key, start (8 bytes), sequence number (4 bytes)
session windows  key, end (8 bytes), start (8 bytes), also in a changelog
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.windows import WindowInfo, WindowTopic, WindowType
from holdfast.runtime.serdes import kafka
from holdfast.types import Scalar

MAX_TIME = 2**63 - 1


TIME_BYTES = 8
SEQUENCE_BYTES = 4
"""The sequence number is 0 unless a store retains duplicates, as those of stream-stream joins do."""


@dataclass(frozen=True, slots=True)
class WindowedKey:
    """The Spark SQL that splits a windowed key into the key and its window."""

    window: WindowInfo
    topic: WindowTopic = WindowTopic.TOPIC

    @property
    def width(self) -> int:
        """The number of bytes after the key."""
        return suffix_bytes(self.window.type, self.topic)

    def inner(self, raw: str) -> str:
        """The bytes of the key alone; null where `corrupt`."""
        return f"IF({self.corrupt(raw)}, NULL, substring({raw}, 1, octet_length({raw}) - {self.width}))"

    def bounds(self, raw: str) -> tuple[str, str]:
        """The start and the end of the window; undefined where `corrupt`."""
        size = value_of(self.window.size)
        if size is None:
            return _time(raw, TIME_BYTES), _time(raw, 2 * TIME_BYTES)
        start = _time(raw, self.width)
        return start, end_sql(start, size.millis)

    def corrupt(self, raw: str) -> str:
        """The condition that the key is too short to end with a window."""
        return f"octet_length({raw}) < {self.width}"

    def duplicate(self, raw: str) -> str | None:
        """The condition that a key has a sequence number, so that its window has several values; None if it never has.

        False where `corrupt`.
        """
        if not _has_sequence(self.window.type, self.topic):
            return None
        return f"(octet_length({raw}) >= {self.width} AND substring({raw}, -{SEQUENCE_BYTES}) <> X'00000000')"


def suffix_bytes(type_: WindowType, topic: WindowTopic = WindowTopic.TOPIC) -> int:
    """The number of bytes that follow the key."""
    bounds = 2 if type_ is WindowType.SESSION else 1
    return bounds * TIME_BYTES + (SEQUENCE_BYTES if _has_sequence(type_, topic) else 0)


def _has_sequence(type_: WindowType, topic: WindowTopic) -> bool:
    return topic is WindowTopic.CHANGELOG and type_ is not WindowType.SESSION


def _time(raw: str, from_end: int) -> str:
    """The time whose first byte is `from_end` bytes before the end."""
    return kafka.decode_sql(f"substring({raw}, -{from_end}, {TIME_BYTES})", Scalar.BIGINT)


def end_sql(start: str, size: int) -> str:
    """The end of a time window, capped at the greatest time."""
    return f"IF({start} > {MAX_TIME - size}L, {MAX_TIME}L, {start} + {size}L)"


def windowed(
    key: pa.Array,
    start: pa.ChunkedArray,
    end: pa.ChunkedArray,
    type_: WindowType,
    topic: WindowTopic = WindowTopic.TOPIC,
) -> pa.Array:
    """Keys followed by their windows; a null key stays null. Sequence numbers are 0."""
    parts = [end, start] if type_ is WindowType.SESSION else [start]
    suffix = [*map(_big_endian, parts)]
    if _has_sequence(type_, topic):
        suffix.append(pa.scalar(bytes(SEQUENCE_BYTES)))
    return pc.binary_join_element_wise(key, *suffix, pa.scalar(b"", pa.binary()))


def unwindowed(keys: pa.ChunkedArray, type_: WindowType, topic: WindowTopic = WindowTopic.TOPIC) -> pa.ChunkedArray:
    """Keys without their windows; the partition of a record depends on the key alone."""
    return pc.binary_slice(keys, 0, -suffix_bytes(type_, topic))


def _big_endian(column: pa.ChunkedArray) -> pa.Array:
    numbers = column.fill_null(0).combine_chunks().to_numpy(zero_copy_only=False).astype(">i8")
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(numbers), [None, pa.py_buffer(numbers.tobytes())])
    return fixed.cast(pa.binary())
