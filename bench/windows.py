"""Windowed tables: reading a changelog, fetches by key and range, and storage as retentions pass.

A changelog of a window store with 1,000,000 windows is read as a windowed table and, in turns, as a plain table with
the same bytes as keys. An application of Kafka Streams restores the same changelog into its window store.

python -m bench.windows 100000
"""

import random
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from bench.service import opened_sessions, run, running
from holdfast.app import Service
from holdfast.client import Client
from holdfast.client.stores import ReadOnlyWindowStore, open_store, window_store
from holdfast.config import load as load_settings
from holdfast.coordinator.intervals import Intervals
from holdfast.kafka.memory.broker import MemoryBroker
from holdfast.kafka.memory.kafka import MemoryKafka
from holdfast.kafka.port import TopicSpec
from holdfast.names import CollectionId, TopicName
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.runtime.spark.session import Sessions
from holdfast.runtime.store.duckdb import open_store as open_duckdb
from holdfast.server.http.server import listen
from holdfast.server.http.server import running as serving
from holdfast.streams.service_reader import ServiceReader
from holdfast.wall_clock import WallClock

WINDOWS = int(sys.argv[1]) if __name__ == "__main__" and sys.argv[1:] else 1_000_000
KEYS, MINUTE = 1_000, 60_000
PARTITIONS, ROUNDS = 2, 3
FETCHES, RANGE = 1_000, 10
ID = "bench-windows"
INPUT, CHANGELOG = f"{ID}-input", f"{ID}-tumbling-changelog"
RETENTIONS, PER_RETENTION = 10, 20_000
TABLES = {
    "windowed": (
        "k STRING PRIMARY KEY, v BIGINT",
        ", WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 MINUTE', WINDOW_TOPIC='CHANGELOG', RETENTION='30 DAYS'",
    ),
    "plain": ("k BYTES PRIMARY KEY, v BIGINT", ""),
}


def key_of(number: int) -> str:
    return f"key-{number % KEYS:06d}"


def changelog(first: int) -> Iterator[tuple[bytes, bytes, int]]:
    """Keys with their windows, values and timestamps: a window of each key, then the next one."""
    for number in range(WINDOWS):
        start = first + number // KEYS * MINUTE
        yield key_of(number).encode() + struct.pack(">qi", start, 0), struct.pack(">q", number), start + 1


def load(bootstrap: str, first: int) -> None:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": 1_000_000, "compression.type": "lz4"}
    )
    for number, (key, value, timestamp) in enumerate(changelog(first)):
        while True:
            try:
                producer.produce(CHANGELOG, value, key, partition=number % KEYS % PARTITIONS, timestamp=timestamp)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


# ---- reading a changelog


def materialize(service: Service, kind: str, name: str) -> float:
    """Seconds from the statement to a table that has read its topic."""
    columns, window = TABLES[kind]
    started = time.monotonic()
    run(service, f"CREATE TABLE {name} ({columns}) WITH (KAFKA_TOPIC='{CHANGELOG}', FORMAT='KAFKA'{window});")
    while service._store.frontier(CollectionId(name)).upper == 0:
        time.sleep(0.005)
    took = time.monotonic() - started
    rows = service._store.count(CollectionId(name))
    assert rows == WINDOWS, rows
    return took


def restored(bootstrap: str) -> float | str:
    """Seconds in which an application of Kafka Streams restores its store, or why there are none."""
    import pytest

    from tests.e2e.kafka_streams import windowed_application

    spans = (MINUTE, MINUTE, 30 * 24 * 60 * MINUTE, *(MINUTE,) * 3, 2 * MINUTE, MINUTE, MINUTE, 2 * MINUTE)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder,
            windowed_application(bootstrap, ID, INPUT, Path(folder) / "state", spans) as application,
        ):
            application.records()
            started = time.monotonic()
            while application.records() < 0:
                time.sleep(0.01)
            return time.monotonic() - started
    except pytest.skip.Exception as reason:
        return str(reason)


def of_changelogs(service: Service) -> list[str]:
    bootstrap = service.settings.kafka or ""
    took: dict[str, list[float]] = {kind: [] for kind in TABLES}
    for round_ in range(ROUNDS + 1):
        for kind in TABLES:
            name = f"{kind}_{round_}".upper()
            took[kind].append(materialize(service, kind, name))
            if (round_, kind) != (ROUNDS, "windowed"):
                run(service, f"DROP TABLE {name};")
    plain, windowed = (min(took[kind][1:]) for kind in ("plain", "windowed"))
    lines = [
        f"| {WINDOWS:,} records of a window store's changelog | best of {ROUNDS} | ratio | target |",
        "|---|--:|--:|--:|",
        f"| read as a plain table | {plain:.2f} s ({WINDOWS / plain:,.0f}/s) | 1 | |",
        f"| read as a windowed table | {windowed:.2f} s ({WINDOWS / windowed:,.0f}/s) "
        f"| {plain / windowed:.2f} of its rate | 0.8 |",
    ]
    found = restored(bootstrap)
    if isinstance(found, str):
        return [*lines, f"| restored by Kafka Streams | not measured: {found} | | |"]
    return [*lines, f"| restored by Kafka Streams, once | {found:.2f} s ({WINDOWS / found:,.0f}/s) | | |"]


# ---- fetches


def fetch_ms(store: ReadOnlyWindowStore[Any, Any], first: int, span: int | None) -> tuple[float, float]:
    """Milliseconds of `fetch(key, from, to)`: median and p99. `span` is the number of windows; None for all."""
    chosen, times = random.Random(7), []
    per_key = WINDOWS // KEYS
    for number in range(FETCHES):
        begin = first + chosen.randrange(max(1, per_key - RANGE)) * MINUTE
        bounds = (None, None) if span is None else (begin, begin + (span - 1) * MINUTE)
        key = key_of(chosen.randrange(KEYS))
        began = time.perf_counter()
        found = list(store.fetch(key, *bounds))
        times.append(1000 * (time.perf_counter() - began))
        assert len(found) == (min(per_key, RANGE) if span is not None else per_key), (number, len(found))
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


def of_fetches(service: Service, first: int) -> list[str]:
    name = f"WINDOWED_{ROUNDS}"
    lines = [
        f"| `fetch(key, from, to)`, {WINDOWS:,} windows of {KEYS:,} keys | median | p99 | target |",
        "|---|--:|--:|--:|",
    ]

    def measured(where: str, store: ReadOnlyWindowStore[Any, Any]) -> Iterator[str]:
        for what, span, target in ((f"{RANGE} windows", RANGE, "2 ms"), ("all windows of a key", None, "")):
            median, p99 = fetch_ms(store, first, span)
            yield f"| {where}, {what} | {median:.1f} ms | {p99:.1f} ms | {target} |"

    lines += measured("in process", open_store(ServiceReader(service), name, window_store()))
    with serving(service, listen(replace(service.settings, http_port=0))) as server, Client(server.url) as client:
        lines += measured("over HTTP", client.store(name, window_store()))
    return lines


# ---- storage


def stored_bytes(sessions: Sessions, progress: Callable[[int], None] = lambda _: None) -> list[int]:
    """The size of the store after each retention, all of whose windows are new."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        settings = load_settings({"data_dir": Path(folder)}, environment={})
        clock, engine = WallClock(), Engine(sessions, {})
        broker, store = MemoryBroker(clock), open_duckdb(Path(folder))
        broker.create(TopicSpec(name=TopicName("w"), partitions=1))
        service = Service(
            settings,
            sessions,
            store,
            MemoryKafka(broker, settings.service_id),
            clock,
            engines=EnginePair(ticks=engine, reads=engine),
            intervals=Intervals(settle=0.0),
            stepped=True,
            system_tables=False,
        )
        found = []
        with closing(_Stopped(service)):
            columns, window = TABLES["windowed"]
            window = window.replace("30 DAYS", f"{PER_RETENTION // KEYS} MINUTES")
            run(service, f"CREATE TABLE w ({columns}) WITH (KAFKA_TOPIC='w', FORMAT='KAFKA'{window});")
            service.run_until_idle()
            for number in range(RETENTIONS * PER_RETENTION):
                start = number // KEYS * MINUTE
                key = key_of(number).encode() + struct.pack(">qi", start, 0)
                broker.append(TopicName("w"), struct.pack(">q", number), key, timestamp=start)
                if number % (PER_RETENTION // 4) == 0:
                    service.run_until_idle()
                if number % PER_RETENTION == PER_RETENTION - 1:
                    service.run_until_idle()
                    # What was deleted a second ago is readable no more.
                    time.sleep(1.1)
                    service.run_until_idle()
                    while store.compact(limit=100_000):
                        pass
                    found.append(sum(store.pin_files().values()))
                    store.unpin_files()
                    progress(found[-1])
    return found


class _Stopped:
    """Stops a service when it is closed."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def close(self) -> None:
        self._service.stop()


def of_storage(sizes: list[int]) -> list[str]:
    lines = [f"| retentions that have passed, {PER_RETENTION:,} windows each | store | growth |", "|--:|--:|--:|"]
    for number, size in enumerate(sizes, start=1):
        lines.append(f"| {number} | {size / 1e6:.1f} MB | {size / sizes[1]:.2f} |")
    return lines


def measure() -> list[str]:
    # Kafka deletes records by their timestamps: the windows are of the last days.
    first = (int(time.time()) // 60 - WINDOWS // KEYS - 1) * MINUTE
    with running() as service:
        for topic in (INPUT, CHANGELOG, *(f"{ID}-{kind}" for kind in ("tumbling", "hopping", "session"))):
            service._admin.create(TopicSpec(name=TopicName(topic), partitions=PARTITIONS))
        load(service.settings.kafka or "", first)
        lines = [*of_changelogs(service), "", *of_fetches(service, first), ""]
    with opened_sessions() as sessions:
        return [*lines, *of_storage(stored_bytes(sessions))]


if __name__ == "__main__":
    print("\n".join(measure()))
