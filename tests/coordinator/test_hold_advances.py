"""Advances that come together are written together."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from holdfast.coordinator.hold_advances import HoldAdvances
from holdfast.errors import ReadError, StoreError
from holdfast.names import HoldId
from holdfast.runtime.store.port import Time


class Slow:
    """A store whose first write waits until it is let go."""

    def __init__(self) -> None:
        self.began, self.go = Event(), Event()
        self.batches: list[dict[HoldId, Time]] = []

    def __call__(self, moves: Mapping[HoldId, Time]) -> Mapping[HoldId, ReadError]:
        self.batches.append(dict(moves))
        self.began.set()
        self.go.wait(10)
        return {hold: ReadError("gone") for hold in moves if hold == "bad"}


def test_those_that_come_while_one_is_written_make_one_batch():
    slow = Slow()
    advances = HoldAdvances(slow)
    with ThreadPoolExecutor(12) as clients:
        first = clients.submit(advances.move, HoldId("h0"), Time(1))
        slow.began.wait(10)
        rest = [clients.submit(advances.move, HoldId(f"h{n}"), Time(n)) for n in range(1, 9)]
        again = [
            clients.submit(advances.move, HoldId("h1"), Time(20)),
            clients.submit(advances.move, HoldId("bad"), Time(1)),
        ]
        while len(advances._waiting) < 10:
            pass
        slow.go.set()
        assert [done.result(10) for done in (first, *rest, again[0])] == [None] * 10
        assert str(again[1].result(10)) == "gone"
    assert slow.batches[0] == {"h0": 1}
    # One of the two moves of h1 has to wait for the other.
    assert [len(batch) for batch in slow.batches[1:]] == [9, 1]


def test_a_write_that_fails_fails_for_all_of_its_batch():
    def broken(_moves: Mapping[HoldId, Time]) -> Mapping[HoldId, ReadError]:
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="the disk is full"):
        HoldAdvances(broken).move(HoldId("h"), Time(1))
