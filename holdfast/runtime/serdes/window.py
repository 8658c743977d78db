"""The keys of windowed topics, as Kafka Streams has them: the key's bytes, then the window's, big-endian.

time windows     key, start
session windows  key, end, start
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime.plan.windows import WindowType


def windowed(key: pa.Array, start: pa.ChunkedArray, end: pa.ChunkedArray, type_: WindowType) -> pa.Array:
    """Keys with their windows behind them."""
    parts = [end, start] if type_ is WindowType.SESSION else [start]
    return pc.binary_join_element_wise(key, *(_big_endian(part) for part in parts), pa.scalar(b"", pa.binary()))


def _big_endian(column: pa.ChunkedArray) -> pa.Array:
    numbers = np.asarray(column.combine_chunks().to_numpy(zero_copy_only=False), dtype=">i8")
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(numbers), [None, pa.py_buffer(numbers.tobytes())])
    return fixed.cast(pa.binary())
