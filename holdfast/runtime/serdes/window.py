"""The keys of windowed topics, as Kafka Streams writes them: the key's bytes, then the window's, big-endian.

time windows     key, start
session windows  key, end, start
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.windows import WindowInfo, WindowType
from holdfast.runtime.serdes import kafka
from holdfast.types import Scalar

MAX_TIME = 2**63 - 1


@dataclass(frozen=True, slots=True)
class WindowedKey:
    """The Spark SQL that splits a windowed key into the key and its window."""

    window: WindowInfo

    @property
    def width(self) -> int:
        """The number of bytes of the window."""
        return 16 if self.window.type is WindowType.SESSION else 8

    def inner(self, raw: str) -> str:
        """The bytes of the key alone; null where `corrupt`."""
        return f"IF({self.corrupt(raw)}, NULL, substring({raw}, 1, octet_length({raw}) - {self.width}))"

    def bounds(self, raw: str) -> tuple[str, str]:
        """The start and the end of the window; undefined where `corrupt`."""
        start = kafka.decode_sql(f"substring({raw}, -8)", Scalar.BIGINT)
        size = value_of(self.window.size)
        if size is not None:
            return start, end_sql(start, size.millis)
        return start, kafka.decode_sql(f"substring({raw}, -16, 8)", Scalar.BIGINT)

    def corrupt(self, raw: str) -> str:
        return f"octet_length({raw}) < {self.width}"


def end_sql(start: str, size: int) -> str:
    """The end of a time window, capped at the greatest time."""
    return f"IF({start} > {MAX_TIME - size}L, {MAX_TIME}L, {start} + {size}L)"


def windowed(key: pa.Array, start: pa.ChunkedArray, end: pa.ChunkedArray, type_: WindowType) -> pa.Array:
    """Keys followed by their windows; a null key stays null."""
    parts = [end, start] if type_ is WindowType.SESSION else [start]
    return pc.binary_join_element_wise(key, *(_big_endian(part) for part in parts), pa.scalar(b"", pa.binary()))


def unwindowed(keys: pa.ChunkedArray, type_: WindowType) -> pa.ChunkedArray:
    """Keys without their windows; the partition of a record depends on the key alone."""
    return pc.binary_slice(keys, 0, -16 if type_ is WindowType.SESSION else -8)


def _big_endian(column: pa.ChunkedArray) -> pa.Array:
    numbers = column.fill_null(0).combine_chunks().to_numpy(zero_copy_only=False).astype(">i8")
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(numbers), [None, pa.py_buffer(numbers.tobytes())])
    return fixed.cast(pa.binary())
