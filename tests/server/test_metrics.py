"""/metrics, and the table that documents it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from holdfast.errors import KafkaError
from holdfast.metrics import REGISTRY, UNDECODABLE
from holdfast.server.metrics import ServiceCollector
from holdfast.server.pushes import Pushes

from .fake import FakeService, Health

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
SUFFIX = {"counter": "_total"}


def scraped(http: httpx.Client) -> dict[str, float]:
    """Each figure by its name and labels."""
    response = http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        f"{sample.name}{{{','.join(f'{k}={v}' for k, v in sorted(sample.labels.items()))}}}": sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def families(service: FakeService) -> Iterator[Metric]:
    yield from (each for each in REGISTRY.collect() if each.name.startswith("holdfast_"))
    yield from ServiceCollector(service, Pushes(service)).collect()


def test_the_page_lists_every_figure(service: FakeService) -> None:
    lines = ["| figure | kind | labels | meaning |", "|---|---|---|---|"]
    labels = {c._name: c._labelnames for c in REGISTRY._collector_to_names if hasattr(c, "_labelnames")}
    for family in sorted(families(service), key=lambda family: family.name):
        names = labels.get(family.name, getattr(family, "_labelnames", ()))
        shown = ", ".join(f"`{name}`" for name in names)
        name = f"{family.name}{SUFFIX.get(family.type, '')}"
        lines.append(f"| `{name}` | {family.type} | {shown} | {family.documentation} |")
    assert "\n".join(lines) in PAGE.read_text(), "put this into docs/operations.md:\n" + "\n".join(lines)


def test_what_the_service_is_asked_for(http: httpx.Client, service: FakeService) -> None:
    (query,) = service.catalog.queries
    told = scraped(http)
    assert told[f"holdfast_query_lag_records{{query={query},topic=orders}}"] == 7
    assert told["holdfast_queries{state=RUNNING}"] == 1
    assert told["holdfast_queries{state=ERROR}"] == 0
    assert told["holdfast_store_bytes{part=log}"] == 512
    assert told["holdfast_owed_rows{}"] == 3
    assert told["holdfast_push_queries{}"] == 0
    assert told["holdfast_healthy{part=kafka}"] == 1


def test_an_open_push_query_is_counted(http: httpx.Client, url: str, service: FakeService) -> None:
    before = scraped(http)["holdfast_pushed_rows_total{}"]
    with httpx.stream("POST", f"{url}/query-stream", json={"sql": "SELECT id FROM totals EMIT CHANGES;"}) as response:
        push, parts = service.next_push(), response.iter_lines()
        push.put(("a", False), ("b", False))
        assert [next(parts) for _ in range(3)]
        assert scraped(http)["holdfast_push_queries{}"] == 1
        push.put(("c", False))
        next(parts)
    assert push.closed.wait(1)
    told = scraped(http)
    assert told["holdfast_pushed_rows_total{}"] >= before + 2
    assert told["holdfast_push_queries{}"] == 0


def test_requests_are_counted_by_endpoint_and_status(http: httpx.Client) -> None:
    def counts() -> list[float]:
        told = scraped(http)
        asked = [("/ksql", 200), ("/ksql", 400), ("other", 404), ("/status", 404)]
        return [told.get(f"holdfast_http_requests_total{{endpoint={e},status={s}}}", 0.0) for e, s in asked]

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


def test_what_cannot_be_asked_for_is_left_out(http: httpx.Client, service: FakeService) -> None:
    def away() -> dict:
        raise KafkaError("Kafka is away")

    service.lags = away  # type: ignore[method-assign]
    service.state = Health(False, {"kafka": "away"})
    told = scraped(http)
    assert told["holdfast_healthy{part=kafka}"] == 0
    assert not any(name.startswith("holdfast_query_lag") for name in told)
    assert "holdfast_push_queries{}" in told


def test_names_of_objects_may_be_anything(http: httpx.Client) -> None:
    UNDECODABLE.labels('a "quoted"\n name').inc(2)
    assert 2 in scraped(http).values()
