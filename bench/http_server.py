"""The HTTP server: pulls by key, rows to push queries, and the memory of an idle push query.

The load generator runs in its own process (`bench.http_load`), on the same machine.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import psutil

from bench.service import load_orders, run, running, wait_running
from holdfast.app import Service
from holdfast.server.http.server import listen
from holdfast.server.http.server import running as serving

ROWS, SECONDS, UPDATES, IDLE = 1_000_000, 10, 100_000, 500
TOPIC = "bench_serving"
PULL = "SELECT * FROM t WHERE user = 'u{}';"
PUSH = "SELECT user, n, total FROM t EMIT CHANGES;"


def load_command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "bench.http_load", *map(str, arguments)]


def pulls(url: str, connections: int) -> str:
    """Requests per second, and their latencies."""
    command = load_command("pulls", url, connections, SECONDS, PULL, ROWS)
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return f"{result['rate']:,.0f}/s | {1000 * result['p50']:.1f} / {1000 * result['p99']:.1f} ms"


def pushed(service: Service, url: str, clients: int) -> float:
    """Rows per second at all clients together, from the first row on."""
    rows = UPDATES // (1 if clients == 1 else 10)
    command = load_command("pushes", url, clients, PUSH, rows)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert following.stdout.readline().strip() == "open"
        load_orders(service.settings.kafka or "", TOPIC, rows, rows)
        return clients * rows / float(json.loads(following.stdout.readline())["seconds"])


@contextmanager
def idle(url: str, queries: int) -> Iterator[None]:
    """Idle push queries."""
    with subprocess.Popen(
        load_command("pushes", url, queries, PUSH, 1), stdout=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        assert following.stdout.readline().strip() == "open"
        yield
        following.terminate()


def kilobytes_of_an_idle_push(url: str) -> float:
    own = psutil.Process()
    with idle(url, 20):
        # Exclude what the first queries load and start.
        time.sleep(2)
    before = float(own.memory_info().rss)
    with idle(url, IDLE):
        time.sleep(2)
        return (float(own.memory_info().rss) - before) / IDLE / 1000


def measure() -> list[str]:
    with running() as service:
        run(
            service,
            "CREATE STREAM orders (user VARCHAR KEY, amount DOUBLE) "
            f"WITH (KAFKA_TOPIC='{TOPIC}', VALUE_FORMAT='JSON', PARTITIONS=2);",
        )
        load_orders(service.settings.kafka or "", TOPIC, ROWS, ROWS)
        run(service, "CREATE TABLE t AS SELECT user, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY user;")
        wait_running(service)
        while service.pending_rows():
            time.sleep(0.2)
        with serving(service, listen(replace(service.settings, http_port=0))) as server:
            pulls(server.url, 4)
            found = {connections: pulls(server.url, connections) for connections in (1, 16, 64)}
            memory = kilobytes_of_an_idle_push(server.url)
            one, hundred = (pushed(service, server.url, clients) for clients in (1, 100))
    targets = {1: "p50 3 ms", 16: "2,000/s", 64: "2,000/s"}
    return [
        "| pulls by key of 1,000,000 rows, connections | rate | p50 / p99 | target |",
        "|--:|--:|--:|--:|",
        *(f"| {connections} | {result} | {targets[connections]} |" for connections, result in found.items()),
        "",
        "| push queries | |",
        "|---|--:|",
        f"| rows to 1 client | {one:,.0f}/s |",
        f"| rows to 100 clients, all together | {hundred:,.0f}/s |",
        f"| memory of an idle one | {memory:,.0f} kB |",
    ]


if __name__ == "__main__":
    print("\n".join(measure()))
