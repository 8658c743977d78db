"""The names by which a request may address the server."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from holdfast.config import load
from holdfast.server.http.hosts import AllowedHosts
from holdfast.server.http.server import listen, running
from tests.server.local import LocalService


@pytest.fixture(scope="module")
def url(engines) -> Iterator[str]:
    started = LocalService(engines)
    with running(started, listen(started.settings)) as server:
        yield server.url
    started.stop()


async def nothing(*_arguments: object) -> None: ...


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:8088", True),
        ("[::1]:8088", True),
        ("127.8.9.10", True),
        ("192.168.1.7", False),
        ("[2001:db8::1]:8088", False),
        ("localhost:8088", True),
        ("LOCALHOST", True),
        ("db.localhost:8088", True),
        ("holdfast.internal:8088", True),
        ("Holdfast.Internal.", True),
        ("evil.example", False),
        ("evil.example:8088", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("", False),
    ],
)
def test_addresses_loopback_and_configured_names(tmp_path: Path, host: str, allowed: bool) -> None:
    settings = replace(load({"data_dir": tmp_path}, environment={}), http_names=("holdfast.internal",))
    assert AllowedHosts(nothing, settings).allows(host) is allowed


@pytest.mark.parametrize("host", ["192.168.1.7:8088", "[2001:db8::1]", "127.0.0.1"])
def test_a_server_beyond_loopback_is_reached_by_any_of_its_addresses(tmp_path: Path, host: str) -> None:
    settings = replace(load({"data_dir": tmp_path}, environment={}), http_host="0.0.0.0", insecure=True)
    assert AllowedHosts(nothing, settings).allows(host)


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/ksql"), ("POST", "/query-stream"), ("GET", "/info"), ("GET", "/metrics")]
)
def test_a_page_with_another_name_cannot_use_the_server(url: str, method: str, path: str) -> None:
    """Its Origin and its Host agree, as a browser sends them after the name was bound to this address."""
    headers = {"Host": "evil.example:8088", "Origin": "http://evil.example:8088", "Content-Type": "application/json"}
    refused = httpx.request(method, f"{url}{path}", headers=headers, content=b'{"ksql": "SHOW TABLES;"}')
    assert refused.status_code == 403
    assert refused.json()["message"] == 'the server does not answer to the name "evil.example:8088"'
    assert "http_names" in refused.json()["hint"]
    assert httpx.get(f"{url}/info").status_code == 200


def test_neither_can_its_web_sockets(url: str) -> None:
    upgrade = {
        "Host": "evil.example",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    assert httpx.get(f"{url}/ws/query-stream", headers=upgrade).status_code == 403
