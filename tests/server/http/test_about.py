"""The endpoints that describe the server, its commands and its queries."""

import httpx
import pytest

from holdfast.service import lag
from tests.server.local import LocalService


def test_status_of_all_commands(http: httpx.Client) -> None:
    assert http.get("/status").json() == {
        "commandStatuses": {
            "stream/`PROCESSING_LOG`/create": "SUCCESS",
            "stream/`ORDERS`/create": "SUCCESS",
            "table/`TOTALS`/create": "SUCCESS",
        }
    }
    http.post("/ksql", json={"ksql": "DROP TABLE totals;"})
    assert "table/`TOTALS`/drop" in http.get("/status").json()["commandStatuses"]


@pytest.mark.parametrize("name", ["`TOTALS`", "TOTALS", "totals"])
def test_status_of_one_command(http: httpx.Client, service: LocalService, name: str) -> None:
    query = service.query
    body = http.get(f"/status/table/{name}/create").json()
    assert body == {"status": "SUCCESS", "message": "Table TOTALS created.", "queryId": query}


def test_status_of_a_command_that_never_was(http: httpx.Client) -> None:
    response = http.get("/status/table/nothing/create")
    assert (response.status_code, response.json()["error_code"]) == (404, 40400)


def test_a_command_of_this_process_has_its_own_message(http: httpx.Client) -> None:
    http.post("/ksql", json={"ksql": "CREATE STREAM big AS SELECT * FROM orders WHERE amount > 5;"})
    body = http.get("/status/stream/BIG/create").json()
    assert (body["message"], body["queryId"][:8]) == ("Stream BIG created.", "CSAS_BIG")


def test_cluster_status(http: httpx.Client, service: LocalService, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "FRESH_SECONDS", 0.0)
    query = service.query
    service.order(*(("b", n) for n in range(4)))
    service.stop_reading()
    service.write("orders", *(("b", {"AMOUNT": n}) for n in range(7)))
    ((host, node),) = http.get("/clusterStatus").json()["clusterStatus"].items()
    assert url.endswith(host)
    assert node["hostAlive"] is True
    assert node["activeStandbyPerQuery"][query]["activePartitions"] == [{"topic": "orders", "partition": 0}]
    (lags,) = node["hostStoreLags"]["stateStoreLags"].values()
    assert lags["lagByPartition"] == {"orders-0": {"currentOffsetPosition": 5, "endOffsetPosition": 12, "offsetLag": 7}}


def test_properties_that_can_be_set(http: httpx.Client) -> None:
    assert http.get("/is_valid_property/auto.offset.reset").json() is True
    assert http.get("/is_valid_property/ksql.streams.auto.offset.reset").json() is True
    unknown = http.get("/is_valid_property/auto.ofset.reset")
    assert (unknown.status_code, unknown.json()["error_code"]) == (400, 40000)
    assert unknown.json()["hint"] == 'Did you mean "auto.offset.reset"?'


def test_the_openapi_document_names_every_endpoint(http: httpx.Client) -> None:
    body = http.get("/openapi.json").json()
    assert set(body["paths"]) >= {
        "/ksql", "/query-stream", "/query", "/close-query", "/inserts-stream", "/info", "/healthcheck",
        "/clusterStatus", "/is_valid_property/{name}", "/status", "/status/{type}/{entity}/{action}",
    }  # fmt: skip
    for path, methods in body["paths"].items():
        for method, described in methods.items():
            assert described["responses"]["200"]["content"], (path, method)
            assert ("requestBody" in described) == (method == "post"), (path, method)
