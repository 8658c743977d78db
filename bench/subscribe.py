"""The snapshot of EMIT ALL, the delay from a commit to subscribers, historical reads, and a stopped reader.

Clients run in their own process (`bench.http_load`), on the same machine. The store alone is measured
without Spark and Kafka.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from confluent_kafka import Producer

from bench.service import load_orders, run, running
from holdfast.app import Service
from holdfast.errors import ReadError
from holdfast.names import CollectionId, QueryId
from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb.store import DuckDbStore, open_store
from holdfast.runtime.store.port import Layout, Time
from holdfast.server.http.server import listen
from holdfast.server.http.server import running as serving
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.syntax.parse import statements
from holdfast.types import Scalar

ROWS = int(sys.argv[1]) if __name__ == "__main__" and sys.argv[1:] else 1_000_000
RATE, SECONDS = 20, 10
TOPIC, EVENTS = "bench_subscribe", "bench_subscribe_events"
SNAPSHOT = "SELECT user, amount, city FROM t EMIT ALL;"
HISTORIES = (1, 100, 10_000)
TICKS, TICK_ROWS, KEYS = 1_000, 20, 10_000
TABLE, LAYOUT = CollectionId("T"), Layout((Scalar.STRING,), (Scalar.BIGINT, Scalar.DOUBLE))
SCHEMA = schemas.upsert_schema(LAYOUT)


# ---- over HTTP


def load_client(*arguments: object) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.http_load", *map(str, arguments)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def delays(service: Service, url: str, clients: int) -> tuple[float, float]:
    """Milliseconds from the time of a tick to its arrival: median and p99, over all clients."""
    rows = RATE * SECONDS
    following_e = "SUBSCRIBE e WITH (SNAPSHOT = false);"
    command = [sys.executable, "-m", "bench.http_load", "delays", url, str(clients), following_e, str(rows)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert following.stdout.readline().strip() == "open"
        producer = Producer({"bootstrap.servers": service.settings.kafka, "linger.ms": 0})
        for n in range(rows):
            # An unchanged row would not be a change.
            producer.produce(EVENTS, b'{"n":%d}' % time.time_ns(), b"u%d" % n)
            producer.poll(0)
            time.sleep(1 / RATE)
        producer.flush()
        result = json.loads(following.stdout.readline())
    return float(result["p50"]), float(result["p99"])


def rows_of(service: Service) -> int:
    parsed = next(iter(statements("SELECT COUNT(*) AS n FROM t;")))
    bound = bind(parsed.statement, service.catalog, {})
    assert isinstance(bound, BoundRead)
    try:
        return int(service.pull(bound).rows.column(0)[0].as_py())
    except ReadError:
        return 0


def over_http() -> list[str]:
    with running() as service:
        run(
            service,
            "CREATE TABLE t (user VARCHAR PRIMARY KEY, amount DOUBLE, city VARCHAR) "
            f"WITH (KAFKA_TOPIC='{TOPIC}', VALUE_FORMAT='JSON', PARTITIONS=2);"
            "CREATE TABLE e (k VARCHAR PRIMARY KEY, n BIGINT) "
            f"WITH (KAFKA_TOPIC='{EVENTS}', VALUE_FORMAT='JSON', PARTITIONS=1);",
        )
        load_orders(service.settings.kafka or "", TOPIC, ROWS, ROWS)
        while rows_of(service) < ROWS:
            time.sleep(0.5)
        with serving(service, listen(replace(service.settings, http_port=0))) as server:
            load_client("snapshot", server.url, SNAPSHOT, ROWS)
            snapshot = load_client("snapshot", server.url, SNAPSHOT, ROWS)
            delays(service, server.url, 1)
            one, hundred = (delays(service, server.url, clients) for clients in (1, 100))
    return [
        f"| EMIT ALL of {ROWS:,} rows | | target |",
        "|---|--:|--:|",
        f"| rows of the snapshot | {ROWS / snapshot['seconds']:,.0f}/s | 500,000/s |",
        f"| time to its first row | {1000 * snapshot['first']:.0f} ms | 100 ms |",
        "",
        "| from a tick's commit to subscribers | median | p99 |",
        "|---|--:|--:|",
        f"| 1 subscriber | {one[0]:.0f} ms | {one[1]:.0f} ms |",
        f"| 100 subscribers | {hundred[0]:.0f} ms | {hundred[1]:.0f} ms |",
    ]


# ---- the store alone


@contextmanager
def a_store() -> Iterator[DuckDbStore]:
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        store = open_store(Path(folder))
        try:
            store.create_collection(TABLE, LAYOUT, window_ms=1_000_000_000)
            yield store
        finally:
            store.close()


def tick(store: DuckDbStore, time_: int, first: int, rows: int) -> float:
    """Change some keys; returns the seconds it took."""
    keys = (np.arange(first, first + rows) % KEYS).astype(str)
    numbers = np.full(rows, time_, np.int64)
    columns = {"k0": keys, "c0": numbers, "c1": numbers.astype(np.float64), "ts": numbers, "present": [True] * rows}
    table = pa.table(columns).select(SCHEMA.names).cast(SCHEMA)
    began = time.perf_counter()
    stage = store.stage()
    stage.upsert(QueryId("Q"), TABLE, table)
    stage.commit(Time(time_))
    took = time.perf_counter() - began
    store.set_upper([TABLE], Time(time_ + 1))
    return took


def read_ms(store: DuckDbStore, at: int) -> float:
    """Milliseconds of a sum over all rows as of a time, the median of several."""
    times = []
    for _ in range(9):
        began = time.perf_counter()
        store.evaluate("SELECT sum(c0) AS r0 FROM t", {"t": (TABLE, Time(at))})
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


def reads_of_the_past() -> list[str]:
    lines = [
        f"| retained history of a table with {KEYS:,} rows | read at its first time | at the present |",
        "|--:|--:|--:|",
    ]
    for ticks in HISTORIES:
        with a_store() as store:
            tick(store, 1, 0, KEYS)
            for n in range(ticks):
                tick(store, n + 2, n * TICK_ROWS, TICK_ROWS)
            past, now = read_ms(store, 1), read_ms(store, ticks + 1)
        lines.append(f"| {ticks:,} ticks | {past:.1f} ms | {now:.1f} ms |")
    return lines


def ticks_with(*, stopped: bool) -> tuple[float, float]:
    """Milliseconds of a tick: the median of the first hundred and of the last."""
    with a_store() as store:
        tick(store, 1, 0, KEYS)
        hold = store.pin(TABLE, Time(1)) if stopped else None
        took = []
        for n in range(TICKS):
            took.append(1000 * tick(store, n + 2, n * TICK_ROWS, TICK_ROWS))
            store.advance_since(TABLE, Time(n + 2))
            if n % 10 == 0:
                store.compact(limit=1_000)
        if hold is not None:
            store.unpin(hold)
    return statistics.median(took[:100]), statistics.median(took[-100:])


def stopped_readers() -> list[str]:
    lines = [f"| a tick of {TICK_ROWS} rows, over {TICKS:,} ticks | first 100 | last 100 |", "|---|--:|--:|"]
    for what, stopped in (("no subscriber", False), ("one that stopped reading at the start", True)):
        first, last = ticks_with(stopped=stopped)
        lines.append(f"| {what} | {first:.1f} ms | {last:.1f} ms |")
    return lines


def measure() -> list[str]:
    return [*over_http(), "", *reads_of_the_past(), "", *stopped_readers()]


if __name__ == "__main__":
    print("\n".join(measure()))
