"""/metrics: what the process has counted, and what is asked for when Prometheus asks."""

import logging
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.errors import HoldfastError
from holdfast.metrics import REGISTRY, REQUESTS
from holdfast.server.pushes import Pushes
from holdfast.server.service import Service

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PARTS = ("ticks", "kafka", "store")
STATES = ("RUNNING", "BUILDING", "ERROR", "INCOMPATIBLE")

log = logging.getLogger(__name__)


class ServiceCollector(Collector):
    """The state of a service at the moment of asking."""

    def __init__(self, service: Service, pushes: Pushes) -> None:
        self._service, self._pushes = service, pushes

    def collect(self) -> Iterable[GaugeMetricFamily]:
        for ask in (self._health, self._queries, self._lags, self._store, self._open_pushes):
            try:
                yield from ask()
            except HoldfastError as error:
                # Kafka may be away: what else there is to tell is told, and `holdfast_healthy` says the rest.
                log.info("a figure cannot be told: %s", error)

    def _health(self) -> Iterator[GaugeMetricFamily]:
        healthy = GaugeMetricFamily("holdfast_healthy", "1 while a part of the server works, else 0", labels=["part"])
        problems = self._service.health().problems
        for part in PARTS:
            healthy.add_metric([part], 0.0 if part in problems else 1.0)
        yield healthy

    def _queries(self) -> Iterator[GaugeMetricFamily]:
        queries = self._service.queries()
        states = GaugeMetricFamily("holdfast_queries", "Queries by state", labels=["state"])
        for state in STATES:
            states.add_metric([state], sum(query.state == state for query in queries))
        done = GaugeMetricFamily(
            "holdfast_backfill_ratio", "The part of its backfill that a query has done", labels=["query"]
        )
        for query in queries:
            done.add_metric([query.id], query.done)
        yield states
        yield done

    def _lags(self) -> Iterator[GaugeMetricFamily]:
        lag = GaugeMetricFamily(
            "holdfast_query_lag_records", "How many offsets a query is behind a topic", labels=["query", "topic"]
        )
        for query, partitions in self._service.lags().items():
            behind: dict[str, int] = {}
            for part in partitions:
                behind[part.topic] = behind.get(part.topic, 0) + max(0, part.end - part.current)
            for topic, offsets in behind.items():
                lag.add_metric([query, topic], offsets)
        yield lag

    def _store(self) -> Iterator[GaugeMetricFamily]:
        sizes = GaugeMetricFamily(
            "holdfast_store_bytes", "Bytes on disk of the store; part is data or log", labels=["part"]
        )
        for part, size in self._service.store_bytes().items():
            sizes.add_metric([part], size)
        owed = GaugeMetricFamily("holdfast_owed_rows", "Rows that sink topics have still to get")
        owed.add_metric([], self._service.owed_rows())
        yield sizes
        yield owed

    def _open_pushes(self) -> Iterator[GaugeMetricFamily]:
        pushes = GaugeMetricFamily("holdfast_push_queries", "Push queries that are open")
        pushes.add_metric([], len(self._pushes.open()))
        yield pushes
        lag = GaugeMetricFamily(
            "holdfast_subscription_lag_seconds", "How far behind the present the slowest push query is"
        )
        held = GaugeMetricFamily(
            "holdfast_subscription_buffered_bytes", "The most that the server holds for a client now"
        )
        peak = GaugeMetricFamily(
            "holdfast_subscription_peak_buffered_bytes", "The most that it has held for one of them"
        )
        found = self._service.subscriptions()
        lag.add_metric([], max((each.lag_ms for each in found), default=0) / 1000)
        held.add_metric([], max((each.buffered_bytes for each in found), default=0))
        peak.add_metric([], max((each.peak_buffered_bytes for each in found), default=0))
        yield from (lag, held, peak)


def exposition(collector: ServiceCollector) -> bytes:
    """All figures, as Prometheus reads them."""
    return generate_latest(REGISTRY) + generate_latest(collector)


class CountRequests:
    """Counts answers by endpoint; what is no endpoint of ours counts as `other`."""

    def __init__(self, app: ASGIApp, known: Callable[[str], str]) -> None:
        self._app, self._known = app, known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        endpoint = self._known(scope["path"])

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                REQUESTS.labels(endpoint, str(message["status"])).inc()
            await send(message)

        await self._app(scope, receive, counted)
