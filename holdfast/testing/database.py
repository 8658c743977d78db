"""A database for one test: a stepped service over an in-memory Kafka, with a manual clock."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.app import Service
from holdfast.catalog.objects import NO_PROPERTIES, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.config import Settings
from holdfast.coordinator.intervals import Intervals
from holdfast.kafka.memory.broker import LogEntry, MemoryBroker
from holdfast.kafka.memory.kafka import MemoryKafka
from holdfast.kafka.port import TopicSpec
from holdfast.names import ServiceId, TopicName
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.plan.ddl import CreateStream, CreateTable, CreateWindowedTable
from holdfast.runtime.plan.windows import WindowTopic
from holdfast.runtime.progress import Status
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.runtime.store.duckdb import open_memory_store
from holdfast.serving.push.query import PushQuery
from holdfast.serving.results import PullResult
from holdfast.sql.bind.create_source import BoundCreateSource
from holdfast.sql.bind.insert import BoundInsert
from holdfast.sql.bind.statement import bind
from holdfast.sql.properties.session import plain_name
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect, SelectKind
from holdfast.sql.syntax.parse import ParsedStatement
from holdfast.sql.syntax.statements import SetProperty, UnsetProperty
from holdfast.testing.wire import Wire, WireRecord
from holdfast.wall_clock import ManualClock

NOWHERE = Path("/nonexistent/holdfast-test")
SETTINGS = Settings(
    data_dir=NOWHERE,
    jar_dir=NOWHERE,
    service_id=ServiceId("test"),
    store_memory=0,
    # Backfills also read one record at a time; Spark's Kafka reader is never used.
    max_records_per_tick=1,
    small_tick_records=1 << 62,
)
INTERVALS = Intervals(settle=0.0, window_ms=1_000_000)
"""Backfills start immediately, and every time of a test stays readable."""


class QueryFailed(Exception):
    """A query went to ERROR in a tick."""


class Database:
    """Runs statements and records, each until there is nothing left to do. Each record is a tick.

    Topics behave as if they had one partition, whatever a statement says, as in ksqlDB's tests.
    """

    def __init__(self, engine: Engine, properties: Mapping[str, str]) -> None:
        self.properties = {plain_name(name): value for name, value in properties.items()}
        self.wires: dict[TopicName, Wire] = {}
        self._clock = clock = ManualClock()
        self.store = open_memory_store()
        self._broker = MemoryBroker(clock, partitioner=lambda _key, _partitions: 0, replicas=100)
        self._kafka = MemoryKafka(self._broker, SETTINGS.service_id, poll_limit=1)
        self._service = Service(
            SETTINGS,
            engine.sessions,
            self.store,
            self._kafka,
            clock,
            engines=EnginePair(ticks=engine, reads=engine),
            intervals=INTERVALS,
            stepped=True,
            system_tables=False,
        )

    def close(self) -> None:
        self._service.stop()

    @property
    def catalog(self) -> Catalog:
        return self._service.catalog

    @property
    def service(self) -> Service:
        """For reads: statements and records go through the database, which runs what follows from them."""
        return self._service

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def advance(self, seconds: float) -> None:
        """Advance the clock, and run what is due then."""
        self._clock.advance(seconds)
        self._run()

    # -- statements ----------------------------------------------------------------------------------

    def execute(
        self, parsed: ParsedStatement, properties: Mapping[str, str] = NO_PROPERTIES
    ) -> PullResult | PushQuery | None:
        """Run a statement, with `properties` besides those that were SET; a SELECT returns its result."""
        properties = {**self.properties, **properties}
        bound = bind(parsed.statement, self.catalog, properties)
        match bound:
            case SetProperty(name=name, value=value):
                self.properties[name] = value
            case UnsetProperty(name=name):
                self.properties.pop(name, None)
            case BoundInsert():
                self._service.insert(bound)
                self._run()
            case BoundSelect(kind=SelectKind.PULL) | BoundRead():
                return self._service.pull(bound)
            case BoundSelect():
                return self._service.push(bound, properties)
            case _:
                if isinstance(bound, BoundCreateSource) and bound.target.topic is not None:
                    self._create_topic(bound.target.topic, bound.target.topic_settings.partitions)
                self._service.execute(parsed, properties)
                self._add_wires()
                self._run()
        return None

    def run_plan(self, encoded: bytes) -> None:
        """Run a stored plan."""
        ddl = decode(encoded).command
        if isinstance(ddl, CreateStream | CreateTable | CreateWindowedTable):
            self._create_topic(ddl.topic_name)
        self._service.commands.run_plan(encoded, self.properties)
        self._add_wires()
        self._run()

    def _create_topic(self, topic: TopicName, partitions: int | None = None) -> None:
        """Create a topic if it does not exist: sources require one."""
        if not self._kafka.topics.exists(topic):
            self._broker.create(TopicSpec(name=topic, partitions=partitions or 1))

    def _add_wires(self) -> None:
        for found in self.catalog.objects.values():
            if found.topic is not None:
                store = found.window_store if isinstance(found, Table) else None
                layout = WindowTopic.TOPIC if store is None else store.topic
                self.wires.setdefault(found.topic, Wire(found.schema, found.formats, found.window, layout))

    # -- records -------------------------------------------------------------------------------------

    def feed(self, topic: TopicName, records: Sequence[WireRecord]) -> None:
        """Write records to a topic and run one tick of them, then the ticks that follow from it."""
        self._create_topic(topic)
        for record in records:
            self._broker.append(
                topic, record.value, record.key, timestamp=record.timestamp, partition=0, headers=list(record.headers)
            )
        self._kafka.poll_limit = len(records)
        self._service.coordinator.step()
        self._kafka.poll_limit = 1
        self._run()

    def produced(self, topic: TopicName) -> list[WireRecord]:
        """The records that queries have written to a topic."""
        return [_wire_record(entry) for entry in self._broker.records(topic) if entry.transaction is not None]

    def writes(self, topic: TopicName) -> bool:
        """Whether a query writes to a topic and its object is read from the query, not from the topic."""
        derived = {found.topic for found in self.catalog.objects.values() if found.derived}
        return topic in derived - {found.topic for found in self.catalog.objects.values() if not found.derived}

    def _run(self) -> None:
        self._service.run_until_idle()
        for query, progress in self._service.query_registry.progress.items():
            if progress.status is Status.ERROR:
                raise QueryFailed(f"query {query} failed: {progress.reason}")


def _wire_record(entry: LogEntry) -> WireRecord:
    return WireRecord(entry.key, entry.value, entry.timestamp, tuple(entry.headers))
