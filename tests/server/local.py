"""A service over an in-memory Kafka, for tests of the layers above it."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from holdfast.app import Service
from holdfast.config import Settings
from holdfast.coordinator.intervals import Intervals
from holdfast.kafka.memory.broker import LogEntry, MemoryBroker
from holdfast.kafka.memory.kafka import MemoryKafka
from holdfast.names import QueryId, TopicName
from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.runtime.store.duckdb import open_memory_store
from holdfast.runtime.store.duckdb.store import open_store
from holdfast.runtime.store.port import Time
from holdfast.server.http.server import listen, running
from holdfast.serving.push.query import PushQuery
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse, statements
from holdfast.wall_clock import MovableClock

NOWHERE = Path("/nonexistent/holdfast-test")
# Nothing is read with Spark's Kafka reader.
SETTINGS = Settings(data_dir=NOWHERE, jar_dir=NOWHERE, store_memory=0, http_port=0, small_tick_records=1 << 62)
INTERVALS = Intervals(settle=0.0, poll=0.01, window_ms=60_000)
"""Statements and records are processed immediately, and every time of a test stays readable."""
SECONDS = 60.0
"""How long a test waits for an expected event."""

ORDERS = (
    "CREATE STREAM orders (id STRING KEY, amount INT) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=1);"
)
TOTALS = "CREATE TABLE totals AS SELECT id, SUM(amount) AS total FROM orders GROUP BY id;"


def eventually(condition: Callable[[], object], seconds: float = SECONDS) -> bool:
    """Whether a condition holds within some seconds."""
    deadline = time.monotonic() + seconds
    while not (found := bool(condition())) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def raising(error: Exception) -> Callable[..., Any]:
    """A function that fails."""

    def fail(*_: object) -> None:
        raise error

    return fail


class LocalService(Service):
    """A service in this process, with helpers for tests."""

    def __init__(self, engines: EnginePair, *, data_dir: Path | None = None, **settings: Any) -> None:
        """With a data folder, its store is on disk."""
        self.clock = MovableClock()
        self.broker = MemoryBroker(self.clock)
        self.broker.id = "cluster"
        self._followed: set[str] = set()
        own = replace(SETTINGS, data_dir=data_dir or NOWHERE, **settings)
        super().__init__(
            own,
            engines.ticks.sessions,
            open_memory_store() if data_dir is None else open_store(data_dir / "store"),
            MemoryKafka(self.broker, own.service_id),
            self.clock,
            engines=engines,
            intervals=INTERVALS,
            system_tables=False,
        )

    def change(self, text: str) -> None:
        """Run statements that change the catalog."""
        for parsed in statements(text):
            self.execute(parsed, {})

    def run(self, text: str) -> "LocalService":
        """Run statements that change the catalog, and wait until their queries run."""
        self.change(text)
        assert eventually(lambda: all(query.state == "RUNNING" for query in self.queries()))
        return self

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a pull query."""
        (parsed,) = parse(text)
        found = self.pull(bind(parsed.statement, self.catalog, {})).rows
        return [tuple(row.values()) for row in found.to_pylist()]

    @property
    def query(self) -> QueryId:
        """The only query."""
        (found,) = self.catalog.queries
        return found

    # -- records and rows

    def write(self, topic: str, *records: tuple[str | None, object], partition: int = 0, timestamp: int = 0) -> None:
        """Write records with a key and a JSON value, as another application does."""
        for key, value in records:
            content = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
            encoded = key.encode() if key is not None else None
            self.broker.append(TopicName(topic), content, encoded, partition=partition, timestamp=timestamp)

    def order(self, *amounts: tuple[str, int]) -> None:
        """Write orders, and wait until the totals include them."""
        self.write("orders", *((id_, {"AMOUNT": amount}) for id_, amount in amounts))
        end = ("orders", 0, len(self.records("orders")))
        assert eventually(lambda: end in {(e.topic, e.partition, e.offset) for e in self._store.remap_ends()})

    def stop_reading(self) -> None:
        """Stop the coordinator: no more records are read, and statements that change the catalog do not run."""
        self.coordinator.stop()

    def put(self, name: str, *rows: Sequence[object]) -> Time:
        """Insert rows by key and value columns; a row that has only a key is deleted. Returns the time of the commit.

        Rows of an object over a topic are written to it, and read later.
        """
        target = self.catalog.relation(name)
        keys, values = target.schema.key, target.schema.value
        padded = [(*row, *(None,) * (len(keys) + len(values) - len(row))) for row in rows]
        columns = {f"k{i}": column.type for i, column in enumerate(keys)}
        columns |= {f"c{i}": column.type for i, column in enumerate(values)}
        cells = zip(*padded, strict=True)
        table = pa.table(
            {name: pa.array(cell, arrow_type(t)) for (name, t), cell in zip(columns.items(), cells, strict=True)}
        )
        present = pa.array([len(row) > len(keys) for row in rows])
        stamped = pa.array([self.clock.now_ms()] * len(rows), pa.int64())
        self.insert_rows(target, table.add_column(0, "present", present).append_column("ts", stamped))
        return self._store.committed_time()

    def records(self, topic: str) -> Sequence[LogEntry]:
        return self.broker.records(TopicName(topic))

    @property
    def inserted(self) -> list[tuple[bytes | None, object]]:
        """The orders after the first one: their keys and amounts."""
        return [(each.key, json.loads(each.value or b"{}").get("AMOUNT")) for each in self.records("orders")[1:]]

    @property
    def written(self) -> int:
        """The number of records in Kafka."""
        with self.broker.changed:
            return sum(log.end for topic in self.broker.topics.values() for log in topic.partitions)

    # -- push queries

    def next_push(self) -> PushQuery:
        """Wait for the next push query that a client starts."""
        new: list[PushQuery] = []

        def found() -> bool:
            new.extend(each.push for each in self.open_pushes() if each.push.id not in self._followed)
            return bool(new)

        assert eventually(found)
        self._followed.add(new[0].id)
        return new[0]

    def has_closed(self, push: PushQuery, within: float = 1.0) -> bool:
        """Whether a push query is closed within some seconds."""
        return eventually(lambda: self.find_push(push.id) is None, within)


@contextmanager
def local_service(engines: EnginePair, **settings: Any) -> Iterator[LocalService]:
    """A service that runs until the block ends."""
    service = LocalService(engines, **settings)
    try:
        yield service
    finally:
        service.stop()


class SharedServer:
    """A service with orders and totals behind HTTP. Tests share it until one of them changes it.

    There is one order, so the only row of the totals is ('a', 3). `more` are statements for further objects.
    """

    def __init__(self, engines: EnginePair, more: str = "") -> None:
        self._engines, self._statements = engines, ORDERS + TOTALS + more
        self._open = ExitStack()
        self._service: LocalService | None = None
        self._url, self._written = "", 0

    def service(self) -> LocalService:
        if self._service is None:
            service = self._open.enter_context(local_service(self._engines))
            service.run(self._statements).order(("a", 3))
            assert eventually(lambda: service.pending_rows() == 0)
            self._url = self._open.enter_context(running(service, listen(service.settings))).url
            self._service, self._written = service, service.written
        return self._service

    @property
    def url(self) -> str:
        self.service()
        return self._url

    def reset(self) -> None:
        """After a test: replace the service if the test changed it."""
        if self._service is None:
            return
        for each in self._service.open_pushes():
            self._service.close_push(each.push.id)
        if self._service.written != self._written or self._service.pending_rows():
            self.close()

    def close(self) -> None:
        self._open.close()
        self._service = None
