"""Figures of holds: advances a second, and what a hold that ages costs the ticks and the pulls of its table."""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.service import run, running
from bench.store import TABLE, Bench
from holdfast.names import HoldId
from holdfast.runtime.store.duckdb import DuckDbStore, open_store
from holdfast.runtime.store.port import Time
from holdfast.server.serve import listen
from holdfast.server.serve import running as serving

SECONDS, KEYS = 8, 10_000
ROWS, TICKS = 1_000, (0, 30, 120, 300)
"""Ticks of a thousand rows: ten of them are a second of 10,000 changes."""
TABLE_SQL = """
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='bench_held', VALUE_FORMAT='JSON', PARTITIONS=1);
"""


def advances(url: str, clients: int) -> float:
    """Statements a second; each client moves a hold of its own."""
    command = [sys.executable, "-m", "bench.asking", "statements", url, clients, SECONDS, "ALTER HOLD h{} ADVANCE;"]
    told = json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout)
    return float(told["rate"])


def aged(store: DuckDbStore, *, held: bool) -> list[tuple[float, float, int]]:
    """Medians in milliseconds of a tick and a pull, and the rows of history, at growing ages of a hold."""
    bench = Bench(store, KEYS)
    if held:
        store.keep(HoldId("h"), [TABLE], Time(store.frontier(TABLE).upper - 1))
    found, done = [], 0
    for ticks in TICKS:
        while done < ticks:
            _tick(bench)
            done += 1
        took = statistics.median(_tick(bench) * 1000 for _ in range(10))
        done += 10
        pulled = statistics.median(bench.pull() * 1000 for _ in range(50))
        found.append((took, pulled, _history(store)))
    return found


def _tick(bench: Bench) -> float:
    bench.now -= 900  # a tick each 100 ms
    took = bench.tick(ROWS)
    bench.store.compact(limit=50_000)
    return took


def _history(store: DuckDbStore) -> int:
    frontier = store.frontier(TABLE)
    return store.changes(TABLE, frontier.since, Time(frontier.upper - 1)).num_rows


def in_a_folder(measured: Callable[[DuckDbStore], list[tuple[float, float, int]]]) -> list[tuple[float, float, int]]:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder))
        try:
            return measured(store)
        finally:
            store.close()


def measure() -> list[str]:
    lines = ["| advances of holds, clients | a second | target |", "|--:|--:|--:|"]
    with running() as service:
        run(service, TABLE_SQL)
        for n in range(100):
            run(service, f"CREATE HOLD h{n} ON t;")
        service.settings = replace(service.settings, http_port=0)
        with serving(service, listen(service.settings)) as server:
            for clients, target in ((1, ""), (100, "1,000")):
                lines.append(f"| {clients} | {advances(server.url, clients):,.0f} | {target} |")
    with_hold = in_a_folder(lambda store: aged(store, held=True))
    without = in_a_folder(lambda store: aged(store, held=False))
    lines += [
        "",
        "| 10,000 changes a second, age of the hold | rows pinned | 1,000-row tick | pull by key | without the hold |",
        "|--:|--:|--:|--:|--:|",
    ]
    for ticks, (tick, pull, rows), (tick0, pull0, _) in zip(TICKS, with_hold, without, strict=True):
        ratios = f"{tick / tick0:.2f} and {pull / pull0:.2f} times"
        lines.append(f"| {ticks / 10:.0f} s | {rows:,} | {tick:.1f} ms | {pull:.2f} ms | {ratios} |")
    return lines
