"""The time of a tick with more and more small queries, of which one has input: it must grow less than linearly.

Each query counts the records of a topic of its own. The service is stepped, over Kafka in memory and a store on disk,
so that a step is a tick and nothing else. Each number of queries is measured in a service of its own.

python -m bench.ticks 10 100 1000
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from bench.service import opened_sessions
from holdfast.app import Service
from holdfast.catalog.commands import Command, encode_command
from holdfast.catalog.fold import apply
from holdfast.catalog.snapshot import EMPTY
from holdfast.config import load as load_settings
from holdfast.coordinator.intervals import Intervals
from holdfast.kafka.memory.broker import MemoryBroker
from holdfast.kafka.memory.kafka import MemoryKafka
from holdfast.kafka.port import TopicSpec
from holdfast.names import TopicName
from holdfast.planner.commands import commands_for
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.runtime.spark.session import Sessions
from holdfast.runtime.store.duckdb import open_store
from holdfast.sql.bind.ddl_kind import BoundDdl
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse
from holdfast.wall_clock import WallClock

QUERIES = (10, 100, 1_000)
WARM_UP, TICKS = 100, 200
RECORDS = 20
SQL = """
CREATE STREAM s{0} (id STRING KEY, v INT) WITH (KAFKA_TOPIC='in_{0}', VALUE_FORMAT='JSON');
CREATE TABLE t{0} WITH (PARTITIONS=1) AS SELECT id, COUNT(*) AS n FROM s{0} GROUP BY id;
"""


def commands(sql: str) -> Iterator[Command]:
    """The commands of statements: a service that starts with them needs not run one after the other."""
    catalog = EMPTY
    for number, parsed in enumerate(parse(sql)):
        bound = bind(parsed.statement, catalog)
        assert isinstance(bound, BoundDdl)
        for command in commands_for(bound, text=parsed.text, number=number):
            catalog = apply(catalog, command)
            yield command


class Bench:
    """A service with some queries."""

    def __init__(self, sessions: Sessions, folder: Path, queries: int) -> None:
        settings = load_settings({"data_dir": folder}, environment={})
        clock, engine = WallClock(), Engine(sessions, {})
        self.broker, self.number = MemoryBroker(clock), 0
        for n in range(queries):
            self.broker.create(TopicSpec(name=TopicName(f"in_{n}"), partitions=1))
        self.broker.create(TopicSpec(name=settings.command_topic))
        for command in commands("".join(map(SQL.format, range(queries)))):
            key, value = encode_command(command)
            self.broker.append(settings.command_topic, value, key)
        self.service = Service(
            settings,
            sessions,
            open_store(folder),
            MemoryKafka(self.broker, settings.service_id),
            clock,
            engines=EnginePair(ticks=engine, reads=engine),
            intervals=Intervals(settle=0.0),
            stepped=True,
            system_tables=False,
        )
        self.service.run_until_idle()

    def close(self) -> None:
        self.service.stop()

    def tick(self) -> float:
        """Seconds of a tick with records of one topic."""
        for _ in range(RECORDS):
            self.number += 1
            self.broker.append(TopicName("in_0"), b'{"V":%d}' % self.number, b"k%d" % (self.number % 7))
        began = time.perf_counter()
        assert self.service.coordinator.step()
        took = time.perf_counter() - began
        self.service.publishing.publish_pending()
        return took


def median_tick(sessions: Sessions, queries: int) -> float:
    """In seconds."""
    with tempfile.TemporaryDirectory() as folder, closing(Bench(sessions, Path(folder), queries)) as bench:
        for _ in range(WARM_UP):
            bench.tick()
        return statistics.median(bench.tick() for _ in range(TICKS))


def measure(counts: Sequence[int] = QUERIES) -> list[str]:
    with opened_sessions() as sessions:
        found = {count: median_tick(sessions, count) for count in counts}
    first = counts[0]
    lines = [
        f"| queries, one of which has {RECORDS} records | tick | compared with {first} queries | at most |",
        "|--:|--:|--:|--:|",
    ]
    for count, seconds in found.items():
        limit = "" if count == first else f"{count / first:,.0f} times"
        lines.append(f"| {count:,} | {seconds * 1000:.1f} ms | {seconds / found[first]:.2f} times | {limit} |")
    return lines


if __name__ == "__main__":
    print("\n".join(measure([int(count) for count in sys.argv[1:]] or QUERIES)))
