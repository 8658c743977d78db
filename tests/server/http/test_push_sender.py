"""Sending push queries: what a sender waits for, and for how long."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import anyio
import pytest

from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.store.port import Time
from holdfast.server.http.framing import Delimited
from holdfast.server.http.push_sender import PushSender, SenderPool
from holdfast.serving.wakeup import Wakeup
from tests.serving.client_reads import Reading


class NoCommits(Wakeup):
    """A wake-up that nothing notifies: time passes at once, as long as somebody waits."""

    def __init__(self, reading: Reading) -> None:
        super().__init__()
        self._reading, self.waited = reading, 0.0

    async def wait_until(self, ready: Callable[[], bool], timeout: float) -> None:
        if not ready():
            self.waited += timeout
            self._reading.now = Time(self._reading.now + max(1, round(timeout * 1000)))


@pytest.fixture
def reading(engine: Engine) -> Iterator[Reading]:
    opened = Reading(engine)
    yield opened
    opened.close()


@pytest.fixture
def wakeup(reading: Reading) -> NoCommits:
    return NoCommits(reading)


def sent(reading: Reading, wakeup: NoCommits, sql: str, parts: int) -> list[bytes]:
    """The first parts of an answer after its header."""
    push = reading.subscribe(sql)
    pool = SenderPool(SimpleNamespace(wakeup=wakeup, close_push=lambda _id: push.close()))
    sender = PushSender(push, Delimited(), pool, limit=None, progress=False)

    async def collect() -> list[bytes]:
        found: list[bytes] = []
        async for part in sender.parts():
            found.append(part)
            if len(found) > parts:
                break
        await sender.close()
        return found[1:]

    return anyio.run(collect)


def test_progress_rows_come_every_second_without_a_commit(reading: Reading, wakeup: NoCommits) -> None:
    reading.put("T", {"a": (1, "x")})
    found = sent(reading, wakeup, "SUBSCRIBE t WITH (SNAPSHOT = false, PROGRESS = true);", parts=3)
    assert [part.startswith(b"[") and b"true" in part for part in found] == [True] * 3
    assert wakeup.waited == pytest.approx(3.0, abs=0.5), "one a second"


def test_up_to_ends_when_its_time_has_come_without_a_commit(reading: Reading, wakeup: NoCommits) -> None:
    at = reading.put("T", {"a": (1, "x")})
    found = sent(reading, wakeup, f"SUBSCRIBE t AS OF {at} UP TO {at + 700};", parts=10)
    assert len(found) == 2, "the snapshot, and the end"
    assert wakeup.waited == pytest.approx(0.7, abs=0.1)
