"""A database without Kafka: statements become commands, programs are built from their encoded plans alone, and each
record is a tick against a real store and a real Spark."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from holdfast.catalog.commands import Command, CommandId, apply, apply_plan, decode_command, encode_command
from holdfast.catalog.objects import QueryEntry, Stream, Table
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.coordinator.deltas import as_delta
from holdfast.coordinator.intake import raw
from holdfast.errors import BindError, HoldfastError
from holdfast.names import CollectionId, ObjectName, QueryId, TopicName
from holdfast.planner.commands import commands_for
from holdfast.planner.plan import Plannable
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.decode import RecordDecoder
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.plan.ddl import CreateStream, CreateTable
from holdfast.runtime.program import Program, TopicInput
from holdfast.runtime.progress import Progress, Status
from holdfast.runtime.serdes.encoding import Encoder
from holdfast.runtime.spark.build import build_query, build_table
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.views import decoded_view
from holdfast.runtime.store.duckdb import open_memory_store
from holdfast.runtime.store.port import Moved, Time
from holdfast.runtime.tick import Given, Ticker, TickInputs
from holdfast.serving.insert import row_of
from holdfast.serving.pull import pull
from holdfast.serving.push import StreamPush, TablePush
from holdfast.serving.read import read
from holdfast.serving.results import PullResult, Push
from holdfast.serving.rows import RowReader
from holdfast.serving.streams import StreamReader
from holdfast.serving.times import Times
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.bind import bind
from holdfast.sql.bound import (
    BoundInsert,
    BoundNothing,
    BoundPause,
    BoundResume,
    BoundSelect,
    BoundTerminate,
    SelectKind,
)
from holdfast.sql.bound_read import BoundRead
from holdfast.sql.parse import ParsedStatement
from holdfast.sql.session import KEPT, plain_name
from holdfast.sql.statements import SetProperty, UnsetProperty
from holdfast.testing.topics import Topics, Written
from holdfast.testing.wire import Wire

WINDOW_MS = 1_000_000
"""Long enough for every time of a test to stay readable."""


class QueryFailed(Exception):
    """A query went to ERROR in a tick."""


class Database:
    """One database for one test. Records get the next offset of their topic's only partition."""

    def __init__(self, engine: Engine, properties: Mapping[str, str]) -> None:
        self._engine = engine
        self.properties = {plain_name(name): value for name, value in properties.items()}
        self.catalog: Catalog = EMPTY
        self.topics = Topics()
        self.wires: dict[TopicName, Wire] = {}
        self.produced: dict[TopicName, list[Written]] = {}
        self._store = open_memory_store()
        self._dataflow = Dataflow()
        self._made_of: dict[QueryId, object] = {}
        self._decoder = RecordDecoder(engine)
        self._ticker = Ticker(engine, self._store, self._decoder)
        self._wakeup = Wakeup()
        self._times = Times(self._store, lambda: Time(self._time), self._progress)
        self._streams = StreamReader(
            self._store,
            self.topics,
            self.topics,
            self._decoder,
            lambda: Time(self._time),
            raw,
            lambda name: [entry.id for entry in self.catalog.writers(name)],
        )
        self._rows = RowReader(self._store, self._engine)
        self._time = 0
        self._count = 0

    def close(self) -> None:
        self._store.close()

    # -- statements ----------------------------------------------------------------------------------

    def execute(self, parsed: ParsedStatement) -> PullResult | Push | None:
        """Run a statement; a SELECT gives its answer."""
        bound = bind(parsed.statement, self.catalog, self.properties)
        match bound:
            case SetProperty(name=name, value=value):
                self.properties[name] = value
            case UnsetProperty(name=name):
                self.properties.pop(name, None)
            case BoundNothing():
                pass
            case BoundInsert():
                self._insert(bound)
            case BoundSelect(kind=SelectKind.PULL):
                return pull(bound, self._store, self._engine, self._times)
            case BoundRead():
                return read(bound, self._store, self._engine, self._times)
            case BoundSelect():
                return self._push(bound)
            case BoundPause() | BoundResume():
                raise BindError("a test has no queries to pause: records are taken as they come")
            case _ if isinstance(bound, Plannable | BoundTerminate):
                kept = {name: value for name, value in self.properties.items() if name in KEPT}
                for command in commands_for(bound, text=parsed.text, number=self._count, properties=kept):
                    self._command(decode_command(*encode_command(command)))
            case _:
                raise BindError("a test runs statements that change the catalog, INSERT and SELECT")
        return None

    def run_plan(self, encoded: bytes) -> None:
        """Run a stored plan: its bytes are all that is looked at."""
        self._command(Command(id=CommandId("", "", ""), statement="", plan=encoded, properties=self.properties))

    def _command(self, command: Command) -> None:
        """Check what a command makes, then run it; what cannot run is refused and leaves nothing behind."""
        before = self.catalog
        if command.plan is None:
            self.catalog = apply(before, command)
        else:
            self.catalog = apply_plan(before, command, command.plan)
        self._count += 1
        self._learn_wires(command)
        try:
            self._install()
        except HoldfastError:
            self.catalog = before
            raise

    def _learn_wires(self, command: Command) -> None:
        ddl = decode(command.plan).command if command.plan is not None else None
        if isinstance(ddl, CreateStream | CreateTable):
            self.wires.setdefault(ddl.topic_name, Wire.of(ddl))

    def _install(self) -> None:
        catalog, flow = self.catalog, self._dataflow
        wanted = set(catalog.queries) | {QueryId(f"TABLE_{t.name}") for t in catalog.tables if not t.derived}
        for query in [query for query in flow.programs if query not in wanted]:
            self.publish()
            flow.remove(query)
            self._made_of.pop(query, None)
        for name in [name for name in flow.topics if name not in catalog.objects]:
            flow.forget(name)
            self._store.drop_collection(CollectionId(name))
        for found in catalog.objects.values():
            flow.declare(found.name, found.topic, kept=found.kept)
        for table in catalog.tables:
            if not table.derived:
                self._start(QueryId(f"TABLE_{table.name}"), partial(_table_program, table), table.schema)
        for entry in catalog.queries.values():
            self._start(entry.id, partial(self._query_program, entry), entry.plan)

    def _query_program(self, entry: QueryEntry) -> Program:
        plan = decode(entry.plan).query
        assert plan is not None
        return build_query(plan, self._dataflow, properties=entry.properties)

    def _start(self, query: QueryId, build: Callable[[], Program], made_of: object) -> None:
        if self._made_of.get(query) == made_of:
            return
        self._made_of[query] = made_of
        known = query in self._dataflow.programs
        if known:
            self.publish()
        program = build()
        if program.collection is not None:
            self._store.create_collection(program.collection, program.layout, window_ms=WINDOW_MS)
        for state, layout in program.states:
            self._store.create_state(state, layout)
        if program.sink is not None:
            self._store.create_outbox(query, program.layout)
        self._dataflow.add(program)
        if not known:
            self._catch_up(program)
        if program.collection is not None:
            self._store.set_upper([program.collection], Time(self._time + 1))

    def _catch_up(self, program: Program) -> None:
        """Give a new query what was there before it."""
        others = {q: p for q, p in self._dataflow.programs.items() if q != program.query}
        riders = self._dataflow.downstream(program, others)
        own = {program.query: program, **riders}
        tables: dict[ObjectName, pa.Table] = {}
        for source in program.sources:
            if isinstance(source, TopicInput):
                for offset in range(self.topics.end(source.topic)):
                    records = self.topics.raw(source.topic, offset, offset + 1)
                    self._tick(TickInputs({source.topic: records}, riders=frozenset(riders)), own)
                continue
            keeper = self._dataflow.keeper(source.name)
            assert keeper is not None
            if keeper.collection is None:
                self._catch_up_on(source.name, keeper, own, frozenset(riders))
                continue
            pages = list(self._store.snapshot(keeper.collection, Time(self._time))) if self._time else []
            if pages:
                tables[source.name] = as_delta(pages, keeper.layout)
        if tables:
            self._tick(TickInputs({}, tables, riders=frozenset(riders)), own)

    def _catch_up_on(
        self, name: ObjectName, keeper: Program, own: Mapping[QueryId, Program], riders: frozenset[QueryId]
    ) -> None:
        self.publish()
        assert keeper.sink is not None
        topic, decoder = keeper.sink.topic, keeper.sink.encoder.decoder()
        reading = TopicInput(topic, decoder, decoded_view(topic, decoder))
        for offset in range(self.topics.end(topic)):
            records = self.topics.raw(topic, offset, offset + 1)
            self._tick(TickInputs({topic: records}, decoded={name: reading}, riders=riders), own)

    # -- records -------------------------------------------------------------------------------------

    def feed(self, topic: TopicName, records: Sequence[Written]) -> None:
        """One tick of these records; then one for each record that its queries write to a topic others read."""
        start = self.topics.end(topic)
        self.topics.append(topic, records)
        self._read(topic, start, start + len(records))

    def writes(self, topic: TopicName) -> bool:
        """Whether a query writes to a topic and its object is read from the query, not from the topic."""
        derived = {found.topic for found in self.catalog.objects.values() if found.derived}
        return topic in derived - {found.topic for found in self.catalog.objects.values() if not found.derived}

    def _read(self, topic: TopicName, start: int, end: int) -> None:
        inputs = TickInputs({topic: self.topics.raw(topic, start, end)})
        self._tick(inputs, self._dataflow.programs, [Moved(topic, 0, end)])
        looped = self._looped()
        if looped:
            before = {sink: self.topics.end(sink) for sink in looped}
            self.publish()
            for sink, seen in before.items():
                for offset in range(seen, self.topics.end(sink)):
                    self._read(sink, offset, offset + 1)

    def _looped(self) -> set[TopicName]:
        programs = self._dataflow.programs.values()
        read = {topic for p in programs for topic in p.topics}
        return read & {p.sink.topic for p in programs if p.sink is not None}

    def _insert(self, bound: BoundInsert) -> None:
        target = bound.target
        if target.read_only:
            raise BindError(f'{target.KIND} "{target.name}" is read-only')
        row = row_of(bound, self._store, 0)
        keeper = self._dataflow.keeper(target.name) if target.derived else None
        if keeper is not None:
            row = row.append_column("part", pa.array([0], pa.int32())).append_column("off", pa.array([0], pa.int64()))
            self._tick(TickInputs({}), self._dataflow.programs, given=Given(keeper, row))
            return
        encoded = Encoder(target.schema, target.formats).encode(row, self._store)
        assert target.topic is not None
        self.feed(target.topic, [Written(**record) for record in encoded.to_pylist()])

    def _tick(
        self,
        inputs: TickInputs,
        queries: Mapping[QueryId, Program],
        moved: Sequence[Moved] = (),
        given: Given | None = None,
    ) -> None:
        stage, outcome = self._ticker.run(self._dataflow, queries, inputs, given)
        stage.remap(moved)
        self._time += 1
        stage.commit(Time(self._time))
        collections = [p.collection for p in self._dataflow.programs.values() if p.collection is not None]
        self._store.set_upper(collections, Time(self._time + 1))
        self._wakeup.ring()
        for query, reason in outcome.failed.items():
            raise QueryFailed(f"query {query} failed: {reason}")

    def publish(self) -> None:
        """Write to sink topics what they are owed."""
        owed = sorted(self._store.owed(), key=lambda owed: owed.time)
        sinks = {p.query: p.sink for p in self._dataflow.programs.values() if p.sink is not None}
        written: set[TopicName] = set()
        for part in owed:
            sink = sinks.get(part.sink)
            if sink is not None:
                encoded = sink.encoder.encode(self._store.owed_rows(part.sink, part.time), self._store)
                records = [Written(**record) for record in encoded.to_pylist()]
                self.topics.append(sink.topic, records)
                self.produced.setdefault(sink.topic, []).extend(records)
                written.add(sink.topic)
        if owed:
            self._store.settle(owed[-1].time, [Moved(topic, 0, self.topics.end(topic)) for topic in sorted(written)])

    # -- reading -------------------------------------------------------------------------------------

    def _push(self, bound: BoundSelect) -> Push:
        self.publish()
        earliest = self.properties.get("auto.offset.reset", "latest").lower() == "earliest"
        if isinstance(bound.relation, Stream):
            place = self._streams.start(bound.relation, earliest=earliest)
            return StreamPush(bound, self._streams, self._rows, self._wakeup, place)
        snapshot = earliest or bound.kind is SelectKind.ALL
        return TablePush(bound, self._rows, self._times, self._wakeup, snapshot=snapshot)

    def _progress(self, query: QueryId) -> Progress | None:
        return Progress(Status.RUNNING) if query in self._dataflow.programs else None

    @property
    def programs(self) -> Iterable[Program]:
        return self._dataflow.programs.values()


def _table_program(table: Table) -> Program:
    assert table.topic is not None
    return build_table(table.name, table.topic, table.schema, table.formats, table.timestamp, table.window)
