"""Push queries over a table that stops, on every transport."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.server.local import LocalService, eventually
from tests.server.sockets import WebSocket

STATEMENTS = [
    "SUBSCRIBE totals;",
    "SELECT id, total FROM totals EMIT ALL;",
    "SELECT id, total FROM totals EMIT CHANGES;",
]
ASKING = {"holdfast.progress": True}
AGAIN = {"notice": 'table "TOTALS" is current again', "current": True}
FORMATS = {
    "/query-stream": ["application/vnd.ksqlapi.delimited.v1", "application/json", "application/vnd.ksql.v1+json"],
    "/query": ["application/vnd.ksql.v1+json"],
}


def parts(response: httpx.Response) -> Iterator[object]:
    """The parts of a response; those of an array are a line each, too."""
    for line in response.iter_lines():
        text = line.strip().strip(",")
        if text not in ("", "]"):
            yield json.loads(text[1:] if text.startswith("[{") else text)


def notices(found: Iterator[object]) -> Iterator[object]:
    """Without those that come, or not, while the table catches up."""
    return (
        part
        for part in found
        if isinstance(part, dict) and "notice" in part and not part["notice"].endswith("is catching up")
    )


def stop_and_go(service: LocalService) -> str:
    """Pause and resume the query of the totals under a push query; returns the notice of a pull between the two."""
    push = service.next_push()
    service.change(f"PAUSE {service.query};")
    assert eventually(lambda: push.notice is not None and not push.notice.current)
    assert push.notice is not None
    message = push.notice.message
    service.change(f"RESUME {service.query};")
    return message


@pytest.mark.parametrize("sql", STATEMENTS)
@pytest.mark.parametrize(("path", "accept"), [(path, accept) for path, found in FORMATS.items() for accept in found])
def test_a_query_over_a_table_that_stops_says_so(
    http: httpx.Client, service: LocalService, path: str, accept: str, sql: str
) -> None:
    body = {"sql": sql, "requestProperties": ASKING}
    with http.stream("POST", path, json=body, headers={"accept": accept}) as response:
        found = notices(parts(response))
        message = stop_and_go(service)
        assert [next(found), next(found)] == [{"notice": message, "current": False}, AGAIN]
    assert message.startswith('table "TOTALS" has been frozen since ')
    assert message.endswith(f": its query {service.query} is paused")


@pytest.mark.parametrize("sql", STATEMENTS)
def test_over_a_websocket_too(url: str, service: LocalService, sql: str) -> None:
    socket = WebSocket(url, "/ws/query-stream", {"sql": sql, "requestProperties": ASKING})
    found = notices(json.loads(line) for text in socket.received() for line in text.splitlines())
    message = stop_and_go(service)
    assert [next(found), next(found)] == [{"notice": message, "current": False}, AGAIN]
    socket.close()


def test_the_header_has_it_if_the_table_has_stopped_before(http: httpx.Client, service: LocalService) -> None:
    service.change(f"PAUSE {service.query};")
    pulled = json.loads(http.post("/query-stream", json={"sql": "SELECT * FROM totals;"}).text.splitlines()[0])
    for sql in STATEMENTS:
        with http.stream("POST", "/query-stream", json={"sql": sql}) as response:
            header = next(parts(response))
            assert isinstance(header, dict)
            assert header["notice"] == pulled["notice"] != ""


def test_clients_of_ksqldb_get_rows_only(http: httpx.Client, service: LocalService) -> None:
    with http.stream("POST", "/query-stream", json={"sql": STATEMENTS[2]}) as response:
        found = parts(response)
        assert set(next(found)) == {"queryId", "columnNames", "columnTypes"}
        stop_and_go(service)
        service.put("TOTALS", ("b", 2))
        assert next(found) == ["b", 2]
