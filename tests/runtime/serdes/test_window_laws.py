"""Three ways to read and write windowed keys, single ones, Arrow's and Spark's, agree in every format of keys."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import slow_law

from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, Formats
from holdfast.runtime.plan.windows import Duration, WindowInfo, WindowTopic, WindowType
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.runtime.serdes.window import MAX_TIME, unwindowed
from holdfast.runtime.serdes.window_bytes import WindowBytes, WindowedKeyCodec
from holdfast.types import Column, Role, Scalar, Schema, SqlType

from .round_trip import array, decode, encode

pytestmark = pytest.mark.law

VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    Scalar.INTEGER: st.integers(-(2**31), 2**31 - 1),
    Scalar.BIGINT: st.integers(-(2**63), 2**63 - 1),
    Scalar.DOUBLE: st.floats(allow_nan=False),
    Scalar.STRING: st.text('ab,"|é\0\N{GRINNING FACE}', min_size=1, max_size=6),
    Scalar.BYTES: st.binary(min_size=1, max_size=20),
}
FORMATS = {
    **{f"KAFKA {type_}": ("KAFKA", FormatProperties(), (type_,)) for type_ in VALUES},
    "JSON": ("JSON", FormatProperties(), (Scalar.STRING,)),
    "JSON of two": ("JSON", FormatProperties(), (Scalar.BIGINT, Scalar.STRING)),
    "DELIMITED": ("DELIMITED", FormatProperties(), (Scalar.STRING,)),
    "DELIMITED of two": ("DELIMITED", FormatProperties(delimiter="|"), (Scalar.BIGINT, Scalar.STRING)),
}
LAYOUTS = {
    "topic": (WindowType.TUMBLING, WindowTopic.TOPIC),
    "changelog": (WindowType.HOPPING, WindowTopic.CHANGELOG),
    "session": (WindowType.SESSION, WindowTopic.TOPIC),
}
SIZES = st.sampled_from([1, 60_000, 2**62])
TIMES = st.one_of(st.integers(0, 2**41), st.integers(-(2**63), MAX_TIME))


def window_of(type_: WindowType, size: int) -> WindowInfo:
    if type_ is WindowType.SESSION:
        return WindowInfo(type=type_)
    return WindowInfo(type=type_, size=Duration(Decimal(size).scaleb(-3)))


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("layout", LAYOUTS)
@slow_law(2)
@given(st.data())
def test_all_ways_to_read_and_write_a_key_agree(layout, format_, engine, reader, data):
    (type_, topic), (name, properties, types) = LAYOUTS[layout], FORMATS[format_]
    window = window_of(type_, size := data.draw(SIZES))
    rows = data.draw(st.lists(st.tuples(*(VALUES[t] for t in types), TIMES, TIMES), min_size=1, max_size=30))
    *keys, starts, ends = ([row[i] for row in rows] for i in range(len(types) + 2))
    if type_ is not WindowType.SESSION:
        ends = [min(start + size, MAX_TIME) for start in starts]
    schema = Schema((*(Column(f"K{i}", t, Role.KEY) for i, t in enumerate(types)), Column("V", Scalar.STRING)))
    info = FormatInfo(format=name, properties=properties)
    formats = Formats(key_format=info, value_format=FormatInfo(format="KAFKA", properties=FormatProperties()))
    columns = {f"k{i}": array(values, t) for i, (values, t) in enumerate(zip(keys, types, strict=True))}
    columns["c0"] = array(["v"] * len(rows), Scalar.STRING)
    inner = encode(reader, Encoder(schema, formats), **columns).column("key")
    single, encoder = WindowedKeyCodec(window, topic), Encoder(schema, formats, window, topic)
    parts = [WindowBytes(*each) for each in zip(inner.to_pylist(), starts, ends, strict=True)]

    columns |= {f"k{len(types) + i}": array(times, Scalar.BIGINT) for i, times in enumerate((starts, ends))}
    written = encode(reader, encoder, **columns)
    raw = written.column("key").to_pylist()
    assert raw == [single.encode(each) for each in parts]
    assert [single.decode(key) for key in raw] == parts
    assert unwindowed(written.column("key"), type_, topic).to_pylist() == inner.to_pylist()
    read = decode(engine, encoder.decoder(), written.column("value").to_pylist(), raw)
    assert read.column("bad").to_pylist() == [0] * len(rows)
    assert [read.column(f"k{i}").to_pylist() for i in range(len(types) + 2)] == [*keys, starts, ends]
