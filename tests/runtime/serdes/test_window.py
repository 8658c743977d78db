"""Windowed keys are those of Kafka Streams."""

import pyarrow as pa

from holdfast.runtime.plan.windows import WindowType
from holdfast.runtime.serdes.window import windowed

KEYS, STARTS, ENDS = pa.array([b"a", b""]), pa.chunked_array([[1], [2**40]]), pa.chunked_array([[3, 2**40 + 5]])


def test_a_time_window_is_the_key_and_its_start():
    assert windowed(KEYS, STARTS, ENDS, WindowType.TUMBLING).to_pylist() == [
        b"a" + (1).to_bytes(8, "big"),
        (2**40).to_bytes(8, "big"),
    ]


def test_a_session_is_the_key_its_end_and_its_start():
    assert windowed(KEYS, STARTS, ENDS, WindowType.SESSION).to_pylist() == [
        b"a" + (3).to_bytes(8, "big") + (1).to_bytes(8, "big"),
        (2**40 + 5).to_bytes(8, "big") + (2**40).to_bytes(8, "big"),
    ]
