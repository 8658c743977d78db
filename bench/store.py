"""Times of the store alone, at growing numbers of keys: a 20-key tick, a 1,000-key tick, a pull by key (d); and of
ticks that change many tables.

python bench/store.py 10000 1000000 10000000
"""

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from holdfast.names import CollectionId, QueryId, StateId, TopicName
from holdfast.runtime.store.duckdb import DuckDbStore, open_store
from holdfast.runtime.store.port import EndOffset, KeyRead, Layout, Merge, StateMerge, StateProjection, StateView, Time
from holdfast.types import Scalar

QUERY, TABLE, STATE, SHOWN = QueryId("Q"), CollectionId("table"), StateId("state"), CollectionId("shown")
LAYOUT = Layout((Scalar.STRING,), (Scalar.BIGINT, Scalar.STRING, Scalar.DOUBLE))
MERGE = Merge(initial=("0", "0"), merged=("s0 + p0", "greatest(s1, p1)"))
ALONG = StateProjection(columns=("s0", "s1"), having=None)
LOAD = 250_000
WARM_UP = 20
"""Ticks of 1,000 keys, after which most blocks of the file have been read."""


def key(number: int) -> str:
    """Keys in random order, so that zone maps do not help."""
    return f"{(number * 0x9E3779B97F4A7C15) % 2**64:016x}"


class Bench:
    def __init__(self, store: DuckDbStore, keys: int) -> None:
        self.store, self.keys, self.now = store, keys, 1
        store.create_collection(TABLE, LAYOUT, window_ms=1000)
        for start in range(0, keys, LOAD):
            self.upsert(range(start, min(start + LOAD, keys)))
            store.compact(limit=10**9)
        store.set_upper([TABLE], Time(self.now))

    def tick_time(self) -> Time:
        self.now += 1000
        return Time(self.now)

    def upsert(self, numbers: range | list[int]) -> None:
        n = len(numbers)
        rows = pa.table(
            {
                "k0": [key(i) for i in numbers],
                "c0": pa.array(numbers, pa.int64()),
                "c1": [f"name {random.random()}" for _ in range(n)],
                "c2": [random.random() for _ in range(n)],
                "ts": pa.array([self.now] * n, pa.int64()),
                "present": [True] * n,
            }
        )
        began = time.perf_counter()
        stage = self.store.stage()
        stage.upsert(QUERY, TABLE, rows)
        stage.move(QUERY, [EndOffset(TopicName("t"), p, self.now) for p in range(4)])
        stage.remap([EndOffset(TopicName("t"), p, self.now) for p in range(4)])
        stage.commit(self.tick_time())
        self.took = time.perf_counter() - began

    def tick(self, size: int) -> float:
        self.upsert(random.sample(range(self.keys), min(size, self.keys)))
        return self.took

    def pull(self) -> float:
        wanted = pa.table({"k0": [key(random.randrange(self.keys))]})
        at = Time(self.store.frontier(TABLE).upper - 1)
        began = time.perf_counter()
        found = self.store.evaluate_tuples("SELECT k0, c0, c1 FROM t", {"t": KeyRead(TABLE, at, wanted)})
        took = time.perf_counter() - began
        assert len(found) == 1
        return took


def milliseconds(take: Callable[[], float], times: int) -> float:
    take()
    return statistics.median(take() * 1000 for _ in range(times))


def merge_tick(folder: Path, keys: int, times: int) -> float:
    """A tick whose partials touch every one of `keys` groups: merge and derive."""
    store = open_store(folder)
    store.create_state(STATE, Layout((Scalar.BIGINT,), (Scalar.BIGINT, Scalar.BIGINT)))
    store.create_collection(SHOWN, Layout((Scalar.BIGINT,), (Scalar.BIGINT, Scalar.BIGINT)), window_ms=1000)
    store.set_upper([SHOWN], Time(1))
    now = 1
    numbers = pa.array(random.sample(range(keys), keys), pa.int64())
    partials = pa.table({"k0": numbers, "p0": numbers, "p1": numbers, "ts": numbers})

    def tick() -> float:
        nonlocal now
        now += 1000
        began = time.perf_counter()
        stage = store.stage()
        stage.merge([StateMerge(QUERY, STATE, partials, MERGE, StateView(SHOWN, ALONG))])
        stage.commit(Time(now))
        took = time.perf_counter() - began
        store.compact(limit=10**9)
        return took

    result = milliseconds(tick, times)
    store.close()
    return result


class Shared:
    """Aggregated tables of one topic, each with a sink: 20 keys of each in every tick, as the ticker stages it."""

    def __init__(self, store: DuckDbStore, tables: int, *, alike: bool) -> None:
        self.store, self.tables, self.now = store, tables, 1
        self.names = [(QueryId(f"Q{i}"), StateId(f"S{i}"), CollectionId(f"T{i}")) for i in range(tables)]
        # Different merges cannot be combined into one statement.
        self.merges = [MERGE if alike else replace(MERGE, initial=(str(i), "0")) for i in range(tables)]
        layout = Layout((Scalar.STRING,), (Scalar.BIGINT, Scalar.BIGINT))
        for query, state, shown in self.names:
            store.create_state(state, layout)
            store.create_collection(shown, layout, window_ms=1000)
            store.create_outbox(query, layout)
        store.set_upper([shown for *_, shown in self.names], Time(1))
        self.tick(range(1000))

    def partials(self, keys: range | list[int]) -> pa.Table:
        numbers = pa.array(keys, pa.int64())
        return pa.table({"k0": [key(i) for i in keys], "p0": numbers, "p1": numbers, "ts": numbers})

    def tick(self, keys: range | None = None) -> float:
        """One tick. Publishing and compaction run concurrently with ticks and are not measured."""
        arriving = [self.partials(keys or random.sample(range(1000), 20)) for _ in self.names]
        self.now += 200
        began = time.perf_counter()
        stage = self.store.stage()
        mergings = [
            StateMerge(query, state, rows, merge, StateView(shown, ALONG))
            for (query, state, shown), rows, merge in zip(self.names, arriving, self.merges, strict=True)
        ]
        assert not stage.merge(mergings)
        for query, _, shown in self.names:
            stage.enqueue_changes(query, shown)
            stage.delta(shown)
            stage.move(query, [EndOffset(TopicName("t"), 0, self.now)])
        stage.remap([EndOffset(TopicName("t"), 0, self.now)])
        stage.commit(Time(self.now))
        took = time.perf_counter() - began
        self.store.mark_published({query: Time(self.now) for query, _, _ in self.names})
        self.store.compact(limit=50_000)
        return took


def shared_ticks(times: int = 400) -> list[str]:
    """Ticks over many tables, for long enough that tables are flushed meanwhile."""
    lines = ["| tables with 20 keys each in a tick | median | slowest of 100 |", "|--:|--:|--:|"]
    for tables, alike in ((1, True), (10, True), (30, True), (30, False)):
        with tempfile.TemporaryDirectory() as folder:
            store = open_store(Path(folder))
            shared = Shared(store, tables, alike=alike)
            took = sorted(shared.tick() * 1000 for _ in range(times))
            store.close()
        kind = f"{tables}" if alike else f"{tables}, all different"
        lines.append(f"| {kind} | {statistics.median(took):.1f} ms | {took[-times // 100]:.1f} ms |")
    return lines


class Medians(NamedTuple):
    """Milliseconds, medians."""

    small_tick: float
    large_tick: float
    pull: float
    checkpoint: float


def series(bench: Bench) -> Medians:
    """Compaction runs concurrently with ticks and is not measured; a pull reads the state after 60 ticks."""
    large = milliseconds(lambda: bench.tick(1000), 20)
    bench.store.compact(limit=10**9)
    small = milliseconds(lambda: bench.tick(20), 60)
    pull = milliseconds(bench.pull, 100)
    began = time.perf_counter()
    bench.store._core.checkpoint(beyond=-1)
    return Medians(small, large, pull, (time.perf_counter() - began) * 1000)


def medians(folder: Path, counts: Sequence[int]) -> list[Medians]:
    """The best of three series; the stores alternate, so that all run under the same conditions."""
    benches = [Bench(open_store(folder / str(keys)), keys) for keys in counts]
    for bench in benches:
        for _ in range(WARM_UP):
            bench.tick(1000)
        bench.store.compact(limit=10**9)
        bench.store._core.checkpoint(beyond=-1)
    rounds = [[series(bench) for bench in benches] for _ in range(3)]
    for bench in benches:
        bench.store.close()
    return [Medians(*map(min, zip(*found, strict=True))) for found in zip(*rounds, strict=True)]


def measure(counts: Sequence[int] = (10_000, 1_000_000, 10_000_000)) -> list[str]:
    lines = [
        "| (d) store alone, keys | 20-key tick | 1,000-key tick | pull by key | checkpoint |",
        "|--:|--:|--:|--:|--:|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        found = medians(Path(folder), counts)
    lines += [
        f"| {keys:,} | {' | '.join(f'{value:.1f} ms' for value in row)} |"
        for keys, row in zip(counts, found, strict=True)
    ]
    small, _, pull, _ = (last / first for first, last in zip(found[0], found[-1], strict=True))
    lines.append(f"| growth (target 2) | {small:.2f} | | {pull:.2f} | |")
    with tempfile.TemporaryDirectory() as folder:
        lines += ["", f"A 100,000-key merge and derive takes {merge_tick(Path(folder), 100_000, 5):.0f} ms."]
    return [*lines, "", *shared_ticks()]


if __name__ == "__main__":
    print("\n".join(measure([int(n) for n in sys.argv[1:]]) if sys.argv[1:] else measure()))
