"""Threads that outlive their failures."""

import threading
import time
from collections.abc import Callable

import pytest

from holdfast import worker
from holdfast.errors import HoldfastError
from holdfast.worker import Worker


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_PAUSE_SECONDS", 0.01)


@pytest.mark.parametrize(
    ("error", "shown"),
    [(HoldfastError("Kafka is away", hint="Wait."), "Kafka is away\nHINT: Wait."), (KeyError("k"), "KeyError: 'k'")],
)
def test_an_error_is_shown_and_the_work_is_done_again(error: Exception, shown: str) -> None:
    may_fail, calls = threading.Event(), []
    may_fail.set()

    def work() -> None:
        calls.append(1)
        if may_fail.is_set():
            raise error

    thread = Worker("test", work, interval=60)
    thread.start()
    thread.wake()
    assert eventually(lambda: thread.problem == shown and len(calls) >= 3)
    may_fail.clear()
    assert eventually(lambda: thread.problem is None)
    thread.stop()


def test_pauses_double_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_PAUSE_SECONDS", 1.0)
    thread = Worker("test", lambda: None, interval=60)
    assert [thread._pause() for _ in range(8)] == [1, 2, 4, 8, 16, 30, 30, 30]
    urgent = Worker("test", lambda: None, interval=60, longest_pause=3)
    assert [urgent._pause() for _ in range(3)] == [1, 2, 3]


def test_what_was_asked_for_before_the_end_is_done() -> None:
    calls: list[int] = []
    thread = Worker("test", lambda: calls.append(1), interval=60)
    thread.start()
    thread.wake()
    thread.stop(10)
    assert calls


def test_work_ends_its_thread() -> None:
    thread = Worker("test", lambda: False, interval=0.01)
    thread.start()
    assert eventually(lambda: not thread._thread.is_alive())
