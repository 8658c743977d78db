"""/ws/query-stream."""

import json
from collections.abc import Iterator

import wsproto.events

from .fake import FakeService
from .sockets import WebSocket

PULL = {"sql": "SELECT id, total FROM totals WHERE id = 'a';"}
PUSH = {"sql": "SELECT id, total FROM totals EMIT ALL LIMIT 3;"}
PATH = "/ws/query-stream"


def lines(socket: WebSocket) -> Iterator[object]:
    for text in socket.received():
        yield from map(json.loads, text.splitlines())


def test_a_pull_is_answered_and_the_socket_closed(url: str) -> None:
    socket = WebSocket(url, PATH, PULL)
    header, *rows = lines(socket)
    assert isinstance(header, dict)
    assert (header["columnNames"], rows, socket.code) == (["ID", "TOTAL"], [["a", 3]], 1000)


def test_a_push_is_told_as_it_happens(url: str, service: FakeService) -> None:
    socket = WebSocket(url, PATH, PUSH | {"requestProperties": {"holdfast.progress": True}})
    push = service.next_push()
    found = lines(socket)
    assert isinstance(next(found), dict)
    push.put(("a", 1, False), ("b", 2, False), time=None)
    assert [next(found), next(found)] == [["a", 1], ["b", 2]]
    push.put_snapshot(7)
    push.put(("a", None, True), time=9)
    assert list(found) == [{"snapshot": 7}, {"progress": 8}, {"tombstone": ["a", None]}, {"progress": 10}]
    assert socket.code == 1000
    assert push.closed.wait(1)


def test_closing_the_socket_ends_the_query(url: str, service: FakeService) -> None:
    socket = WebSocket(url, PATH, PUSH)
    push = service.next_push()
    socket.close()
    assert push.closed.wait(1)


def test_an_error_is_a_line_before_the_end(url: str) -> None:
    for body, message in (
        ({"sql": "SELECT nothing FROM totals;"}, 'column "NOTHING" does not exist'),
        ({"sql": "SHOW TABLES;"}, "only SELECT, SUBSCRIBE and PRINT can be run here"),
        ([], "the first message is not a JSON object"),
        ({}, '"sql" must be given'),
    ):
        socket = WebSocket(url, PATH, body)
        (told,) = lines(socket)
        assert isinstance(told, dict)
        assert told["message"].startswith(message)
        assert socket.code == 1008


def test_pages_of_other_sites_are_refused(url: str) -> None:
    refused = WebSocket(url, PATH, PULL, origin="http://elsewhere.example")
    assert isinstance(refused.status, wsproto.events.RejectConnection)
    assert isinstance(WebSocket(url, PATH, PULL, origin=url).status, wsproto.events.AcceptConnection)
