"""Requests to the coordinator have a deadline; one that was withdrawn never runs."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from holdfast.coordinator.activity import Activity
from holdfast.coordinator.requests import Requests
from holdfast.errors import RequestTimeout
from holdfast.wall_clock import ManualClock


@pytest.fixture
def activity() -> Activity:
    return Activity(ManualClock(), limit=60.0)


@pytest.fixture
def requests(activity: Activity) -> Requests:
    made = Requests(activity, seconds=60.0)
    made.serve()
    return made


def never(*_: object) -> None:
    raise AssertionError("it ran")


def test_a_request_that_has_not_begun_in_time_is_withdrawn(requests: Requests) -> None:
    with pytest.raises(RequestTimeout) as raised:
        requests.ask("DROP STREAM s", never, timeout=0.01)
    assert raised.value.sqlstate == "57014"
    assert not raised.value.begun
    assert "DROP STREAM s" in str(raised.value)
    assert "withdrawn" in str(raised.value)
    requests.answer()


def test_a_request_that_has_begun_says_that_it_may_still_take_effect(requests: Requests) -> None:
    begun, end, took = Event(), Event(), Event()

    def slow() -> None:
        begun.set()
        end.wait(60)
        took.set()

    with ThreadPoolExecutor(2) as threads:
        asked = threads.submit(requests.ask, "a long change", slow, 0.5)
        while not begun.is_set():
            answering = threads.submit(requests.answer)
            begun.wait(0.1)
        with pytest.raises(RequestTimeout) as raised:
            asked.result(60)
        end.set()
        answering.result(60)
    assert raised.value.begun
    assert "may still take effect" in str(raised.value)
    assert took.is_set()


@pytest.mark.parametrize("error", [TimeoutError("its own"), ValueError("wrong")])
def test_an_error_of_the_function_is_its_own(requests: Requests, error: Exception) -> None:
    def fail() -> None:
        raise error

    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(requests.ask, "something", fail)
        while not asked.done():
            requests.answer()
        with pytest.raises(type(error), match=str(error)):
            asked.result()


def test_what_takes_long_is_named_with_its_seconds() -> None:
    clock = ManualClock()
    activity = Activity(clock, limit=60.0)

    def seen() -> list[Any]:
        look: list[Callable[[], str | None]] = [activity.busy, activity.stuck]
        return [each() for each in look]

    assert seen() == [None, None]
    with activity.of("a tick"):
        clock.advance(4)
        assert seen() == [None, None]
        clock.advance(26)
        assert seen() == ["busy for 30 s with a tick", None]
        clock.advance(30)
        assert seen() == ["busy for 60 s with a tick"] * 2
    assert seen() == [None, None]


def test_a_withdrawn_request_says_what_the_coordinator_was_busy_with() -> None:
    clock = ManualClock()
    activity = Activity(clock, limit=60.0)
    requests = Requests(activity, seconds=0.01)
    requests.serve()
    with activity.of("a tick"):
        clock.advance(90)
        with pytest.raises(RequestTimeout, match="busy for 90 s with a tick"):
            requests.ask("DROP STREAM s", never)
