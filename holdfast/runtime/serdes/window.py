"""The keys of windowed topics, as Kafka Streams writes them: the key's bytes, then the window's, big-endian.

time windows     key, start (8 bytes)
  in a changelog key, start (8 bytes), sequence number (4 bytes)
session windows  key, end (8 bytes), start (8 bytes), also in a changelog

The size of a time window is not in its key: readers declare it. `window_bytes` has the same layouts for single keys.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import PlanError
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.windows import WindowInfo, WindowTopic, WindowType
from holdfast.runtime.serdes.native import number_sql
from holdfast.runtime.serdes.scalar_text import literal

MAX_TIME = 2**63 - 1
TIME_BYTES = 8
SEQUENCE_BYTES = 4
"""The sequence number is 0 unless a store retains duplicates, as those of stream-stream joins do."""


@dataclass(frozen=True, slots=True)
class WindowedKeySql:
    """The Spark SQL that splits a windowed key into the key and its window; all of it is null for a null key."""

    window: WindowInfo
    topic: WindowTopic = WindowTopic.TOPIC

    @property
    def width(self) -> int:
        """The number of bytes after the key."""
        return suffix_bytes(self.window.type, self.topic)

    def inner(self, raw: str) -> str:
        """The bytes of the key alone; null where `too_short`."""
        return f"IF({self.too_short(raw)}, NULL, substring({raw}, 1, octet_length({raw}) - {self.width}))"

    def bounds(self, raw: str) -> tuple[str, str]:
        """The start and the end of the window; undefined where `too_short`."""
        if self.window.type is WindowType.SESSION:
            return _time(raw, TIME_BYTES), _time(raw, 2 * TIME_BYTES)
        start = _time(raw, self.width)
        return start, end_sql(start, window_size(self.window))

    def sequence(self, raw: str) -> str | None:
        """The sequence number, of which any but 0 says that the window has several values; undefined where `too_short`.

        None if the layout has no sequence numbers.
        """
        if not has_sequence(self.window.type, self.topic):
            return None
        return number_sql("int", raw, SEQUENCE_BYTES)

    def too_short(self, raw: str) -> str:
        """The condition that the key does not have the bytes of a window."""
        return f"octet_length({raw}) < {self.width}"

    def too_short_reason(self, length: str) -> str:
        """Why a key of `length` bytes is too short for this layout."""
        return (
            f"concat('the key has ', {length}, {literal(f' bytes, but {layout_text(self.window.type, self.topic)}')})"
        )


def suffix_bytes(type_: WindowType, topic: WindowTopic = WindowTopic.TOPIC) -> int:
    """The number of bytes that follow the key."""
    bounds = 2 if type_ is WindowType.SESSION else 1
    return bounds * TIME_BYTES + (SEQUENCE_BYTES if has_sequence(type_, topic) else 0)


def has_sequence(type_: WindowType, topic: WindowTopic) -> bool:
    """Whether keys end with a sequence number."""
    return topic is WindowTopic.CHANGELOG and type_ is not WindowType.SESSION


def layout_text(type_: WindowType, topic: WindowTopic) -> str:
    """What keys of a layout end with, for people."""
    width = suffix_bytes(type_, topic)
    if type_ is WindowType.SESSION:
        return f"the key of a session ends with {width}: its end and its start"
    if topic is WindowTopic.CHANGELOG:
        return f"the key in a window store's changelog ends with {width}: the window's start and a sequence number"
    return f"the key in a windowed topic ends with {width}: the window's start"


def window_size(window: WindowInfo) -> int:
    """The size of time windows, in milliseconds."""
    size = value_of(window.size)
    if size is None:
        raise PlanError(
            f"the size of the {window.type} windows is missing",
            detail="The keys of time windows have only their start.",
            hint="Declare it with WINDOW_SIZE.",
        )
    return min(size.millis, MAX_TIME)


def _time(raw: str, from_end: int) -> str:
    """The time whose first byte is `from_end` bytes before the end."""
    return number_sql("long", raw, from_end)


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
    if has_sequence(type_, topic):
        suffix.append(pa.scalar(bytes(SEQUENCE_BYTES)))
    return pc.binary_join_element_wise(key, *suffix, pa.scalar(b"", pa.binary()))


def unwindowed(keys: pa.ChunkedArray, type_: WindowType, topic: WindowTopic = WindowTopic.TOPIC) -> pa.ChunkedArray:
    """Keys without their windows; the partition of a record depends on the key alone."""
    return pc.binary_slice(keys, 0, -suffix_bytes(type_, topic))


def _big_endian(column: pa.ChunkedArray) -> pa.Array:
    numbers = column.fill_null(0).combine_chunks().to_numpy(zero_copy_only=False).astype(">i8")
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(numbers), [None, pa.py_buffer(numbers.tobytes())])
    return fixed.cast(pa.binary())
