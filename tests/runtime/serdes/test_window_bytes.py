"""Single windowed keys, byte by byte."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import PlanError
from holdfast.runtime.plan.windows import Duration, WindowInfo, WindowTopic, WindowType
from holdfast.runtime.serdes.window_bytes import WindowBytes, WindowedKeyCodec

MAX_TIME = 2**63 - 1
MINUTE = WindowInfo(type=WindowType.TUMBLING, size=Duration(Decimal(60)))
SESSION = WindowInfo(type=WindowType.SESSION)
TOPIC, CHANGELOG = WindowedKeyCodec(MINUTE), WindowedKeyCodec(MINUTE, WindowTopic.CHANGELOG)
SESSIONS = WindowedKeyCodec(SESSION)
LAYOUTS = {"topic": TOPIC, "changelog": CHANGELOG, "session": SESSIONS}
WRITTEN = [
    (TOPIC, "", WindowBytes(b"", 0, 60_000), "0000000000000000"),
    (TOPIC, "pear", WindowBytes(b"pear", 1, 60_001), "0000000000000001"),
    (TOPIC, "pear", WindowBytes(b"pear", 2**40, 2**40 + 60_000), "0000010000000000"),
    (TOPIC, "", WindowBytes(b"", -1, 59_999), "ffffffffffffffff"),
    (TOPIC, "pear", WindowBytes(b"pear", MAX_TIME - 60_000, MAX_TIME), "7fffffffffff159f"),
    (TOPIC, "pear", WindowBytes(b"pear", MAX_TIME - 59_999, MAX_TIME), "7fffffffffff15a0"),
    (CHANGELOG, "", WindowBytes(b"", 0, 60_000), "000000000000000000000000"),
    (CHANGELOG, "fig", WindowBytes(b"fig", 258, 60_258, 0), "000000000000010200000000"),
    (CHANGELOG, "fig", WindowBytes(b"fig", 258, 60_258, 7), "000000000000010200000007"),
    (CHANGELOG, "fig", WindowBytes(b"fig", 258, 60_258, 2**31 - 1), "00000000000001027fffffff"),
    (SESSIONS, "", WindowBytes(b"", 0, 0), "00000000000000000000000000000000"),
    (SESSIONS, "fig", WindowBytes(b"fig", 4, 9), "00000000000000090000000000000004"),
    (SESSIONS, "fig", WindowBytes(b"fig", 0, MAX_TIME), "7fffffffffffffff0000000000000000"),
]


@pytest.mark.parametrize(("layout", "key", "parts", "suffix"), WRITTEN)
def test_a_key_ends_with_its_window(layout, key, parts, suffix):
    raw = key.encode() + bytes.fromhex(suffix)
    assert layout.encode(parts) == raw
    assert layout.decode(raw) == parts


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_key_that_looks_like_a_window_is_still_the_key(layout):
    for key in (bytes(8), bytes(12), bytes(16), b"\xff" * 28, layout.encode(WindowBytes(b"inner", 5, 9))):
        parts = layout.decode(layout.encode(WindowBytes(key, 1_000, 61_000)))
        assert parts == WindowBytes(key, 1_000, 61_000)


def test_a_session_is_logged_as_it_is_written():
    parts = WindowBytes(b"plum", 17, 23)
    assert WindowedKeyCodec(SESSION, WindowTopic.CHANGELOG).encode(parts) == SESSIONS.encode(parts)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_no_bytes_are_no_key(layout):
    assert layout.decode(None) is None
    assert layout.decode(b"") is None


@pytest.mark.parametrize(
    ("layout", "raw", "reason"),
    [
        (TOPIC, bytes(7), "the key has 7 bytes, but the key in a windowed topic ends with 8: the window's start"),
        (
            CHANGELOG,
            bytes(11),
            "the key has 11 bytes, but the key in a window store's changelog ends with 12: "
            "the window's start and a sequence number",
        ),
        (SESSIONS, b"a", "the key has 1 bytes, but the key of a session ends with 16: its end and its start"),
    ],
)
def test_a_key_without_room_for_a_window_is_refused(layout, raw, reason):
    with pytest.raises(ValueError, match=reason):
        layout.decode(raw)


@pytest.mark.parametrize("type_", [WindowType.TUMBLING, WindowType.HOPPING])
@pytest.mark.parametrize("topic", WindowTopic)
def test_time_windows_need_their_size(type_, topic):
    with pytest.raises(PlanError, match=f"the size of the {type_} windows is missing"):
        WindowedKeyCodec(WindowInfo(type=type_), topic)


def test_read_with_the_other_layout_a_key_has_another_window():
    """The two layouts cannot be distinguished by their bytes: the reader must know which one it reads."""
    start = 1_700_000_000_000
    logged = CHANGELOG.encode(WindowBytes(b"fig", start, start + 60_000))
    assert TOPIC.decode(logged) == WindowBytes(
        b"fig\0\0\x01\x8b", 0xCFE5680000000000 - 2**64, 0xCFE5680000000000 - 2**64 + 60_000
    )


times, keys = st.integers(-(2**63), MAX_TIME), st.binary(max_size=40)


@given(keys, times, st.integers(1, 2**70), st.integers(0, 2**31 - 1))
def test_time_windows_are_read_as_written(key, start, size, sequence):
    window = WindowInfo(type=WindowType.HOPPING, size=Duration(Decimal(size).scaleb(-3)))
    parts = WindowBytes(key, start, min(start + min(size, MAX_TIME), MAX_TIME), sequence)
    logged = WindowedKeyCodec(window, WindowTopic.CHANGELOG)
    assert logged.decode(logged.encode(parts)) == parts
    written = WindowedKeyCodec(window).encode(parts)
    assert WindowedKeyCodec(window).decode(written) == WindowBytes(key, start, parts.end)
    assert logged.encode(parts) == written + sequence.to_bytes(4, "big")


@given(keys, times, times)
def test_sessions_are_read_as_written(key, start, end):
    parts = WindowBytes(key, start, end)
    assert SESSIONS.decode(SESSIONS.encode(parts)) == parts


@given(keys, st.lists(st.integers(0, MAX_TIME), min_size=2, max_size=8), st.data())
def test_the_windows_of_a_key_are_in_the_order_of_their_bytes(key, starts, data):
    """By start; sessions by end, then start."""
    assert sorted(TOPIC.encode(WindowBytes(key, start, 0)) for start in starts) == [
        TOPIC.encode(WindowBytes(key, start, 0)) for start in sorted(starts)
    ]
    ends = [data.draw(st.integers(start, MAX_TIME)) for start in starts]
    sessions = sorted(zip(ends, starts, strict=True))
    encoded = [SESSIONS.encode(WindowBytes(key, start, end)) for end, start in sessions]
    assert encoded == sorted(encoded)
