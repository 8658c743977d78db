"""Subscriptions that are cut, and go on: a subscriber in a thread, and answers that the test writes line by line."""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import orjson
import pytest

from holdfast.client import AsyncClient, Change, Client, Notice, Progress, ServerError, Unreachable
from holdfast.client.changes import Resumption
from holdfast.errors import ObjectDropped, ReadError, UnknownObject
from tests.server.local import TOTALS, LocalService, eventually

HEADER = {
    "queryId": "q",
    "columnNames": ["mz_timestamp", "mz_diff", "ID", "TOTAL"],
    "columnTypes": ["BIGINT", "BIGINT", "STRING", "INTEGER"],
}


class Answers:
    """Answers a client's subscriptions one after the other, each with lines that then end; notes what was asked.

    A line with column names is a header of its own.
    """

    def __init__(self, *answers: list[object]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []
        self.properties: list[object] = []
        self.transport = httpx.MockTransport(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path != "/query-stream":
            return httpx.Response(200, json={})
        body = orjson.loads(request.content)
        self.asked.append(body["sql"])
        self.properties.append(body["properties"])
        lines = self._answers.pop(0)
        lines = lines if isinstance(lines[0], dict) and "columnNames" in lines[0] else [HEADER, *lines]
        return httpx.Response(200, content=b"".join(orjson.dumps(line) + b"\n" for line in lines))


class Subscriber(threading.Thread):
    """Receives changes until it has seen a time."""

    def __init__(
        self,
        server: str | Answers,
        until: Callable[[int], bool],
        *,
        awaiting: bool = False,
        **options: object,
    ) -> None:
        super().__init__(daemon=True)
        self._client = (server, None) if isinstance(server, str) else ("http://test", server.transport)
        self._until, self._options, self._awaiting = until, options, awaiting
        self.received: list[tuple[object, ...]] = []
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            if self._awaiting:
                asyncio.run(self._run_async())
            else:
                url, transport = self._client
                with Client(url, transport=transport) as client, client.subscribe("totals", **self._options) as changes:
                    for change in changes:
                        if self._take(change):
                            break
        except Exception as error:
            self.error = error

    async def _run_async(self) -> None:
        url, transport = self._client
        async with (
            AsyncClient(url, transport=transport) as client,
            client.subscribe("totals", **self._options) as changes,
        ):
            async for change in changes:
                if self._take(change):
                    break

    def _take(self, received: Change | Progress) -> bool:
        match received:
            case Change(time, diff, row):
                self.received.append((time, diff, *row))
                return False
            case Progress(time):
                self.received.append(("progress", time))
                return self._until(time)

    def done(self) -> list[tuple[object, ...]]:
        self.join(10)
        assert not self.is_alive()
        assert self.error is None, self.error
        return self.received


def reaches(time: int) -> Callable[[int], bool]:
    return lambda seen: seen >= time


@pytest.mark.parametrize("awaiting", [False, True])
def test_a_cut_between_data_and_progress_is_not_to_be_seen(awaiting: bool) -> None:
    answers = Answers(
        [[5, 1, "a", 1], {"snapshot": 5}, {"progress": 6}, [7, -1, "a", 1], [7, 1, "a", 2]],
        [[7, -1, "a", 1], [7, 1, "a", 2], {"progress": 8}, [8, 1, "b", 3], {"progress": 9}],
    )
    subscriber = Subscriber(answers, reaches(9), awaiting=awaiting)
    assert subscriber.done() == [
        (5, 1, "a", 1), ("progress", 6), (7, -1, "a", 1), (7, 1, "a", 2), ("progress", 8), (8, 1, "b", 3),
        ("progress", 9),
    ]  # fmt: skip
    assert answers.asked == [
        "SUBSCRIBE TO totals WITH (SNAPSHOT = true);",
        "SUBSCRIBE TO totals WITH (SNAPSHOT = false) AS OF 5;",
    ], "after progress at 6, from 5 on"


@pytest.mark.parametrize("awaiting", [False, True])
def test_a_cut_in_the_middle_of_a_snapshot_begins_again(awaiting: bool) -> None:
    answers = Answers(
        [[5, 1, "a", 1]],
        [[6, 1, "a", 2], [6, 1, "b", 1], {"snapshot": 6}, {"progress": 7}],
    )
    subscriber = Subscriber(answers, reaches(7), awaiting=awaiting)
    assert subscriber.done() == [(6, 1, "a", 2), (6, 1, "b", 1), ("progress", 7)]
    assert answers.asked == ["SUBSCRIBE TO totals WITH (SNAPSHOT = true);"] * 2


@pytest.mark.parametrize("awaiting", [False, True])
def test_a_query_that_the_server_closes_goes_on(awaiting: bool, url: str, service: LocalService) -> None:
    """Whenever it is closed, every change comes once."""
    last: list[int] = []
    subscriber = Subscriber(url, lambda time: bool(last) and time > last[0], awaiting=awaiting)
    assert eventually(lambda: subscriber.received), "it has its snapshot"
    for total in range(4, 9):
        push = service.next_push()
        service.put("TOTALS", ("a", total))
        service.close_push(push.id)
    push = service.next_push()
    last.append(service.put("TOTALS", ("b", 1)))
    changes = [each[1:] for each in subscriber.done() if each[0] != "progress"]
    expected = [(1, "a", 3)]
    expected += [change for total in range(3, 8) for change in ((-1, "a", total), (1, "a", total + 1))]
    assert changes == [*expected, (1, "b", 1)]
    assert service.has_closed(push), "and its end is the end of the query"


FROZEN = 'table "T" has been frozen since 5: its query Q is paused'
AGAIN = 'table "T" is current again'


@pytest.mark.parametrize("awaiting", [False, True])
def test_a_notice_is_reported_once_and_what_is_unknown_is_not(awaiting: bool) -> None:
    notices: list[Notice] = []
    frozen, again = {"notice": FROZEN, "current": False}, {"notice": AGAIN, "current": True}
    answers = Answers(
        [[5, 1, "a", 1], {"progress": 6}, frozen, {"of a newer server": 1}],
        [{**HEADER, "notice": FROZEN}, again, [7, 1, "b", 1], {"progress": 8}],
    )
    subscriber = Subscriber(answers, reaches(8), awaiting=awaiting, on_notice=notices.append)
    assert subscriber.done() == [(5, 1, "a", 1), ("progress", 6), (7, 1, "b", 1), ("progress", 8)]
    assert notices == [Notice(FROZEN, current=False), Notice(AGAIN, current=True)]


def test_a_notice_is_logged_unless_somebody_takes_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "holdfast.client")
    lines = [HEADER, {"notice": FROZEN, "current": False}, [5, 1, "a", 1], {"notice": AGAIN, "current": True}]
    with Client("http://test", transport=Answers(lines).transport) as client, client.stream("SELECT 1;") as rows:
        assert (next(rows)[2], rows.notice) == ("a", FROZEN)
        assert (list(rows), rows.notice) == ([], None)
    subscriber = Subscriber(Answers([{"notice": FROZEN, "current": False}, {"progress": 6}]), reaches(6))
    subscriber.done()
    assert [record.message for record in caplog.records if record.name == "holdfast.client"] == [FROZEN, AGAIN, FROZEN]


@pytest.mark.parametrize("awaiting", [False, True])
def test_it_resumes_on_the_objects_that_it_has_read(awaiting: bool) -> None:
    header = {**HEADER, "objects": "3,7"}
    answers = Answers([header, [5, 1, "a", 1]], [header, [5, 1, "a", 1], {"progress": 6}], [header, {"progress": 7}])
    assert Subscriber(answers, reaches(7), awaiting=awaiting).done() == [
        (5, 1, "a", 1),
        ("progress", 6),
        ("progress", 7),
    ]
    assert answers.properties == [{}, {}, {"holdfast.objects": "3,7"}], "only after progress"


@pytest.mark.parametrize("awaiting", [False, True])
def test_another_table_of_the_same_name_is_refused(awaiting: bool, service: LocalService, url: str) -> None:
    subscriber = Subscriber(url, lambda _: False, awaiting=awaiting)
    push = service.next_push()
    assert eventually(lambda: any(each[0] == "progress" for each in subscriber.received))
    service.close_push(push.id)
    service.change("DROP TABLE totals;" + TOTALS)
    subscriber.join(10)
    assert isinstance(subscriber.error, ObjectDropped)
    assert subscriber.error.message in ('table "TOTALS" was dropped and created again', 'table "TOTALS" was dropped')


def test_a_new_process_is_refused_too(service: LocalService, url: str) -> None:
    with Client(url) as client, client.subscribe("totals") as first:
        assert isinstance(next(first), Change)
        assert isinstance(next(first), Progress)
    service.change("DROP TABLE totals;" + TOTALS)
    with Client(url) as client, pytest.raises(ObjectDropped, match='"TOTALS" was dropped and created again'):
        next(client.subscribe("totals", resume_from=first.resume_from, objects=first.objects))


def test_it_goes_on_from_a_time_that_was_kept(url: str, service: LocalService) -> None:
    resume = service.put("TOTALS", ("b", 1))
    subscriber = Subscriber(url, lambda time: time > resume, resume_from=resume)
    changes = [each for each in subscriber.done() if each[0] != "progress"]
    assert changes == [(resume, 1, "b", 1)], "what changed at exactly that time is new"


def test_up_to_is_the_end(url: str, service: LocalService) -> None:
    up_to = service.clock.now_ms() + 500
    subscriber = Subscriber(url, lambda _: False, up_to=up_to)
    *changes, end = subscriber.done()
    assert [change[1:] for change in changes if change[0] != "progress"] == [(1, "a", 3)]
    assert end == ("progress", up_to)


def test_what_does_not_pass_is_raised(url: str, service: LocalService) -> None:
    with Client(url) as client, pytest.raises(UnknownObject):
        next(client.subscribe("nothing_of_that_name"))
    subscriber = Subscriber(url, lambda _: False)
    push = service.next_push()
    push.fail(ReadError("it is gone"))
    subscriber.join(10)
    assert isinstance(subscriber.error, ServerError)
    assert subscriber.error.message == "it is gone"


def test_a_server_that_stays_away_is_reported_after_a_while() -> None:
    with Client("http://127.0.0.1:9") as client, pytest.raises(Unreachable):
        next(client.subscribe("totals", retry_seconds=0.2))


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Resumption("totals"), "SUBSCRIBE TO totals WITH (SNAPSHOT = true);"),
        (Resumption("`select`"), "SUBSCRIBE TO `select` WITH (SNAPSHOT = true);"),
        (Resumption("selected", resume_from=7), "SUBSCRIBE TO selected WITH (SNAPSHOT = false) AS OF 6;"),
        (Resumption("SELECT id FROM t;", as_of=3), "SUBSCRIBE TO (SELECT id FROM t) WITH (SNAPSHOT = true) AS OF 3;"),
        (Resumption("(select 1)", as_of=3, resume_from=9), "SUBSCRIBE TO (select 1) WITH (SNAPSHOT = false) AS OF 8;"),
        (
            Resumption("t", snapshot=False, up_to=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
            "SUBSCRIBE TO t WITH (SNAPSHOT = false) UP TO 1000;",
        ),
    ],
)
def test_what_is_asked_for(place: Resumption, text: str) -> None:
    assert place.text == text
