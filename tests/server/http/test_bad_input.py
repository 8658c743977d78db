"""What nobody should send: a clear answer each, over both protocols, and the server lives."""

import json
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Thread

import httpx
import pytest

from tests.server.local import LocalService, eventually
from tests.server.sockets import connect, request

TEN_MEGABYTES = 10 << 20


@pytest.fixture(params=["HTTP/1.1", "HTTP/2"])
def client(request: pytest.FixtureRequest, url: str) -> Iterator[httpx.Client]:
    """A client of each protocol, and the proof that the server answers afterwards."""
    two = request.param == "HTTP/2"
    with httpx.Client(base_url=url, http1=not two, http2=two, timeout=60, trust_env=False) as opened:
        yield opened
        alive = opened.get("/info")
        assert (alive.status_code, alive.http_version) == (200, request.param)


def read_error(response: httpx.Response) -> tuple[int, int, str]:
    body = response.json()
    assert body["@type"] in ("generic_error", "statement_error")
    return response.status_code, body["error_code"], body["message"]


@pytest.mark.parametrize("path", ["/ksql", "/query-stream", "/query", "/close-query", "/inserts-stream"])
def test_a_content_type_that_is_not_jsons(client: httpx.Client, path: str) -> None:
    for kind in ("text/html", "application/xml", "multipart/form-data; boundary=x", "nonsense"):
        response = client.post(path, content=b"{}", headers={"content-type": kind})
        assert read_error(response)[:2] == (415, 41500)
        assert "application/json" in response.json()["hint"]


@pytest.mark.parametrize("path", ["/ksql", "/query-stream", "/query", "/close-query"])
def test_a_body_that_is_too_large(client: httpx.Client, path: str) -> None:
    status, code, message = read_error(client.post(path, content=b" " * (17 << 20)))
    assert (status, code, message) == (413, 41300, "the body is larger than 16 MiB")


def test_a_large_body_of_the_wrong_kind(client: httpx.Client) -> None:
    """The answer comes before a server would have to read it, and the connection goes on."""
    headers = {"content-type": "text/plain"}
    assert read_error(client.post("/ksql", content=b"x" * (5 << 20), headers=headers))[:2] == (415, 41500)


@pytest.mark.parametrize("path", ["/", "/nothing", "/ksql/x", "/KSQL", "/query-stream/", "/%2e%2e/etc", "/\u00fc"])
def test_an_endpoint_that_does_not_exist(client: httpx.Client, path: str) -> None:
    response = client.post(path, json={})
    assert read_error(response)[:2] == ((405, 40500) if path == "/" else (404, 40400))


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE"])
def test_a_method_that_an_endpoint_does_not_take(client: httpx.Client, method: str) -> None:
    response = client.request(method, "/ksql")
    if response.http_version == "HTTP/1.1" and method == "NONSENSE":
        # No method of HTTP: the parser has said so and closed the connection.
        assert read_error(response)[:2] == (400, 40000)
    else:
        assert read_error(response)[:2] == (405, 40500)
        assert response.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"nonsense", b"\x00", b"\xff\xfe", b'{"ksql": "\\ud800"}', b"[" * 200_000, b'{"a":' * 200_000],
    ids=lambda content: repr(content[:12]),
)
def test_a_body_that_is_not_json(client: httpx.Client, content: bytes) -> None:
    for path in ("/ksql", "/query-stream", "/query", "/close-query", "/inserts-stream"):
        assert read_error(client.post(path, content=content))[:2] == (400, 40000)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO orders (id, amount) VALUES ('" + "x" * TEN_MEGABYTES + "', 1);",
        "SELECT * FROM totals WHERE id IN (" + ",".join(["'a'"] * (TEN_MEGABYTES // 4)) + ");",
        ";" * TEN_MEGABYTES,
        "x" * TEN_MEGABYTES,
    ],
    ids=lambda text: text[:6],
)
def test_a_statement_of_ten_megabytes(client: httpx.Client, service: LocalService, text: str) -> None:
    for path, name in (("/ksql", "ksql"), ("/query-stream", "sql"), ("/query", "ksql")):
        status, code, message = read_error(client.post(path, json={name: text}))
        assert (status, code) == (413, 41300)
        assert message.endswith("characters; the limit is 1,048,576")
    assert service.inserted == []


def test_a_long_word_is_not_repeated_in_whole(client: httpx.Client) -> None:
    status, code, message = read_error(client.post("/ksql", json={"ksql": "x" * 100_000}))
    assert (status, code) == (400, 40001)
    assert len(message) < 200


@pytest.mark.parametrize(
    "deep",
    ["SELECT " + "1 + (" * 5000 + "1" + ")" * 5000 + " FROM totals;", "SELECT " + "NOT " * 5000 + "true FROM totals;"],
    ids=["brackets", "not"],
)
def test_a_statement_that_is_nested_too_deeply(client: httpx.Client, deep: str) -> None:
    status, code, message = read_error(client.post("/query-stream", json={"sql": deep}))
    assert (status, code, message) == (400, 40001, "the statement is nested too deeply")


# ---- below HTTP


@pytest.mark.parametrize(
    "content",
    [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /info HTTP/9.9\r\n\r\n",
        b"POST /ksql HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /ksql HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /info HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * (1 << 17) + b"\r\n\r\n",
        b"GET /" + b"y" * (1 << 17) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /info HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
    ],
    ids=["text", "tls", "version", "length", "chunk", "header", "url", "headers"],
)
def test_what_is_not_http(url: str, http: httpx.Client, content: bytes) -> None:
    with connect(url) as client:
        try:
            client.sendall(content)
            answer = client.makefile("rb").read()
        except ConnectionError:
            # It closed while we were still sending; an answer may be lost with that.
            answer = b""
    assert answer == b"" or b" 400 " in answer.split(b"\r\n")[0]
    if answer:
        assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["error_code"] == 40000
    assert http.get("/info").status_code == 200


@pytest.mark.parametrize(
    "frames",
    [b"", b"\x00" * 9, b"\xff" * 4096, b"\x00\x00\x05\x00\x00\x00\x00\x00\x01hello", b"GET / HTTP/1.1\r\n\r\n"],
    ids=["nothing", "zeros", "ones", "data first", "http/1"],
)
def test_what_is_not_http_2(url: str, http: httpx.Client, frames: bytes) -> None:
    with connect(url) as client:
        client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frames)
        assert client.recv(9), "it says its settings"
    assert http.get("/info").status_code == 200


def test_a_request_that_ends_in_the_middle(url: str, http: httpx.Client, service: LocalService) -> None:
    whole = request("/ksql", {"ksql": "INSERT INTO orders (id) VALUES ('a');"})
    for length in (1, 20, len(whole) // 2, len(whole) - 1):
        with connect(url) as client:
            client.sendall(whole[:length])
    assert http.get("/info").status_code == 200
    assert service.inserted == []


# ---- many


@pytest.fixture
def many_files() -> Iterator[None]:
    """The server is in this process: 1,000 connections are 2,000 files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8_192 if hard == resource.RLIM_INFINITY else min(8_192, hard)
    if wanted < 4_096:
        pytest.skip("the machine allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def answered(client: socket.socket) -> bool:
    with client.makefile("rb") as file:
        return file.readline().startswith(b"HTTP/1.1 200")


@pytest.mark.usefixtures("many_files")
def test_a_thousand_connections(url: str, http: httpx.Client) -> None:
    """All are open at once; each is answered, the idle ones disturb nobody, and all can ask."""
    with ExitStack() as opened:
        clients = [opened.enter_context(connect(url)) for _ in range(1_000)]
        assert http.get("/info").status_code == 200
        for client in clients:
            client.sendall(request("/ksql", {"ksql": "SHOW STREAMS;"}))
        assert all(map(answered, clients))
    assert http.get("/info").status_code == 200


@pytest.mark.usefixtures("many_files")
def test_a_thousand_push_queries(url: str, http: httpx.Client, service: LocalService) -> None:
    """As many as there can be: each has its rows, one more is refused, and all end with their clients."""
    asked = request("/query-stream", {"sql": "SELECT id FROM totals EMIT CHANGES;"})
    with ExitStack() as opened:
        clients = [opened.enter_context(connect(url)) for _ in range(1_000)]
        for client in clients:
            client.sendall(asked)
        assert all(map(answered, clients))
        refused = http.post("/query-stream", json={"sql": "SELECT id FROM totals EMIT CHANGES;"})
        assert refused.json()["error_code"] == 40003
        assert http.post("/query-stream", json={"sql": "SELECT id FROM totals;"}).status_code == 200
        assert len(service.open_pushes()) == 1_000
        service.put("TOTALS", ("a row", 1))
        for client in clients:
            client.settimeout(60)
            content = b""
            while b"a row" not in content:
                content += client.recv(4096)
    assert eventually(lambda: service.open_pushes() == [])
    assert http.get("/info").status_code == 200


def test_many_requests_at_once(url: str) -> None:
    """More than there are threads for: they wait, and all are answered."""
    statuses: list[int] = []

    def ask() -> None:
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            statuses.extend(client.post("/ksql", json={"ksql": "SHOW STREAMS;"}).status_code for _ in range(5))

    threads = [Thread(target=ask) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 500
