"""/metrics, and the table that documents it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from holdfast.errors import KafkaError
from holdfast.metrics import REGISTRY, UNDECODABLE
from holdfast.server.http.metrics import ServiceCollector
from holdfast.service import lag
from holdfast.service.status import Health
from tests.server.local import LocalService

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"
SUFFIX = {"counter": "_total"}


def scraped(http: httpx.Client) -> dict[str, float]:
    """Each metric by its name and labels."""
    response = http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        f"{sample.name}{{{','.join(f'{k}={v}' for k, v in sorted(sample.labels.items()))}}}": sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def families(service: LocalService) -> Iterator[Metric]:
    yield from (each for each in REGISTRY.collect() if each.name.startswith("holdfast_"))
    yield from ServiceCollector(service).collect()


def test_the_page_lists_every_metric(service: LocalService) -> None:
    lines = ["| metric | type | labels | meaning |", "|---|---|---|---|"]
    labels = {c._name: c._labelnames for c in REGISTRY._collector_to_names if hasattr(c, "_labelnames")}
    for family in sorted(families(service), key=lambda family: family.name):
        names = labels.get(family.name, getattr(family, "_labelnames", ()))
        shown = ", ".join(f"`{name}`" for name in names)
        name = f"{family.name}{SUFFIX.get(family.type, '')}"
        lines.append(f"| `{name}` | {family.type} | {shown} | {family.documentation} |")
    assert "\n".join(lines) in PAGE.read_text(), "put this into docs/operations.md:\n" + "\n".join(lines)


def test_what_the_service_is_asked_for(
    http: httpx.Client, service: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(service, "store_bytes", lambda: {"data": 4096, "log": 512})
    query = service.query
    with service.publishing.paused([]):
        service.put("TOTALS", ("a", 1), ("b", 2), ("c", 3))
        service.stop_reading()
        service.write("orders", *(("b", {"AMOUNT": n}) for n in range(7)))
        metrics = scraped(http)
    assert metrics[f"holdfast_query_lag_records{{query={query},topic=orders}}"] == 7
    assert metrics["holdfast_queries{state=RUNNING}"] == 1
    assert metrics["holdfast_queries{state=ERROR}"] == 0
    assert metrics["holdfast_store_bytes{part=log}"] == 512
    assert metrics["holdfast_pending_rows{}"] == 3
    assert metrics["holdfast_push_queries{}"] == 0
    assert metrics["holdfast_healthy{part=kafka}"] == 1


def test_an_open_push_query_is_counted(http: httpx.Client, url: str, service: LocalService) -> None:
    before = scraped(http)["holdfast_pushed_rows_total{}"]
    with httpx.stream("POST", f"{url}/query-stream", json={"sql": "SELECT id FROM totals EMIT CHANGES;"}) as response:
        push, parts = service.next_push(), response.iter_lines()
        service.put("TOTALS", ("a", 1), ("b", 2))
        assert [next(parts) for _ in range(3)]
        assert scraped(http)["holdfast_push_queries{}"] == 1
        service.put("TOTALS", ("c", 3))
        next(parts)
    assert service.has_closed(push)
    metrics = scraped(http)
    assert metrics["holdfast_pushed_rows_total{}"] >= before + 2
    assert metrics["holdfast_push_queries{}"] == 0


def test_requests_are_counted_by_endpoint_and_status(http: httpx.Client) -> None:
    def counts() -> list[float]:
        metrics = scraped(http)
        asked = [("/ksql", 200), ("/ksql", 400), ("other", 404), ("/status", 404)]
        return [metrics.get(f"holdfast_http_requests_total{{endpoint={e},status={s}}}", 0.0) for e, s in asked]

    before = counts()
    http.post("/ksql", json={"ksql": "SHOW STREAMS;"})
    http.post("/ksql", json={"ksql": "SHOW STREMS;"})
    for path in ("/a", "/b", "/status/x/y/z"):
        http.get(path)
    assert [now - then for then, now in zip(before, counts(), strict=True)] == [1, 1, 2, 1]


def test_a_pull_is_timed(http: httpx.Client) -> None:
    before = scraped(http)["holdfast_pull_seconds_count{}"]
    http.post("/query-stream", json={"sql": "SELECT id, total FROM totals;"})
    assert scraped(http)["holdfast_pull_seconds_count{}"] == before + 1


def test_what_cannot_be_asked_for_is_left_out(
    http: httpx.Client, service: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> dict:
        raise KafkaError("Kafka is away")

    monkeypatch.setattr(service, "lags", away)
    monkeypatch.setattr(service, "health", lambda: Health(False, {"kafka": "away"}))
    metrics = scraped(http)
    assert metrics["holdfast_healthy{part=kafka}"] == 0
    assert not any(name.startswith("holdfast_query_lag") for name in metrics)
    assert "holdfast_push_queries{}" in metrics


def test_names_of_objects_may_be_anything(http: httpx.Client) -> None:
    UNDECODABLE.labels('a "quoted"\n name').inc(2)
    assert 2 in scraped(http).values()
