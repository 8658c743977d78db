"""Requests that are not what they should be, and the endpoints that take none."""

import httpx
import pytest

from holdfast.server.http import requests
from holdfast.service.status import Health
from holdfast.version import VERSION
from tests.server.local import LocalService


def codes_of(response: httpx.Response) -> tuple[int, int]:
    body = response.json()
    assert body["@type"] in ("generic_error", "statement_error")
    assert body["message"]
    return response.status_code, body["error_code"]


def test_info(http: httpx.Client) -> None:
    assert http.get("/info").json() == {
        "KsqlServerInfo": {
            "version": VERSION,
            "kafkaClusterId": "cluster",
            "ksqlServiceId": "default",
            "serverStatus": "RUNNING",
        }
    }
    assert http.get("/").headers["location"] == "/info"


def test_health(http: httpx.Client, service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = http.get("/healthcheck")
    assert (healthy.status_code, healthy.json()["isHealthy"]) == (200, True)
    monkeypatch.setattr(service, "health", lambda: Health(False, {"kafka": "it is away"}))
    ill = http.get("/healthcheck")
    assert (ill.status_code, ill.json()["isHealthy"]) == (503, False)
    assert ill.json()["details"]["kafka"] == {"isHealthy": False, "message": "it is away"}
    assert ill.json()["details"]["metastore"] == {"isHealthy": True}


def test_unknown_endpoints_and_methods(http: httpx.Client) -> None:
    assert codes_of(http.get("/nothing")) == (404, 40400)
    assert codes_of(http.get("/ksql")) == (405, 40500)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"ksql": 5}',
        b'{"ksql": ""}',
        b'{"ksql": ";;"}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"ksql": "SHOW STREAMS;", "streamsProperties": 5}',
        b'{"ksql": "SHOW STREAMS;", "streamsProperties": {"a": []}}',
        b'{"ksql": "SHOW STREAMS;", "sessionVariables": []}',
        b'{"ksql": "SHOW STREAMS;", "sessionVariables": {"a": {}}}',
    ],
)
def test_bodies_that_cannot_be_used(http: httpx.Client, body: bytes) -> None:
    response = http.post("/ksql", content=body, headers={"content-type": "application/json"})
    assert codes_of(response) == (400, 40000)


def test_content_types(http: httpx.Client) -> None:
    body = b'{"ksql": "SHOW STREAMS;"}'
    for content_type in (
        "application/json; charset=utf-8",
        "application/vnd.ksql.v1+json",
        "application/x-www-form-urlencoded",
    ):
        assert http.post("/ksql", content=body, headers={"content-type": content_type}).status_code == 200
    assert http.post("/ksql", content=body).status_code == 200
    assert codes_of(http.post("/ksql", content=body, headers={"content-type": "text/plain"})) == (415, 41500)


def test_pages_of_other_sites_cannot_post(http: httpx.Client, url: str) -> None:
    body = {"ksql": "SHOW STREAMS;"}
    assert codes_of(http.post("/ksql", json=body, headers={"origin": "https://elsewhere.example"})) == (403, 40300)
    assert http.post("/ksql", json=body, headers={"origin": url}).status_code == 200


def test_a_body_that_is_too_large(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MAX_BODY", 1 << 20)
    assert codes_of(http.post("/ksql", json={"ksql": "-" * (3 << 20)})) == (413, 41300)


def test_deep_nesting_is_the_statements_fault(http: httpx.Client) -> None:
    deep = "SELECT " + "1 + (" * 3000 + "1" + ")" * 3000 + " FROM totals;"
    assert codes_of(http.post("/query-stream", json={"sql": deep}))[0] == 400


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SHOW STREAMS;", 40002),
        ("SELECT * FROM totals; SELECT * FROM totals;", 40000),
        ("SELECT nothing FROM totals;", 40001),
        ("SELECT", 40001),
        ("", 40000),
    ],
)
def test_queries_that_cannot_be_asked(http: httpx.Client, sql: str, code: int) -> None:
    assert codes_of(http.post("/query-stream", json={"sql": sql})) == (400, code)
    assert codes_of(http.post("/query", json={"ksql": sql})) == (400, code)


def test_a_form_that_does_not_exist(http: httpx.Client) -> None:
    asked = {"sql": "SELECT * FROM totals;"}
    assert codes_of(http.post("/query-stream", json=asked, headers={"accept": "text/html"})) == (406, 40600)
