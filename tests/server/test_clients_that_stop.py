"""Clients that stop reading, and clients that go, over both protocols."""

import json
import time
from collections.abc import Callable

import pytest

from .fake import FakePush, FakeService
from .sockets import Http1, Http2, WebSocket

PUSH = {"sql": "SELECT id, total FROM totals EMIT CHANGES;"}
ROWS, BATCHES = 1_000, 150
PROTOCOLS = pytest.mark.parametrize("protocol", [Http1, Http2, WebSocket])

Client = Http1 | Http2 | WebSocket


def path_of(protocol: Callable[..., Client]) -> str:
    return "/ws/query-stream" if protocol is WebSocket else "/query-stream"


def settled(push: FakePush) -> int:
    """How many batches were taken once no more are."""
    seen, since = -1, time.monotonic()
    while time.monotonic() - since < 0.7:
        if push.taken != seen:
            seen, since = push.taken, time.monotonic()
        time.sleep(0.02)
    return seen


@PROTOCOLS
def test_a_client_that_stops_reading_stops_the_query(
    protocol: Callable[..., Client], url: str, service: FakeService
) -> None:
    """150 MB wait for it; what the server has taken of that is bounded, and nothing of it is lost."""
    client = protocol(url, path_of(protocol), PUSH)
    push = service.next_push()
    for number in range(BATCHES):
        push.put(*((f"{number:04}" + "x" * 1000, number, False) for _ in range(ROWS)))
    taken = settled(push)
    assert 0 < taken < 20, "each batch is 1 MB; the sockets of the system may hold some"
    content = b""
    rows = 0
    for part in client.received():
        content += part
        *lines, content = content.split(b"\n")
        for line in lines:
            row = json.loads(line)
            if isinstance(row, list):
                assert row[1] == rows // ROWS
                rows += 1
        if rows == ROWS * BATCHES:
            break
    assert rows == ROWS * BATCHES
    client.go()
    assert push.closed.wait(1)


@PROTOCOLS
@pytest.mark.parametrize("waiting", [0, 20])
def test_a_client_that_goes_ends_its_query(
    protocol: Callable[..., Client], waiting: int, url: str, service: FakeService
) -> None:
    client = protocol(url, path_of(protocol), PUSH)
    push = service.next_push()
    for _ in range(waiting):
        push.put(*(("x" * 1000, 1, False) for _ in range(ROWS)))
    settled(push)
    assert not push.closed.is_set()
    client.go()
    assert push.closed.wait(1)


@pytest.mark.parametrize("waiting", [0, 20])
def test_a_request_that_is_given_up_ends_its_query_and_leaves_the_connection(
    waiting: int, url: str, service: FakeService
) -> None:
    client = Http2(url, "/query-stream", PUSH)
    push = service.next_push()
    for _ in range(waiting):
        push.put(*(("x" * 1000, 1, False) for _ in range(ROWS)))
    settled(push)
    client.reset()
    assert push.closed.wait(1)
    head = [(":method", "GET"), (":path", "/info"), (":scheme", "http"), (":authority", "x")]
    client.connection.send_headers(3, head, end_stream=True)
    client.socket.sendall(client.connection.data_to_send())
    content = b"".join(client.received())
    assert content.endswith(b"}}")
    assert b"KsqlServerInfo" in content
    client.go()


@PROTOCOLS
def test_clients_that_follow_the_same_query_are_told_alike(
    protocol: Callable[..., Client], url: str, service: FakeService
) -> None:
    clients = [protocol(url, path_of(protocol), {"sql": PUSH["sql"].replace(";", " LIMIT 3;")}) for _ in range(20)]
    pushes = [service.next_push() for _ in clients]
    for push in set(service.pushes):
        push.put(("a", 1, False), ("b", 2, False), ("c", 3, False))
    answers = {b"".join(client.received()).split(b"\n", 1)[1] for client in clients}
    assert answers == {b'["a",1]\n["b",2]\n["c",3]\n'}
    assert all(push.closed.wait(1) for push in pushes)
    for client in clients:
        client.go()
