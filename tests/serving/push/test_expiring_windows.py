"""Readers of a windowed table see windows expire: as deletes at the time of the tick that passes their retention."""

import struct
from collections.abc import Iterator

import pytest
from runtime.driver import Record

from holdfast.serving.push.query import PushQuery
from tests.serving.client_reads import Reading, plain

WINDOWS = """
CREATE TABLE minutes (k STRING PRIMARY KEY, v BIGINT) WITH (KAFKA_TOPIC='minutes', FORMAT='KAFKA',
  WINDOW_TYPE='TUMBLING', WINDOW_SIZE='10 MILLISECONDS', RETENTION='30 MILLISECONDS');
"""


@pytest.fixture
def windows(reading: Reading) -> Reading:
    reading.driver.execute(WINDOWS)
    return reading


def tick(reading: Reading, *windows: tuple[str, int, int]) -> int:
    """Run one tick with the values of some windows; returns its time."""
    records = [
        Record("minutes", key.encode() + struct.pack(">q", start), struct.pack(">q", value), start)
        for key, start, value in windows
    ]
    assert not reading.driver.tick(records).failed
    return reading.now


def changes(push: PushQuery) -> list[tuple]:
    """Time, diff, key, start of the window and value of the changes that are ready now."""
    return [row[:4] + row[5:6] for row in ready(push)]


def ready(push: PushQuery) -> Iterator[tuple]:
    while (batch := push.next(0)) is not None:
        yield from plain(batch.rows)


def test_subscribe_gets_the_delete_in_the_tick_that_passes_the_retention(windows: Reading) -> None:
    start = tick(windows, ("a", 0, 1), ("b", 10, 2))
    push = windows.subscribe("SUBSCRIBE TO (SELECT k, WINDOWSTART AS ws, WINDOWEND AS we, v FROM minutes);")
    assert changes(push) == [(start, 1, "a", 0, 1), (start, 1, "b", 10, 2)]
    passed = tick(windows, ("c", 30, 3))
    assert changes(push) == [(passed, -1, "a", 0, 1), (passed, 1, "c", 30, 3)]
    push.close()


def test_emit_all_gets_it_as_a_tombstone(windows: Reading) -> None:
    tick(windows, ("a", 0, 1), ("b", 10, 2))
    push = windows.push("SELECT k, WINDOWSTART AS ws, v FROM minutes EMIT ALL;", snapshot=True, marked=True)
    assert sorted(row[:2] + row[-1:] for row in ready(push)) == [("a", 0, False), ("b", 10, False)]
    tick(windows, ("c", 30, 3))
    assert sorted(row[:2] + row[-1:] for row in ready(push)) == [("a", 0, True), ("c", 30, False)]
    push.close()


def test_a_subscription_resumed_from_a_hold_gets_the_expiry_that_it_missed(windows: Reading) -> None:
    seen = tick(windows, ("a", 0, 1), ("b", 10, 2))
    windows.driver.execute(f"CREATE HOLD h ON minutes AT {seen};")
    passed = tick(windows, ("c", 30, 3))
    later = tick(windows, ("c", 40, 4))
    windows.driver.clock.advance(3_600)
    windows.service.run_until_idle()
    text = (
        "SUBSCRIBE TO (SELECT k, WINDOWSTART AS ws, WINDOWEND AS we, v FROM minutes) WITH (SNAPSHOT = false) AS OF {};"
    )
    push = windows.subscribe(text.format(seen))
    assert changes(push) == [
        (passed, -1, "a", 0, 1),
        (passed, 1, "c", 30, 3),
        (later, -1, "b", 10, 2),
        (later, 1, "c", 40, 4),
    ]
    push.close()
