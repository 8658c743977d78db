"""Kafka's own serializers, byte by byte."""

import math
import struct

import pytest

from holdfast.errors import NotSupported
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.runtime.spark.engine import LOCAL_ROWS
from holdfast.types import Scalar

from .round_trip import array, decode, encode, formats, values_of

KAFKA = formats("NONE", "KAFKA")
INTEGERS = [0, 1, -1, 255, 256, 2**31 - 1, -(2**31)]
LONGS = [0, 1, -1, 2**32, -(2**32), 2**63 - 1, -(2**63)]
DOUBLES = [
    0.0, -0.0, 1.0, -1.5, 0.1, math.pi, 5e-324, -5e-324, 2.225073858507201e-308, 2.2250738585072014e-308,
    1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan,
]  # fmt: skip
TEXTS = ["", "text", " ", "é日本😀", "\x00\n", "null"]
VALUES = {
    Scalar.INTEGER: [(struct.pack(">i", n), n) for n in INTEGERS],
    Scalar.BIGINT: [(struct.pack(">q", n), n) for n in LONGS],
    Scalar.DOUBLE: [(struct.pack(">d", n), n) for n in DOUBLES],
    Scalar.STRING: [(text.encode(), text) for text in TEXTS],
    Scalar.BYTES: [(raw, raw) for raw in (b"", bytes(range(256)))],
}
WRONG = {
    Scalar.INTEGER: [b"", b"\x00", b"\x00" * 3, b"\x00" * 5, b"\x00" * 8],
    Scalar.BIGINT: [b"", b"\x00" * 4, b"\x00" * 7, b"\x00" * 9],
    Scalar.DOUBLE: [b"", b"\x00" * 4, b"\x00" * 16],
    Scalar.STRING: [b"\xff", b"\xc3", b"\xed\xa0\x80", b"a\x80b"],
    Scalar.BYTES: [],
}


def exactly(values: list) -> list:
    """Values by their text, so that -0.0 is not 0.0 and NaN is itself."""
    return [repr(value) for value in values]


@pytest.mark.parametrize("type_", list(VALUES))
def test_bytes_are_read_and_written_exactly(type_, engine, reader):
    schema = values_of(A=type_)
    raw, values = zip(*VALUES[type_], strict=True)
    rows = decode(engine, Decoder(schema, KAFKA), [*raw, None, *WRONG[type_]])
    expected = [0] * (len(raw) + 1) + [1] * len(WRONG[type_])
    assert rows.column("bad").to_pylist() == expected
    found = rows.column("c0").to_pylist()
    assert exactly(found) == exactly([*values, None, *(None for _ in WRONG[type_])])
    encoded = encode(reader, Encoder(schema, KAFKA), c0=array([*values, None], type_))
    assert encoded.column("value").to_pylist() == [*raw, None]


@pytest.mark.parametrize("type_", list(VALUES))
def test_generated_code_reads_the_same(type_, engine):
    """More rows than this run with generated code."""
    raw, values = zip(*[*VALUES[type_], (None, None), *((wrong, None) for wrong in WRONG[type_])], strict=True)
    times = LOCAL_ROWS // len(raw) + 1
    rows = decode(engine, Decoder(values_of(A=type_), KAFKA), [*raw] * times)
    assert exactly(rows.column("c0").to_pylist()) == exactly([*values] * times)


def test_every_nan_is_read_as_nan(engine):
    quiet, loud, negative = b"\x7f\xf8" + b"\x00" * 6, b"\x7f\xf0" + b"\x00" * 5 + b"\x01", b"\xff\xf8" + b"\x00" * 6
    rows = decode(engine, Decoder(values_of(A=Scalar.DOUBLE), KAFKA), [quiet, loud, negative])
    assert all(math.isnan(value) for value in rows.column("c0").to_pylist())


@pytest.mark.parametrize("type_", [Scalar.BOOLEAN, Scalar.DATE, Scalar.TIMESTAMP])
def test_other_types_are_refused(type_):
    with pytest.raises(NotSupported, match="the KAFKA format cannot hold column"):
        Encoder(values_of(A=type_), KAFKA).check()


def test_several_columns_are_refused():
    with pytest.raises(NotSupported, match="the KAFKA format supports only a single column"):
        Decoder(values_of(A=Scalar.INTEGER, B=Scalar.INTEGER), KAFKA).sql("records")
