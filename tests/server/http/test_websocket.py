"""/ws/query-stream."""

import json
from collections.abc import Iterator

import wsproto.events

from tests.server.local import LocalService
from tests.server.sockets import WebSocket

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


def test_changes_are_sent_as_they_happen(url: str, service: LocalService) -> None:
    service.put("TOTALS", ("a", 1), ("b", 2))
    socket = WebSocket(url, PATH, PUSH | {"requestProperties": {"holdfast.progress": True}})
    push = service.next_push()
    found = lines(socket)
    assert isinstance(next(found), dict)
    assert [next(found), next(found)] == [["a", 1], ["b", 2]]
    at = next(found)["snapshot"]
    assert next(found) == {"progress": at + 1}
    service.put("TOTALS", ("a",))
    rest = list(found)
    assert {"tombstone": ["a", None]} in rest
    assert socket.code == 1000
    assert service.has_closed(push)


def test_closing_the_socket_ends_the_query(url: str, service: LocalService) -> None:
    socket = WebSocket(url, PATH, PUSH)
    push = service.next_push()
    socket.close()
    assert service.has_closed(push)


def test_an_error_is_a_line_before_the_end(url: str) -> None:
    for body, message in (
        ({"sql": "SELECT nothing FROM totals;"}, 'column "NOTHING" does not exist'),
        ({"sql": "SHOW TABLES;"}, "only SELECT, SUBSCRIBE and PRINT can be run here"),
        ([], "the first message is not a JSON object"),
        ({}, '"sql" is missing'),
    ):
        socket = WebSocket(url, PATH, body)
        (error,) = lines(socket)
        assert isinstance(error, dict)
        assert error["message"].startswith(message)
        assert socket.code == 1008


def test_pages_of_other_sites_are_refused(url: str) -> None:
    refused = WebSocket(url, PATH, PULL, origin="http://elsewhere.example")
    assert isinstance(refused.status, wsproto.events.RejectConnection)
    assert isinstance(WebSocket(url, PATH, PULL, origin=url).status, wsproto.events.AcceptConnection)
