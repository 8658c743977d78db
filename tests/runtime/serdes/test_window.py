"""Windowed keys are those of Kafka Streams, in columns: written by Arrow, read by Spark."""

from decimal import Decimal

import pyarrow as pa
import pytest

from holdfast.errors import PlanError
from holdfast.runtime.plan.windows import Duration, WindowInfo, WindowTopic, WindowType
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.runtime.serdes.window import MAX_TIME, unwindowed, windowed
from holdfast.types import Column, Role, Scalar, Schema

from .round_trip import array, decode, encode, formats

KEYS, STARTS, ENDS = pa.array([b"a", b""]), pa.chunked_array([[1], [2**40]]), pa.chunked_array([[3, 2**40 + 5]])
SCHEMA = Schema((Column("K", Scalar.STRING, Role.KEY), Column("V", Scalar.STRING)))
BOTH = formats("KAFKA", "KAFKA")
TIME, SESSION = WindowType.TUMBLING, WindowType.SESSION
HOUR = 3_600_000


def window(type_: WindowType, millis: int = HOUR) -> WindowInfo:
    if type_ is SESSION:
        return WindowInfo(type=type_)
    return WindowInfo(type=type_, size=Duration(Decimal(millis).scaleb(-3)))


@pytest.mark.parametrize("type_", [WindowType.TUMBLING, WindowType.HOPPING])
def test_a_time_window_is_the_key_and_its_start(type_):
    assert windowed(KEYS, STARTS, ENDS, type_).to_pylist() == [
        b"a" + (1).to_bytes(8, "big"),
        (2**40).to_bytes(8, "big"),
    ]


@pytest.mark.parametrize("type_", [WindowType.TUMBLING, WindowType.HOPPING])
def test_in_a_changelog_a_time_window_also_has_a_sequence_number(type_):
    assert windowed(KEYS, STARTS, ENDS, type_, WindowTopic.CHANGELOG).to_pylist() == [
        b"a" + (1).to_bytes(8, "big") + bytes(4),
        (2**40).to_bytes(8, "big") + bytes(4),
    ]


@pytest.mark.parametrize("topic", WindowTopic)
def test_a_session_is_the_key_its_end_and_its_start(topic):
    assert windowed(KEYS, STARTS, ENDS, SESSION, topic).to_pylist() == [
        b"a" + (3).to_bytes(8, "big") + (1).to_bytes(8, "big"),
        (2**40 + 5).to_bytes(8, "big") + (2**40).to_bytes(8, "big"),
    ]


def test_no_key_has_no_window():
    times = pa.chunked_array([pa.array([1, None], pa.int64())])
    assert windowed(pa.array([None, None], pa.binary()), times, times, TIME).to_pylist() == [None, None]


@pytest.mark.parametrize("topic", WindowTopic)
@pytest.mark.parametrize("type_", WindowType)
def test_the_key_alone_is_what_precedes_the_window(type_, topic):
    keys = windowed(KEYS, STARTS, ENDS, type_, topic)
    assert unwindowed(pa.chunked_array([keys]), type_, topic).to_pylist() == KEYS.to_pylist()


@pytest.mark.parametrize(
    ("type_", "topic", "suffix", "bounds"),
    [
        (TIME, WindowTopic.TOPIC, "0000000000000000", (0, HOUR)),
        (TIME, WindowTopic.TOPIC, "000001a1dfb714c0", (1794754680000, 1794754680000 + HOUR)),
        (TIME, WindowTopic.TOPIC, "fffffffffffffff6", (-10, HOUR - 10)),
        (TIME, WindowTopic.TOPIC, "7fffffffffc91180", (MAX_TIME - HOUR + 1, MAX_TIME)),
        (TIME, WindowTopic.TOPIC, "7fffffffffffffff", (MAX_TIME, MAX_TIME)),
        (TIME, WindowTopic.TOPIC, "8000000000000000", (-MAX_TIME - 1, HOUR - MAX_TIME - 1)),
        (TIME, WindowTopic.CHANGELOG, "000001a1dfb714c000000000", (1794754680000, 1794754680000 + HOUR)),
        (TIME, WindowTopic.CHANGELOG, "7fffffffffffffff00000000", (MAX_TIME, MAX_TIME)),
        (SESSION, WindowTopic.TOPIC, "00000000000000090000000000000004", (4, 9)),
        (SESSION, WindowTopic.TOPIC, "00000000000000040000000000000004", (4, 4)),
        (SESSION, WindowTopic.CHANGELOG, "7ffffffffffffffffffffffffffffff6", (-10, MAX_TIME)),
    ],
)
@pytest.mark.parametrize("key", ["", "k", "grün", "\0" * 12])
def test_a_key_has_the_window_at_its_end(key, type_, topic, suffix, bounds, engine):
    decoder = Decoder(SCHEMA, BOTH, keyed=True, window=window(type_), window_topic=topic)
    rows = decode(engine, decoder, [b"v"], [key.encode() + bytes.fromhex(suffix)])
    assert [rows.column(name)[0].as_py() for name in ("bad", "k0", "k1", "k2", "c0")] == [0, key, *bounds, "v"]


def test_the_end_of_the_greatest_window_is_the_greatest_time(engine):
    size = window(TIME, 2**64)
    rows = decode(engine, Decoder(SCHEMA, BOTH, window=size), [b"v", b"v"], [bytes(8), bytes(7) + b"\x01"])
    assert rows.column("k2").to_pylist() == [MAX_TIME, MAX_TIME]


@pytest.mark.parametrize("topic", WindowTopic)
@pytest.mark.parametrize("type_", WindowType)
def test_a_record_of_a_stream_without_a_key_has_no_window(type_, topic, engine):
    rows = decode(engine, Decoder(SCHEMA, BOTH, window=window(type_), window_topic=topic), [b"v"], [None])
    assert rows.select(["bad", "k0", "k1", "k2"]).to_pylist() == [{"bad": 0, "k0": None, "k1": None, "k2": None}]


@pytest.mark.parametrize("topic", WindowTopic)
@pytest.mark.parametrize("type_", WindowType)
def test_an_encoder_writes_what_its_decoder_reads(type_, topic, engine, reader):
    encoder = Encoder(SCHEMA, BOTH, window(type_), topic)
    starts = [0, 1_700_000_000_000]
    ends = [start + HOUR for start in starts]
    columns = {"k0": array(["a", "bc"], Scalar.STRING), "c0": array(["x", None], Scalar.STRING)}
    columns |= {"k1": array(starts, Scalar.BIGINT), "k2": array(ends, Scalar.BIGINT)}
    written = encode(reader, encoder, **columns)
    keys, values = (written.column(name).to_pylist() for name in ("key", "value"))
    rows = decode(engine, encoder.decoder(), values, keys)
    assert rows.column("bad").to_pylist() == [0, 0]
    assert [rows.column(name).to_pylist() for name in ("k0", "k1", "k2")] == [["a", "bc"], starts, ends]


def test_the_size_of_time_windows_is_needed_to_read_them():
    for type_ in (WindowType.TUMBLING, WindowType.HOPPING):
        with pytest.raises(PlanError, match=f"the size of the {type_} windows is missing"):
            Decoder(SCHEMA, BOTH, window=WindowInfo(type=type_)).check()
    Decoder(SCHEMA, BOTH, window=WindowInfo(type=SESSION)).check()
