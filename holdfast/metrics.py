"""Prometheus counters and histograms of the server; there is one server per process.

Gauges that are computed at each scrape, such as the lag of queries, are in `holdfast.server.http.metrics`.
"""

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

REGISTRY = CollectorRegistry()
"""Our own registry with the library's process metrics; other code may write to the library's global one."""
for collector in (ProcessCollector, PlatformCollector, GCCollector):
    collector(registry=REGISTRY)

QUICK = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
SLOW = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Seconds."""


def _counter(name: str, description: str, *labels: str) -> Counter:
    return Counter(f"holdfast_{name}", description, labels, registry=REGISTRY)


def _seconds(name: str, description: str, *labels: str, buckets: tuple[float, ...] = SLOW) -> Histogram:
    return Histogram(f"holdfast_{name}_seconds", description, labels, registry=REGISTRY, buckets=buckets)


TICKS = _counter("ticks", "Committed ticks; kind is tick, backfill or insert", "kind")
TICK_SECONDS = _seconds("tick", "Duration of a tick, from reading its records to the commit", "kind")
COMMIT_SECONDS = _seconds("commit", "Duration of a commit to the store", buckets=QUICK)
RECORDS_READ = _counter("records_read", "Records read by ticks and backfills", "topic")
RECORDS_PUBLISHED = _counter("records_published", "Records published to sink topics", "topic")
RECORDS_REFUSED = _counter("refused_records", "Records skipped because their sink topic refused them", "topic")
UNDECODABLE = _counter("undecodable_records", "Records that could not be decoded; see PROCESSING_LOG", "object")
UNLOGGED = _counter("unlogged_records", "Records that PROCESSING_LOG counts without having them: its outbox is full")
LATE = _counter("late_records", "Records dropped because all of their windows had closed or expired", "object")
SKIPPED = _counter("skipped_rows", "Rows skipped by a query; see PROCESSING_LOG", "object")
QUERY_FAILURES = _counter("query_failures", "Number of times a query stopped with an error", "query")
COMPACTION_SECONDS = _seconds("compaction", "Duration of one slice of compaction", buckets=QUICK)
COMPACTED = _counter("compacted_rows", "Rows of history removed by compaction")
SPARK_SECONDS = _seconds("spark_job", "Duration of Spark jobs; plan is prepared, small or large", "plan")
PULL_SECONDS = _seconds("pull", "Duration of pull queries, from the statement to the rows", buckets=QUICK)
PUSHED_ROWS = _counter("pushed_rows", "Rows sent to push queries")
REQUESTS = _counter("http_requests", "HTTP requests by endpoint and status", "endpoint", "status")
