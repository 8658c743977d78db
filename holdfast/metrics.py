"""What the server counts and times, for Prometheus. One server to a process: the figures are the process's.

What can be asked for when it is wanted, such as how far queries are behind, is not kept here: see
`holdfast.server.metrics`.
"""

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

REGISTRY = CollectorRegistry()
"""Ours, and what the library knows of the process; not the library's global one, which others may write to."""
for collector in (ProcessCollector, PlatformCollector, GCCollector):
    collector(registry=REGISTRY)

QUICK = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
SLOW = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Seconds."""


def _counter(name: str, meaning: str, *labels: str) -> Counter:
    return Counter(f"holdfast_{name}", meaning, labels, registry=REGISTRY)


def _seconds(name: str, meaning: str, *labels: str, buckets: tuple[float, ...] = SLOW) -> Histogram:
    return Histogram(f"holdfast_{name}_seconds", meaning, labels, registry=REGISTRY, buckets=buckets)


TICKS = _counter("ticks", "Ticks that were committed; kind is tick, backfill or insert", "kind")
TICK_SECONDS = _seconds("tick", "From the records of a tick to its commit", "kind")
COMMIT_SECONDS = _seconds("commit", "Committing a tick to the store", buckets=QUICK)
RECORDS_READ = _counter("records_read", "Records that ticks have read, also while catching up", "topic")
RECORDS_PUBLISHED = _counter("records_published", "Records that were written to sink topics", "topic")
UNDECODABLE = _counter("undecodable_records", "Records that could not be decoded: see PROCESSING_LOG", "object")
LATE = _counter("late_records", "Records that came after all of their windows had closed", "object")
SKIPPED = _counter("skipped_rows", "Rows that a query had no place for: see PROCESSING_LOG", "object")
QUERY_FAILURES = _counter("query_failures", "How often a query has stopped with an error", "query")
COMPACTION_SECONDS = _seconds("compaction", "One slice of forgetting history that nobody can read", buckets=QUICK)
COMPACTED = _counter("compacted_rows", "Rows of history that were forgotten")
SPARK_SECONDS = _seconds("spark_job", "Jobs on Spark; plan is prepared, small or large", "plan")
PULL_SECONDS = _seconds("pull", "Pull queries, from the statement to the rows", buckets=QUICK)
PUSHED_ROWS = _counter("pushed_rows", "Rows that were sent to push queries")
REQUESTS = _counter("http_requests", "Requests by endpoint and status", "endpoint", "status")
