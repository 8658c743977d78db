"""Subscriptions that are cut, and go on: a subscriber in a thread, and a server whose pushes the test feeds."""

import asyncio
import threading
from datetime import UTC, datetime

import pytest

from holdfast.client import AsyncClient, Change, Client, Progress, ServerError, Unreachable
from holdfast.client.changes import Place
from holdfast.errors import ReadError, UnknownObject
from holdfast.sql.bound import BoundSubscribe
from tests.server.fake import FakePush, FakeService


class Subscriber(threading.Thread):
    """Takes what it is given until it has seen a time."""

    def __init__(self, url: str, until: int, *, awaiting: bool = False, **options: object) -> None:
        super().__init__(daemon=True)
        self._url, self._until, self._options, self._awaiting = url, until, options, awaiting
        self.given: list[tuple[object, ...]] = []
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            if self._awaiting:
                asyncio.run(self._run_async())
            else:
                with Client(self._url) as client, client.subscribe("totals", **self._options) as changes:
                    for change in changes:
                        if self._take(change):
                            break
        except Exception as error:
            self.error = error

    async def _run_async(self) -> None:
        async with AsyncClient(self._url) as client, client.subscribe("totals", **self._options) as changes:
            async for change in changes:
                if self._take(change):
                    break

    def _take(self, given: Change | Progress) -> bool:
        match given:
            case Change(time, diff, row):
                self.given.append((time, diff, *row))
                return False
            case Progress(time):
                self.given.append(("progress", time))
                return time >= self._until

    def done(self) -> list[tuple[object, ...]]:
        self.join(10)
        assert not self.is_alive()
        assert self.error is None, self.error
        return self.given


def begun(push: FakePush) -> tuple[bool, int | None]:
    """Whether it begins with a snapshot, and at which time."""
    assert isinstance(push.bound, BoundSubscribe)
    return push.bound.snapshot, push.bound.as_of.moment.millis if push.bound.as_of else None


@pytest.mark.parametrize("awaiting", [False, True])
def test_a_cut_between_data_and_progress_is_not_to_be_seen(awaiting: bool, url: str, service: FakeService) -> None:
    subscriber = Subscriber(url, 9, awaiting=awaiting)
    first = service.next_push()
    first.put((5, 1, "a", 1), time=None)
    first.put_snapshot(5)
    first.put((7, -1, "a", 1), (7, 1, "a", 2), time=None)
    first.end()
    second = service.next_push()
    assert (begun(first), begun(second)) == ((True, None), (False, 5)), "after progress at 6, from 5 on"
    second.put((7, -1, "a", 1), (7, 1, "a", 2), time=7)
    second.put((8, 1, "b", 3), time=8)
    assert subscriber.done() == [
        (5, 1, "a", 1), ("progress", 6), (7, -1, "a", 1), (7, 1, "a", 2), ("progress", 8), (8, 1, "b", 3),
        ("progress", 9),
    ]  # fmt: skip
    assert second.closed.wait(1), "and its end is the end of the query"


@pytest.mark.parametrize("awaiting", [False, True])
def test_a_cut_in_the_middle_of_a_snapshot_begins_again(awaiting: bool, url: str, service: FakeService) -> None:
    subscriber = Subscriber(url, 7, awaiting=awaiting)
    first = service.next_push()
    first.put((5, 1, "a", 1), time=None)
    first.end()
    second = service.next_push()
    assert begun(second) == (True, None)
    second.put((6, 1, "a", 2), (6, 1, "b", 1), time=None)
    second.put_snapshot(6)
    assert subscriber.done() == [(6, 1, "a", 2), (6, 1, "b", 1), ("progress", 7)]


def test_it_goes_on_from_a_time_that_was_kept(url: str, service: FakeService) -> None:
    subscriber = Subscriber(url, 21, resume_from=20)
    push = service.next_push()
    assert begun(push) == (False, 19)
    push.put((20, 1, "a", 1), time=20)
    assert subscriber.done() == [(20, 1, "a", 1), ("progress", 21)], "what changed at exactly that time is new"


def test_up_to_is_the_end(url: str, service: FakeService) -> None:
    subscriber = Subscriber(url, 1_000, up_to=8)
    push = service.next_push()
    push.put((5, 1, "a", 1), time=7)
    push.end()
    assert subscriber.done() == [(5, 1, "a", 1), ("progress", 8)]


def test_what_does_not_pass_is_raised(url: str, service: FakeService) -> None:
    with Client(url) as client, pytest.raises(UnknownObject):
        next(client.subscribe("nothing_of_that_name"))
    subscriber = Subscriber(url, 9)
    service.next_push().fail(ReadError("it is gone"))
    subscriber.join(10)
    assert isinstance(subscriber.error, ServerError)
    assert subscriber.error.message == "it is gone"


def test_a_server_that_stays_away_is_told_after_a_while() -> None:
    with Client("http://127.0.0.1:9") as client, pytest.raises(Unreachable):
        next(client.subscribe("totals", retry_seconds=0.2))


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Place("totals"), "SUBSCRIBE TO totals WITH (SNAPSHOT = true);"),
        (Place("`select`"), "SUBSCRIBE TO `select` WITH (SNAPSHOT = true);"),
        (Place("selected", resume_from=7), "SUBSCRIBE TO selected WITH (SNAPSHOT = false) AS OF 6;"),
        (Place("SELECT id FROM t;", as_of=3), "SUBSCRIBE TO (SELECT id FROM t) WITH (SNAPSHOT = true) AS OF 3;"),
        (Place("(select 1)", as_of=3, resume_from=9), "SUBSCRIBE TO (select 1) WITH (SNAPSHOT = false) AS OF 8;"),
        (
            Place("t", snapshot=False, up_to=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
            "SUBSCRIBE TO t WITH (SNAPSHOT = false) UP TO 1000;",
        ),
    ],
)
def test_what_is_asked_for(place: Place, text: str) -> None:
    assert place.text == text
