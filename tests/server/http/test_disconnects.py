"""Clients that stop reading, and clients that go, over both protocols."""

import json
import time
from collections.abc import Callable, Iterator

import pytest

from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.server.http.server import listen, running
from holdfast.serving.push.query import PushQuery
from tests.server.local import ORDERS, TOTALS, LocalService, local_service
from tests.server.sockets import Http1, Http2, WebSocket

PUSH = {"sql": "SELECT id, total FROM totals EMIT CHANGES;"}
FROM_THE_EARLIEST = PUSH | {"properties": {"auto.offset.reset": "earliest"}}
ROWS, PARTS = 1_000, 40
PART_BYTES = ROWS * 1_000
PROTOCOLS = pytest.mark.parametrize("protocol", [Http1, Http2, WebSocket])

Client = Http1 | Http2 | WebSocket


def path_of(protocol: Callable[..., Client]) -> str:
    return "/ws/query-stream" if protocol is WebSocket else "/query-stream"


@pytest.fixture(scope="module")
def service(engines: EnginePair) -> Iterator[LocalService]:
    """A service with 40 MB of totals."""
    with local_service(engines) as started:
        started.run(ORDERS + TOTALS)
        started.put("TOTALS", *((f"{part:04}{i:04}" + "x" * 1000, part) for part in range(PARTS) for i in range(ROWS)))
        yield started


@pytest.fixture(scope="module")
def url(service: LocalService) -> Iterator[str]:
    with running(service, listen(service.settings)) as server:
        yield server.url


def settled(push: PushQuery) -> float:
    """How many parts were sent once no more are."""
    seen, since = -1, time.monotonic()
    while time.monotonic() - since < 0.7:
        if push.meter.bytes != seen:
            seen, since = push.meter.bytes, time.monotonic()
        time.sleep(0.02)
    return seen / PART_BYTES


@PROTOCOLS
def test_a_client_that_stops_reading_stops_the_query(
    protocol: Callable[..., Client], url: str, service: LocalService
) -> None:
    """40 MB wait for it; what the server has taken of that is bounded, and nothing of it is lost."""
    client = protocol(url, path_of(protocol), FROM_THE_EARLIEST)
    push = service.next_push()
    taken = settled(push)
    assert 0 < taken < 20, "each part is 1 MB; the sockets of the system may hold some"
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
        if rows == ROWS * PARTS:
            break
    assert rows == ROWS * PARTS
    client.go()
    assert service.has_closed(push)


@PROTOCOLS
@pytest.mark.parametrize("asked", [PUSH, FROM_THE_EARLIEST], ids=["idle", "waiting"])
def test_a_client_that_goes_ends_its_query(
    protocol: Callable[..., Client], asked: object, url: str, service: LocalService
) -> None:
    client = protocol(url, path_of(protocol), asked)
    push = service.next_push()
    settled(push)
    assert service.find_push(push.id) is push
    client.go()
    assert service.has_closed(push)


@pytest.mark.parametrize("asked", [PUSH, FROM_THE_EARLIEST], ids=["idle", "waiting"])
def test_a_request_that_is_given_up_ends_its_query_and_leaves_the_connection(
    asked: object, url: str, service: LocalService
) -> None:
    client = Http2(url, "/query-stream", asked)
    push = service.next_push()
    settled(push)
    client.reset()
    assert service.has_closed(push)
    head = [(":method", "GET"), (":path", "/info"), (":scheme", "http"), (":authority", "localhost")]
    client.connection.send_headers(3, head, end_stream=True)
    client.socket.sendall(client.connection.data_to_send())
    content = b"".join(client.received())
    assert content.endswith(b"}}")
    assert b"KsqlServerInfo" in content
    client.go()


@PROTOCOLS
def test_clients_that_follow_the_same_query_get_the_same_rows(
    protocol: Callable[..., Client], url: str, service: LocalService
) -> None:
    clients = [protocol(url, path_of(protocol), {"sql": PUSH["sql"].replace(";", " LIMIT 3;")}) for _ in range(20)]
    pushes = [service.next_push() for _ in clients]
    service.put("TOTALS", ("a", 1), ("b", 2), ("c", 3))
    answers = {b"".join(client.received()).split(b"\n", 1)[1] for client in clients}
    assert answers == {b'["a",1]\n["b",2]\n["c",3]\n'}
    assert all(service.has_closed(push) for push in pushes)
    for client in clients:
        client.go()
    service.put("TOTALS", ("a",), ("b",), ("c",))
