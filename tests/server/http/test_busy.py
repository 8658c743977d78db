"""A coordinator that is busy does not keep the server from answering what does not need it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from threading import Event

import httpx
import pytest

from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.server.http.app import MAX_CHANGES
from holdfast.server.http.server import listen, running
from tests.server.local import ORDERS, TOTALS, LocalService, eventually, local_service

AGAIN = ORDERS.replace("CREATE STREAM", "CREATE STREAM IF NOT EXISTS")


@contextmanager
def busy_server(
    engines: EnginePair, monkeypatch: pytest.MonkeyPatch, **settings: object
) -> Iterator[tuple[LocalService, httpx.Client, Event]]:
    """A server whose coordinator is in a tick that ends with the event."""
    free, busy = Event(), Event()
    whole = Engine.run

    def slow(self, fragments, inputs):
        busy.set()
        free.wait(60)
        return whole(self, fragments, inputs)

    with local_service(engines, **settings) as service:
        service.run(ORDERS + TOTALS).order(("a", 3))
        with (
            running(service, listen(service.settings)) as server,
            httpx.Client(base_url=server.url, timeout=30, trust_env=False) as http,
            monkeypatch.context() as patched,
        ):
            patched.setattr(Engine, "run", slow)
            service.write("orders", ("b", {"AMOUNT": 5}))
            assert busy.wait(60)
            try:
                yield service, http, free
            finally:
                free.set()


def test_health_metrics_and_reads_answer_while_all_statements_wait(
    engines: EnginePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    with busy_server(engines, monkeypatch) as (service, http, free):

        def run(_number: int) -> int:
            return httpx.post(f"{http.base_url}/ksql", json={"ksql": AGAIN}, timeout=60, trust_env=False).status_code

        with ThreadPoolExecutor(MAX_CHANGES + 6) as clients:
            asked = [clients.submit(run, number) for number in range(MAX_CHANGES + 6)]
            try:
                assert eventually(lambda: service.coordinator._requests._queue.qsize() == MAX_CHANGES)
                assert http.get("/healthcheck").json()["isHealthy"] is True
                assert "holdfast_healthy" in http.get("/metrics").text
                pulled = http.post("/query-stream", json={"sql": "SELECT * FROM totals;"})
                assert pulled.text.splitlines()[1:] == ['["a",3]']
                assert not any(each.done() for each in asked)
            finally:
                free.set()
            assert {each.result() for each in asked} == {200}


def test_the_health_check_says_what_the_coordinator_is_busy_with(
    engines: EnginePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    with busy_server(engines, monkeypatch) as (service, http, _free):
        service.clock.advance(20)
        noticed = http.get("/healthcheck")
        service.clock.advance(60)
        stuck = http.get("/healthcheck")
    assert noticed.status_code == 200
    assert noticed.json()["details"]["commandRunner"]["isHealthy"] is True
    assert noticed.json()["details"]["commandRunner"]["message"].startswith("busy for 2")
    assert (stuck.status_code, stuck.json()["isHealthy"]) == (503, False)
    assert stuck.json()["details"]["commandRunner"]["message"].endswith(" s with a tick")


def test_a_statement_that_the_coordinator_does_not_begin_in_time_is_withdrawn(
    engines: EnginePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    with busy_server(engines, monkeypatch, request_timeout=timedelta(seconds=2)) as (service, http, free):
        refused = http.post("/ksql", json={"ksql": "DROP TABLE totals;"})
        assert (refused.status_code, refused.json()["error_code"]) == (504, 50400)
        assert refused.json()["sqlstate"] == "57014"
        assert "was withdrawn" in refused.json()["detail"]
        free.set()
        assert eventually(lambda: http.post("/ksql", json={"ksql": AGAIN}).status_code == 200)
        assert service.catalog.find("TOTALS") is not None
