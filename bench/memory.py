"""(e): resident memory of server, Spark and broker, when idle and with a table of 1,000,000 rows."""

import time

import psutil

from bench.service import load_orders, run, running, wait_running
from holdfast.app import Service

ROWS = 1_000_000


def resident(service: Service) -> float:
    """Megabytes of this process and its children, with shared pages counted once per process."""
    jvm = service._sessions.large.sparkContext._jvm
    assert jvm is not None
    jvm.System.gc()
    time.sleep(5)
    own = psutil.Process()
    return float(sum(p.memory_info().rss for p in (own, *own.children(recursive=True)))) / 1e6


def measure() -> list[str]:
    with running() as service:
        time.sleep(10)
        rest = resident(service)
        run(
            service,
            "CREATE STREAM orders (user VARCHAR KEY, amount DOUBLE) "
            "WITH (KAFKA_TOPIC='bench_memory', VALUE_FORMAT='JSON', PARTITIONS=2);",
        )
        load_orders(service.settings.kafka or "", "bench_memory", ROWS, ROWS)
        run(service, "CREATE TABLE t AS SELECT user, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY user;")
        wait_running(service)
        while service._store.pending():
            time.sleep(0.2)
        full = resident(service)
    return [
        "| resident memory of all processes | MB | target |",
        "|---|--:|--:|",
        f"| (e) at rest | {rest:,.0f} | 2,500 |",
        f"| with a table of 1,000,000 rows, more | {full - rest:,.0f} | 500 |",
    ]


if __name__ == "__main__":
    print("\n".join(measure()))
