"""Figures of holds: advances a second, and what a hold that ages costs the ticks and the pulls of its table."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bench.service import run, running
from bench.store import TABLE, Bench
from holdfast.names import HoldId
from holdfast.runtime.store.duckdb import DuckDbStore, open_store
from holdfast.runtime.store.port import Pinned, Time
from holdfast.server.serve import listen
from holdfast.server.serve import running as serving

SECONDS, KEYS = 8, 10_000
ROWS, TICKS, MEASURED = 1_000, (0, 100, 600, 3_000), 20
"""Ticks of a thousand rows: ten of them are a second of 10,000 changes."""
HOLD = HoldId("h")
TABLE_SQL = """
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='bench_held', VALUE_FORMAT='JSON', PARTITIONS=1);
"""


def advances(url: str, clients: int) -> float:
    """Statements a second; each client moves a hold of its own."""
    command = [sys.executable, "-m", "bench.asking", "statements", url, clients, SECONDS, "ALTER HOLD h{} ADVANCE;"]
    told = json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout)
    return float(told["rate"])


class Aged(NamedTuple):
    """Medians in milliseconds at an age of a hold, and what it pins then."""

    tick: float
    compaction: float
    pull: float
    pinned: Pinned


def aged(store: DuckDbStore, *, held: bool) -> list[Aged]:
    """The same load with a hold that nobody moves, or with none."""
    bench = Bench(store, KEYS)
    if held:
        store.keep(HOLD, [TABLE], Time(store.frontier(TABLE).upper - 1))
    found, done = [], 0
    for ticks in TICKS:
        while done < ticks:
            _tick(bench)
            done += 1
        took = [_tick(bench) for _ in range(MEASURED)]
        done += MEASURED
        pulled = statistics.median(bench.pull() * 1000 for _ in range(50))
        tick, compaction = (statistics.median(each) * 1000 for each in zip(*took, strict=True))
        found.append(Aged(tick, compaction, pulled, store.pinned(HOLD)))
    return found


def _tick(bench: Bench) -> tuple[float, float]:
    bench.now -= 900  # a tick each 100 ms
    took = bench.tick(ROWS)
    began = time.perf_counter()
    bench.store.compact(limit=50_000)
    return took, time.perf_counter() - began


def in_a_folder(measured: Callable[[DuckDbStore], list[Aged]]) -> list[Aged]:
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
        service._sessions.warming.join()  # as a server is some seconds after its start
        service.settings = replace(service.settings, http_port=0)
        with serving(service, listen(service.settings)) as server:
            for clients, target in ((1, ""), (100, "1,000")):
                lines.append(f"| {clients} | {advances(server.url, clients):,.0f} | {target} |")
    with_hold = in_a_folder(lambda store: aged(store, held=True))
    without = in_a_folder(lambda store: aged(store, held=False))
    lines += [
        "",
        "| 10,000 changes a second, age of the hold | rows pinned | MB pinned | 1,000-row tick | its compaction"
        " | pull by key | tick and pull without the hold |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for ticks, now, free in zip(TICKS, with_hold, without, strict=True):
        ratios = f"{now.tick / free.tick:.2f} and {now.pull / free.pull:.2f} times (at most 1.5)"
        lines.append(
            f"| {ticks / 10:.0f} s | {now.pinned.rows:,} | {now.pinned.bytes / 1e6:,.1f} | {now.tick:.1f} ms"
            f" | {now.compaction:.1f} ms | {now.pull:.2f} ms | {ratios} |"
        )
    return lines
