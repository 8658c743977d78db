"""/metrics: the counters of the process, and gauges that are collected on each scrape."""

import logging
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.errors import HoldfastError
from holdfast.metrics import REGISTRY, REQUESTS
from holdfast.service.service import ServiceApi

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PARTS = ("ticks", "kafka", "publishing", "inserts", "subscriptions", "store")
STATES = ("RUNNING", "BUILDING", "WAITING", "PAUSED", "ERROR", "INCOMPATIBLE")

log = logging.getLogger(__name__)


class ServiceCollector(Collector):
    """The state of a service at the time of a scrape."""

    def __init__(self, service: ServiceApi) -> None:
        self._service = service

    def collect(self) -> Iterable[GaugeMetricFamily]:
        for collect in (self._health, self._queries, self._lags, self._store, self._open_pushes):
            try:
                yield from collect()
            except HoldfastError as error:
                # Kafka may be unavailable, which `holdfast_healthy` shows; the other metrics are still exposed.
                log.info("metric not collected: error=%s", error)

    def _health(self) -> Iterator[GaugeMetricFamily]:
        healthy = GaugeMetricFamily("holdfast_healthy", "1 if a part of the server works, else 0", labels=["part"])
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
            "holdfast_backfill_ratio", "Completed fraction of a query's backfill, from 0 to 1", labels=["query"]
        )
        for query in queries:
            done.add_metric([query.id], query.done)
        yield states
        yield done

    def _lags(self) -> Iterator[GaugeMetricFamily]:
        lag = GaugeMetricFamily(
            "holdfast_query_lag_records", "Offsets that a query is behind the end of a topic", labels=["query", "topic"]
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
            "holdfast_store_bytes", "Size of the store on disk; part is data or log", labels=["part"]
        )
        for part, size in self._service.store_bytes().items():
            sizes.add_metric([part], size)
        pending = GaugeMetricFamily("holdfast_pending_rows", "Rows still to be published to sink topics")
        pending.add_metric([], self._service.pending_rows())
        yield sizes
        yield pending

    def _open_pushes(self) -> Iterator[GaugeMetricFamily]:
        pushes = GaugeMetricFamily("holdfast_push_queries", "Open push queries")
        pushes.add_metric([], len(self._service.open_pushes()))
        yield pushes
        lag = GaugeMetricFamily("holdfast_subscription_lag_seconds", "Lag of the slowest push query")
        buffered = GaugeMetricFamily("holdfast_subscription_buffered_bytes", "Largest current buffer of one client")
        peak = GaugeMetricFamily("holdfast_subscription_peak_buffered_bytes", "Largest buffer of one client so far")
        found = self._service.subscriptions()
        lag.add_metric([], max((each.lag_ms for each in found), default=0) / 1000)
        buffered.add_metric([], max((each.buffered_bytes for each in found), default=0))
        peak.add_metric([], max((each.peak_buffered_bytes for each in found), default=0))
        yield from (lag, buffered, peak)


def exposition(collector: ServiceCollector) -> bytes:
    """All metrics in the Prometheus text format."""
    return generate_latest(REGISTRY) + generate_latest(collector)


class CountRequests:
    """Counts responses by endpoint; unknown endpoints count as `other`."""

    def __init__(self, app: ASGIApp, endpoint_of: Callable[[str], str]) -> None:
        self._app, self._endpoint_of = app, endpoint_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        endpoint = self._endpoint_of(scope["path"])

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                REQUESTS.labels(endpoint, str(message["status"])).inc()
            await send(message)

        await self._app(scope, receive, counted)
