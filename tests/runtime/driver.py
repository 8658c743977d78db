"""Drives a database: a stepped service over Kafka in memory, with a real store, a real Spark and a manual clock."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast.app import ADOPT, Service
from holdfast.catalog.commands import decode_command
from holdfast.catalog.fold import fold
from holdfast.catalog.snapshot import Catalog
from holdfast.coordinator.commit import CommitPoint
from holdfast.coordinator.intervals import Intervals
from holdfast.kafka.memory.broker import MemoryBroker
from holdfast.kafka.memory.kafka import MemoryKafka
from holdfast.kafka.port import TopicSpec
from holdfast.names import CollectionId, ObjectName, TopicName
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.outcome import Outcome
from holdfast.runtime.program import Program
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.runtime.store.duckdb import open_memory_store, open_store
from holdfast.runtime.store.port import Time
from holdfast.sql.bind.create_source import BoundCreateSource
from holdfast.sql.bind.insert import BoundInsert
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import statements
from holdfast.testing.database import INTERVALS
from holdfast.testing.database import SETTINGS as ONE_BY_ONE
from holdfast.wall_clock import ManualClock

PARTITIONS = 4
"""Partitions of source topics, unless a statement sets them."""
SETTINGS = replace(ONE_BY_ONE, max_records_per_tick=10_000, max_push_queries=10_000)
COMMANDS = SETTINGS.command_topic


@dataclass(frozen=True, slots=True)
class Record:
    """An input record."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int = 0
    partition: int = 0
    headers: Sequence[tuple[str, bytes | None]] = ()


@dataclass(frozen=True, slots=True)
class Sent:
    """A record of a sink topic."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Sequence[Mapping[str, Any]] = field(default_factory=list)


class Driver:
    """One database. Statements and ticks run until there is nothing left to do.

    Its store is in memory unless it has a folder; only then can it be restarted. `commands` are records that are
    written to the command topic before it starts.
    """

    def __init__(
        self,
        engine: Engine,
        sql: str = "",
        *,
        folder: Path | None = None,
        commands: Iterable[tuple[bytes, bytes]] = (),
        intervals: Intervals = INTERVALS,
        broker: MemoryBroker | None = None,
        clock: ManualClock | None = None,
    ) -> None:
        self.engine, self._folder, self._intervals = engine, folder, intervals
        self.clock = clock or ManualClock()
        self.broker = broker or MemoryBroker(self.clock)
        if initial := list(commands):
            self._write_commands(initial)
        self.store = open_memory_store() if folder is None else open_store(folder)
        self.service = Service(
            SETTINGS,
            engine.sessions,
            self.store,
            MemoryKafka(self.broker, SETTINGS.service_id),
            self.clock,
            engines=EnginePair(ticks=engine, reads=engine),
            intervals=intervals,
            stepped=True,
            system_tables=False,
        )
        self._outcomes: list[Outcome] = []
        self._record_outcomes()
        self.service.run_until_idle()
        self.execute(sql)

    def restart(self, commands: Iterable[tuple[bytes, bytes]] = ()) -> "Driver":
        """The same database in a new process, with only the contents of the store and of Kafka.

        `commands` replace the contents of the command topic.
        """
        assert self._folder is not None, "a store in memory does not survive a restart"
        self.close()
        return Driver(
            self.engine,
            folder=self._folder,
            commands=commands,
            intervals=self._intervals,
            broker=self.broker,
            clock=self.clock,
        )

    def close(self) -> None:
        self.service.stop()

    # -- statements ----------------------------------------------------------------------------------

    def execute(self, sql: str) -> None:
        """Run statements as a client does; queries that they create have caught up on return."""
        for parsed in statements(sql):
            bound = bind(parsed.statement, self.catalog)
            if isinstance(bound, BoundInsert):
                self.service.run_until_idle()
                self.service.insert(bound)
                continue
            if isinstance(bound, BoundCreateSource) and bound.target.topic is not None:
                self._create_topic(bound.target.topic, bound.target.topic_settings.partitions)
            self.service.execute(parsed, {})
        self.service.run_until_idle()

    def commit(self, sql: str) -> None:
        """Run the statements of a transaction. Created objects are not built yet on return."""
        id_ = self.service.begin_transaction()
        for parsed in statements(sql):
            self.service.change_in_transaction(id_, parsed, {})
        self.service.end_transaction(id_, commits=True)

    @property
    def catalog(self) -> Catalog:
        return self.service.catalog

    @property
    def commands(self) -> list[tuple[bytes, bytes]]:
        """The records of the command topic, which is all that is stored of statements."""
        found = [(entry.key or b"", entry.value or b"") for entry in self.broker.records(COMMANDS)]
        return [(key, value) for key, value in found if decode_command(key, value).id.type != ADOPT.type]

    @property
    def dataflow(self) -> Dataflow:
        return self.service.query_registry.dataflow

    def program(self, name: str) -> Program:
        """The program that maintains an object."""
        found = self.dataflow.maintainer(ObjectName(name))
        assert found is not None
        return found

    def _write_commands(self, commands: Sequence[tuple[bytes, bytes]]) -> None:
        self.broker.create(TopicSpec(name=COMMANDS))
        for key, value in commands:
            self.broker.append(COMMANDS, value, key)
        for found in fold(decode_command(key, value) for key, value in commands).objects.values():
            if found.topic is not None and not found.derived:
                self._create_topic(found.topic, found.topic_settings.partitions)

    def _create_topic(self, topic: TopicName, partitions: int | None) -> None:
        """Create a topic if it does not exist: sources require one."""
        if topic not in self.broker.topics:
            self.broker.create(TopicSpec(name=topic, partitions=partitions or PARTITIONS))

    # -- ticks ---------------------------------------------------------------------------------------

    def tick(self, records: Sequence[Record]) -> Outcome:
        """Write records, run one tick of them, then the ticks that follow from it; returns the outcome of the first."""
        for record in records:
            self.broker.append(
                TopicName(record.topic),
                record.value,
                record.key,
                timestamp=record.timestamp,
                partition=record.partition,
                headers=list(record.headers),
            )
        self._outcomes.clear()
        self.service.coordinator.step()
        outcome = self._outcomes[0] if self._outcomes else Outcome()
        self.service.run_until_idle()
        return replace(outcome, failed={q: why for each in self._outcomes for q, why in each.failed.items()})

    def ticks(self, records: Iterable[Record]) -> list[Outcome]:
        """One tick for each record."""
        return [self.tick([record]) for record in records]

    @property
    def commit_point(self) -> CommitPoint:
        return self.service.coordinator._ticks._commit

    def _record_outcomes(self) -> None:
        """Record the outcome of every commit. A server counts and logs them; tests compare them directly."""
        commit = self.commit_point
        write = commit.write

        def recorded(stage: Any, outcome: Outcome, **past: Any) -> bool:
            self._outcomes.append(outcome)
            return write(stage, outcome, **past)

        commit.write = recorded

    # -- results -------------------------------------------------------------------------------------

    @property
    def time(self) -> Time:
        """The latest final time: that of the last tick, unless the clock is advanced."""
        return self.service.coordinator._clock.read_time()

    def sent(self, name: str) -> list[Sent]:
        """All records that queries have written to the sink topic of an object, oldest first."""
        topic = self.catalog.objects[ObjectName(name)].topic
        return [
            Sent(entry.key, entry.value, entry.timestamp, [{"key": k, "value": v} for k, v in entry.headers])
            for entry in (self.broker.records(topic) if topic is not None else ())
            if entry.transaction is not None
        ]

    def rows(self, name: str, at: Time | None = None) -> list[tuple[Any, ...]]:
        """The rows of a table, key columns first and ROWTIME last, sorted."""
        collection = CollectionId(name)
        last = Time(self.store.frontier(collection).upper - 1)
        pages = self.store.snapshot(collection, last if at is None else at)
        return sorted((tuple(row.values()) for page in pages for row in page.to_pylist()), key=repr)
