"""Runs SQL without Kafka: statements become encoded plans, programs are built from those bytes alone, records are
driven through ticks against a real store and a real Spark."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from holdfast.catalog.commands import decode_command, encode_command, fold
from holdfast.catalog.objects import Table
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.names import CollectionId, ObjectName, QueryId, TopicName
from holdfast.planner.commands import commands_for
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.decode import RecordDecoder
from holdfast.runtime.outcome import Outcome
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.program import Program
from holdfast.runtime.spark.build import build_query, build_table
from holdfast.runtime.spark.engine import RECORDS, Engine, ViewInput
from holdfast.runtime.store.duckdb import open_store
from holdfast.runtime.store.port import Time
from holdfast.runtime.tick import Given, Ticker, TickInputs
from holdfast.sql.bind import bind
from holdfast.sql.parse import statements

WINDOW_MS = 1_000_000
"""Long enough for every time of a test to stay readable."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record to be read."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int = 0
    partition: int = 0
    headers: Sequence[tuple[str, bytes | None]] = ()


@dataclass(frozen=True, slots=True)
class Sent:
    """A record that a sink topic is owed."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Sequence[Mapping[str, Any]] | None = None


class Driver:
    """One database. `commands` are the bytes of its command topic: all that is kept of its statements."""

    def __init__(self, engine: Engine, folder: Path, sql: str = "", *, commands: Iterable[tuple[bytes, bytes]] = ()):
        self._engine, self._folder = engine, folder
        self.commands = list(commands)
        self.store = open_store(folder)
        self.catalog: Catalog = EMPTY
        self.dataflow = Dataflow()
        self._ticker = Ticker(engine, self.store, RecordDecoder(engine))
        self._offsets: dict[tuple[str, int], int] = {}
        self._time = int(self.store.last_time())
        self._install()
        self.execute(sql)

    # -- statements ----------------------------------------------------------------------------------

    def execute(self, sql: str) -> None:
        """Write the commands of some statements, and run what they say."""
        for parsed in statements(sql):
            bound = bind(parsed.statement, self.catalog)
            self.commands += map(encode_command, commands_for(bound, text=parsed.text, number=len(self.commands)))
            self._install()

    def restart(self) -> "Driver":
        """The same database in a new process: what the store and the command topic have, and nothing else."""
        self.store.close()
        again = Driver(self._engine, self._folder, commands=self.commands)
        again._offsets = dict(self._offsets)
        return again

    def close(self) -> None:
        self.store.close()

    def _install(self) -> None:
        self.catalog = fold(decode_command(key, value) for key, value in self.commands)
        for found in self.catalog.objects.values():
            self.dataflow.declare(found.name, found.topic, kept=found.kept)
        for table in self.catalog.tables:
            if not table.derived:
                self._add(QueryId(f"TABLE_{table.name}"), partial(_table_program, table))
        for entry in self.catalog.queries.values():
            self._add(entry.id, partial(self._query_program, entry.plan))

    def _query_program(self, encoded: bytes) -> Program:
        plan = decode(encoded).query
        assert plan is not None
        return build_query(plan, self.dataflow)

    def _add(self, query: QueryId, build: Any) -> None:
        if query in self.dataflow.programs:
            return
        program = build()
        self.dataflow.add(program)
        if program.collection is not None:
            self.store.create_collection(program.collection, program.layout, window_ms=WINDOW_MS)
        for state, layout in program.states:
            self.store.create_state(state, layout)
        if program.sink is not None:
            self.store.create_outbox(query, program.layout)

    def program(self, name: str) -> Program:
        """The program that keeps an object."""
        found = self.dataflow.keeper(ObjectName(name))
        assert found is not None
        return found

    # -- ticks ---------------------------------------------------------------------------------------

    def tick(self, records: Sequence[Record]) -> Outcome:
        """One tick of some records. They get the next offsets of their partitions."""
        return self.tick_of(self._tables(records))

    def ticks(self, records: Iterable[Record]) -> list[Outcome]:
        """One tick for each record."""
        return [self.tick([record]) for record in records]

    def tick_of(self, topics: Mapping[TopicName, ViewInput], given: Given | None = None) -> Outcome:
        """One tick of inputs as they are."""
        stage, outcome = self._ticker.run(self.dataflow, self.dataflow.programs, TickInputs(topics), given)
        self._time += 1
        stage.commit(Time(self._time))
        collections = [p.collection for p in self.dataflow.programs.values() if p.collection is not None]
        self.store.set_upper(collections, Time(self._time + 1))
        return outcome

    @property
    def time(self) -> Time:
        """The time of the last tick."""
        return Time(self._time)

    def _tables(self, records: Sequence[Record]) -> dict[TopicName, pa.Table]:
        rows: dict[TopicName, list[dict[str, Any]]] = {}
        for record in records:
            place = (record.topic, record.partition)
            offset = self._offsets[place] = self._offsets.get(place, -1) + 1
            headers = [{"f0": name, "f1": value} for name, value in record.headers]
            row = {"part": record.partition, "off": offset, "ts": record.timestamp, "hdr": headers}
            rows.setdefault(TopicName(record.topic), []).append({**row, "key": record.key, "value": record.value})
        return {topic: pa.Table.from_pylist(found, schema=RECORDS) for topic, found in rows.items()}

    # -- results -------------------------------------------------------------------------------------

    def sent(self, name: str) -> list[Sent]:
        """All records that the sink topic of an object is owed, as they will be written, oldest first."""
        sinks = {program.query: program.sink for program in self.dataflow.keepers(ObjectName(name))}
        found = []
        for owed in sorted(self.store.owed(), key=lambda owed: (owed.time, owed.sink)):
            if (sink := sinks.get(owed.sink)) is not None:
                rows = self.store.owed_rows(owed.sink, owed.time)
                found += [Sent(**row) for row in sink.encoder.encode(rows, self.store).to_pylist()]
        return found

    def rows(self, name: str, at: Time | None = None) -> list[tuple[Any, ...]]:
        """The rows of a table, key columns first and ROWTIME last, sorted."""
        pages = self.store.snapshot(CollectionId(name), self.time if at is None else at)
        return sorted((tuple(row.values()) for page in pages for row in page.to_pylist()), key=repr)


def _table_program(table: Table) -> Program:
    return build_table(table.name, table.topic, table.schema, table.formats, table.timestamp, table.window)
