"""Pull queries by an indexed value, compared with a scan of all rows, with more and more rows: complete queries, from
the bound statement to the rows, in one process. Each value has 20 rows; a tick changes 20 rows before each query.

python -m bench.indexes 10000 1000000
"""

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from bench.store import key
from holdfast.catalog.fold import apply
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.coordinator.uppers import Uppers
from holdfast.names import CollectionId, QueryId
from holdfast.planner.commands import commands_for
from holdfast.runtime.progress import Progress, Status
from holdfast.runtime.store.duckdb import DuckDbStore, open_store
from holdfast.runtime.store.port import Layout, Time
from holdfast.serving.pull.table import pull
from holdfast.serving.time.read_times import Times
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.bind.ddl_kind import BoundDdl
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import parse
from holdfast.types import Scalar
from holdfast.wall_clock import WallClock

SQL = """
CREATE TABLE t (id STRING PRIMARY KEY, city STRING, n BIGINT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE INDEX by_city ON t (city);
"""
QUERY, TABLE, INDEX = QueryId("Q"), CollectionId("T"), CollectionId("BY_CITY")
LAYOUT = Layout((Scalar.STRING,), (Scalar.STRING, Scalar.BIGINT))
ARRANGED = Layout((Scalar.STRING, Scalar.STRING), (Scalar.STRING, Scalar.BIGINT), 1)
LOAD, EACH = 250_000, 20


def city(number: int, rows: int) -> str:
    return f"city {number % max(1, rows // EACH)}"


class Bench:
    def __init__(self, store: DuckDbStore, rows: int) -> None:
        self.store, self.rows, self.now = store, rows, 1
        store.create_collection(TABLE, LAYOUT, window_ms=1_000)
        store.create_collection(INDEX, ARRANGED, window_ms=1_000)
        for start in range(0, rows, LOAD):
            self.upsert(range(start, min(start + LOAD, rows)))
            store.compact(limit=10**9)
        running = Progress(Status.RUNNING)
        uppers = Uppers(store, lambda: Time(self.now), lambda _query: running, lambda _query: None)
        self.times = Times(store, uppers, WallClock(), Wakeup())
        self.catalog, self.plain = catalog(SQL), catalog(SQL.rpartition("CREATE INDEX")[0])

    def upsert(self, numbers: Sequence[int]) -> None:
        n = len(numbers)
        keys, cities = [key(i) for i in numbers], [city(i, self.rows) for i in numbers]
        rest = {"c0": cities, "c1": pa.array([random.randrange(2**40) for _ in numbers], pa.int64())}
        rest |= {"ts": pa.array([self.now] * n, pa.int64()), "present": [True] * n}
        stage = self.store.stage()
        stage.upsert(QUERY, TABLE, pa.table({"k0": keys, **rest}))
        stage.upsert(QUERY, INDEX, pa.table({"k0": cities, "k1": keys, **rest}))
        self.now += 1_000
        stage.commit(Time(self.now))
        self.store.set_upper([TABLE, INDEX], Time(self.now + 1))

    def pull(self, catalog_: Catalog) -> float:
        """Milliseconds of one pull."""
        self.upsert(random.sample(range(self.rows), EACH))
        text = f"SELECT id, n FROM t WHERE city = '{city(random.randrange(self.rows), self.rows)}';"
        bound = bind(parse(text)[0].statement, catalog_)
        assert isinstance(bound, BoundSelect)
        began = time.perf_counter()
        # The query has no function that only Spark supports, so no engine is needed.
        found = pull(bound, self.store, None, self.times)  # type: ignore[arg-type]
        took = time.perf_counter() - began
        assert found.rows.num_rows == EACH, found.rows.num_rows
        return took * 1_000


def catalog(sql: str) -> Catalog:
    found = EMPTY
    for number, parsed in enumerate(parse(sql)):
        bound = bind(parsed.statement, found)
        assert isinstance(bound, BoundDdl)
        for command in commands_for(bound, text=parsed.text, number=number):
            found = apply(found, command)
    return found


def measure(sizes: Sequence[int] = (10_000, 1_000_000)) -> list[str]:
    lines = [
        "## Indexes",
        "",
        "A pull by a value that 20 rows have (median of 25), through an index and through all rows; a tick of 20 rows "
        "before each.",
        "",
        "| rows | by the index | all rows | ratio |",
        "|---|---|---|---|",
    ]
    for rows in sizes:
        with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
            store = open_store(Path(folder))
            bench = Bench(store, rows)
            pairs = [(bench.pull(bench.catalog), bench.pull(bench.plain)) for _ in range(30)][5:]
            by_index, by_scan = (statistics.median(took) for took in zip(*pairs, strict=True))
            lines.append(f"| {rows:,} | {by_index:.1f} ms | {by_scan:.1f} ms | {by_scan / by_index:.1f} |")
            store.close()
    return lines


if __name__ == "__main__":
    print("\n".join(measure([int(size) for size in sys.argv[1:]] or (10_000, 1_000_000))))
