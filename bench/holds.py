"""Holds: advances per second, and the cost of an ageing hold for the ticks and pull queries of its table."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bench.service import run, running
from bench.store import TABLE, Bench
from holdfast.names import HoldId
from holdfast.runtime.store.duckdb import open_store
from holdfast.runtime.store.port import RetainedHistory, Time
from holdfast.server.http.server import listen
from holdfast.server.http.server import running as serving

SECONDS, KEYS = 8, 10_000
ROWS, TICKS, MEASURED = 1_000, (0, 100, 600, 3_000), 50
"""Ticks of 1,000 rows: ten of them represent a second with 10,000 changes."""
HOLD = HoldId("h")
TABLE_SQL = """
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='bench_held', VALUE_FORMAT='JSON', PARTITIONS=1);
"""


def advances(url: str, clients: int) -> float:
    """Statements per second; each client advances its own hold."""
    command = [sys.executable, "-m", "bench.http_load", "statements", url, clients, SECONDS, "ALTER HOLD h{} ADVANCE;"]
    result = json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout)
    return float(result["rate"])


class Aged(NamedTuple):
    """Medians in milliseconds at some age of a hold, and the history it pins at that age."""

    tick: float
    compaction: float
    pull: float
    pinned: RetainedHistory


def aged(held: Bench, free: Bench) -> list[tuple[Aged, Aged]]:
    """The same load with and without a hold that is never advanced, in alternation on the same machine."""
    held.store.put_hold(HOLD, [TABLE], Time(held.store.frontier(TABLE).upper - 1))
    found, done = [], 0
    for ticks in TICKS:
        while done < ticks:
            for bench in (held, free):
                _tick(bench)
            done += 1
        took = [(_tick(held), _tick(free)) for _ in range(MEASURED)]
        done += MEASURED
        pulled = [(held.pull(), free.pull()) for _ in range(MEASURED)]
        found.append((_medians(held, took, pulled, 0), _medians(free, took, pulled, 1)))
    return found


def _medians(
    bench: Bench, took: Sequence[tuple[tuple[float, float], ...]], pulled: Sequence[tuple[float, ...]], which: int
) -> Aged:
    ticks, compactions = zip(*(each[which] for each in took), strict=True)
    tick, compaction, pull = (
        statistics.median(each) * 1000 for each in (ticks, compactions, [each[which] for each in pulled])
    )
    pinned = bench.store.retained_by(HOLD) if HOLD in bench.store.holds() else RetainedHistory(0, 0)
    return Aged(tick, compaction, pull, pinned)


def _tick(bench: Bench) -> tuple[float, float]:
    bench.now -= 900  # a tick each 100 ms
    took = bench.tick(ROWS)
    began = time.perf_counter()
    bench.store.compact(limit=50_000)
    return took, time.perf_counter() - began


@contextmanager
def loaded() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as folder, closing(open_store(Path(folder))) as store:
        yield Bench(store, KEYS)


def measure() -> list[str]:
    lines = ["| advances of holds, clients | a second | target |", "|--:|--:|--:|"]
    with running() as service:
        run(service, TABLE_SQL)
        for n in range(100):
            run(service, f"CREATE HOLD h{n} ON t;")
        service._sessions.warming.join()  # the state of a server some seconds after its start
        service.settings = replace(service.settings, http_port=0)
        with serving(service, listen(service.settings)) as server:
            for clients, target in ((1, ""), (100, "1,000")):
                lines.append(f"| {clients} | {advances(server.url, clients):,.0f} | {target} |")
    with loaded() as held, loaded() as free:
        found = aged(held, free)
    lines += [
        "",
        "| 10,000 changes a second, age of the hold | rows pinned | MB pinned | 1,000-row tick | its compaction"
        " | pull by key | tick and pull without the hold |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for ticks, (now, without) in zip(TICKS, found, strict=True):
        ratios = f"{now.tick / without.tick:.2f} and {now.pull / without.pull:.2f} times (at most 1.5)"
        lines.append(
            f"| {ticks / 10:.0f} s | {now.pinned.rows:,} | {now.pinned.bytes / 1e6:,.1f} | {now.tick:.1f} ms"
            f" | {now.compaction:.1f} ms | {now.pull:.2f} ms | {ratios} |"
        )
    return lines
