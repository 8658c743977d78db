"""The composition root: the one place where the parts are joined."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from threading import Event, Lock

import pyarrow as pa

from holdfast.backup.restoring import read_restored
from holdfast.catalog.commands import Command, CommandId, decode_command, encode_command, fold
from holdfast.catalog.objects import CatalogObject, QueryEntry, QueryState, Stream, Table
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.config import Settings
from holdfast.coordinator import processing_log
from holdfast.coordinator.assertions import assert_topic
from holdfast.coordinator.backfill import Backfill
from holdfast.coordinator.backups import Backups
from holdfast.coordinator.clock import Clock, wall_clock
from holdfast.coordinator.cluster import Cluster
from holdfast.coordinator.commands import Commands, Done
from holdfast.coordinator.coordinator import Coordinator
from holdfast.coordinator.holds import Holds, HoldStatus
from holdfast.coordinator.intake import Intake, raw
from holdfast.coordinator.lag import Lag, Lags
from holdfast.coordinator.publishing import Publishing
from holdfast.coordinator.slices import Slices
from holdfast.coordinator.system import SystemTables, Told
from holdfast.coordinator.topic_deletions import TopicDeletions
from holdfast.errors import (
    BindError,
    BrokerEnded,
    ForeignStore,
    HoldfastError,
    NotSupported,
    ServiceTaken,
    SparkEnded,
    UnknownObject,
)
from holdfast.jars import JarSet, fetch_jars, find_java
from holdfast.kafka.admin import Admin, Topic, TopicSpec
from holdfast.kafka.broker import EmbeddedBroker
from holdfast.kafka.clients import spark_kafka_options
from holdfast.kafka.consumer import RangeReader, TopicReader
from holdfast.kafka.lease import Lease
from holdfast.kafka.log import CommandLog
from holdfast.kafka.publisher import Outgoing, TransactionalPublisher
from holdfast.kafka.tail import TopicTail
from holdfast.kafka.writer import RecordWriter
from holdfast.names import ObjectName, QueryId, TopicName, show
from holdfast.planner.commands import replan
from holdfast.planner.draft import Changing, Draft
from holdfast.planner.explain import explain_plan, explain_statement
from holdfast.runtime.decode import RecordDecoder
from holdfast.runtime.serdes.encoding import Encoder
from holdfast.runtime.spark.archiving import spark_archive
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.session import Sessions, open_sessions
from holdfast.runtime.store.duckdb.files import set_aside
from holdfast.runtime.store.duckdb.store import DuckDbStore, open_store
from holdfast.runtime.store.port import Time
from holdfast.runtime.tick import Ticker
from holdfast.serving.evaluated import QuerySubscription
from holdfast.serving.explaining import explained_paths
from holdfast.serving.insert import row_of
from holdfast.serving.lookup import Key, KeyLookup, KeyRows, key_lookup
from holdfast.serving.pull import pull
from holdfast.serving.push import StreamPush, TablePush
from holdfast.serving.pushing import Pushing
from holdfast.serving.read import kept_for, read
from holdfast.serving.results import PullResult, Push
from holdfast.serving.rows import RowReader
from holdfast.serving.streams import StreamReader
from holdfast.serving.subscribe import TableSubscription
from holdfast.serving.subscriptions import LagWatch, Subscription, listed
from holdfast.serving.times import Times
from holdfast.serving.timestamps import explained
from holdfast.serving.transactions import Transactions
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.bound import BoundAssertTopic, BoundExplain, BoundInsert, BoundSelect, BoundSubscribe, SelectKind
from holdfast.sql.bound_hold import BoundAdvanceHold
from holdfast.sql.bound_read import BoundRead
from holdfast.sql.moments import BoundAsOf, Moment
from holdfast.sql.parse import ParsedStatement
from holdfast.sql.statements import CreateHold, ExplainFormat, Print

log = logging.getLogger(__name__)

VERSION = "0.1.0"
SYSTEM_SECONDS = 2.0
"""How long a read of a system table waits for it to be brought up to date."""
ADOPT = CommandId("store", "", "adopt")
"""The command that says which store keeps the service's collections."""


def quiet(_line: str) -> None:
    """The progress of someone who does not look."""


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """A query as SHOW QUERIES tells of it."""

    id: QueryId
    statement: str
    sources: tuple[ObjectName, ...]
    sink: ObjectName | None
    sink_topic: TopicName | None
    state: str
    reason: str | None
    done: float


@dataclass(frozen=True, slots=True)
class Health:
    """Whether everything works, and which part does not."""

    healthy: bool
    problems: Mapping[str, str]


class Service:
    """A running server without its HTTP: everything that a client can ask for. From any thread."""

    version = VERSION

    def __init__(
        self,
        settings: Settings,
        sessions: Sessions,
        store: DuckDbStore,
        *,
        broker: EmbeddedBroker | None = None,
        progress: Callable[[str], None] = quiet,
    ) -> None:
        """Takes over the store, not the sessions and not the broker."""
        self.settings = settings
        self._broker = broker
        self._sessions, self._store = sessions, store
        self._processes = ExitStack()
        self._failed = Event()
        self._failure: HoldfastError | None = None
        self._pushes: dict[str, Pushing] = {}
        self._pushes_lock = Lock()
        self._wakeup = Wakeup()

        with ExitStack() as undo:
            self._start(undo, progress)
            undo.pop_all()

    def _start(self, undo: ExitStack, progress: Callable[[str], None]) -> None:
        """Join the parts and recover. What a refused start has opened, `undo` closes."""
        settings, store = self.settings, self._store
        self._admin = Admin(settings)
        restored = read_restored(settings.data_dir)
        if restored is not None:
            restored.check(settings.service_id, self._admin.cluster_id())
        self._admin.create(TopicSpec(name=settings.processing_log_topic))
        self._ranges = RangeReader(settings, self._admin)
        undo.callback(self._ranges.close)
        self._lease = Lease(settings, self._admin, self._ranges, on_lost=self._lease_lost)
        self._lease.acquire(store.id if restored is None else f"{store.id}/{restored.id}")
        undo.callback(self._lease.release)
        self._log = CommandLog(settings, self._admin, self._ranges)
        undo.callback(self._log.close)
        self._log.open()
        catalog, last = self._read_catalog()

        self._clock = Clock(store)
        self._engine = Engine(self._sessions, spark_kafka_options(settings))
        decoder = RecordDecoder(self._engine)
        # Clients' jobs run beside the ticks, over views of the same names.
        self._reading = Engine(self._sessions.apart(), spark_kafka_options(settings))
        self._reader = TopicReader(settings, self._admin)
        undo.callback(self._reader.close)
        ticker = Ticker(self._engine, store, decoder)
        slices = Slices(settings, self._ranges)
        backfill = Backfill(settings, store, self._clock, self._admin, self._ranges, slices)
        self._cluster = Cluster(
            settings, store, ticker, self._clock, self._admin, Intake(settings, self._reader, slices), backfill
        )
        publisher = TransactionalPublisher(settings, self._admin, self._ranges)
        self._publishing = Publishing(store, publisher, self._admin, self._cluster.sinks, self._fail, self._wakeup.ring)
        deletions = TopicDeletions(store, self._admin)
        self._commands = Commands(self._log, self._admin, self._cluster, deletions, catalog, store.id)
        self._commands.follow(last + 1)
        self._writer = RecordWriter(settings)
        self._times = Times(
            store,
            self._clock.read_time,
            self._cluster.status,
            lambda name: self._holds.on(name),
            before=self._refresh_system,
        )
        self._transactions = Transactions(
            store, self._times, lambda: self.catalog.tables, idle_seconds=settings.transaction_idle.total_seconds()
        )
        ceiling = settings.hold_max_lag // timedelta(milliseconds=1)
        self._holds = self._commands.holds = Holds(store, self._times, lambda: self.catalog, ceiling)
        backfill.starts = self._holds.start_of
        self._streams = StreamReader(
            store,
            self._admin,
            self._ranges,
            RecordDecoder(self._reading),
            self._clock.read_time,
            raw,
            lambda name: [entry.id for entry in self.catalog.writers(name)],
        )
        self._rows = RowReader(store, self._reading)
        self._lag_watch = LagWatch(self._open_pushes, self._clock.read_time, settings.subscribe_max_lag)
        self._lags = Lags(store, self._admin, lambda: self.catalog)
        self._coordinator = Coordinator(self._cluster, self._commands, store, self._clock)
        self._backups = Backups(settings, VERSION, store, self._broker, self._admin.cluster_id, self._coordinator.ask)
        backfill.publishing = self._cluster.publishing = self._publishing
        self._cluster.listeners.append(lambda _time, _outcome: self._wakeup.ring())

        self._system = SystemTables(store, self._clock, self._cluster, lambda: self.catalog, self._system_rows)
        progress("recovering")
        self._clock.rise_above(self._publishing.fence(republish=settings.republish))
        self._commands.recover()
        if settings.rebuild:
            backfill.set_floor(self._publishing.sink_ends())
        self._system.install()
        self._system.refresh()
        self._publishing.recover()
        self._publishing.start()
        self._coordinator.start()
        self._lag_watch.start()

    # -- the catalog ---------------------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        return self._commands.catalog

    @property
    def cluster_id(self) -> str:
        return self._admin.cluster_id()

    def execute(self, parsed: ParsedStatement, properties: Mapping[str, str]) -> Done:
        """Run a statement that changes the catalog."""
        if isinstance(parsed.statement, CreateHold):
            self._holds.await_built([name.text for name in parsed.statement.on])
        done = self._coordinator.ask(lambda: self._execute(parsed, properties))
        # Whoever follows what was dropped is told so.
        self._wakeup.ring()
        return done

    def advance_hold(self, bound: BoundAdvanceHold) -> Time:
        """Move a hold; durable on return, and not behind the ticks."""
        return self._holds.advance(bound.hold, bound.to)

    def holds(self) -> list[HoldStatus]:
        return self._holds.status()

    def _execute(self, parsed: ParsedStatement, properties: Mapping[str, str]) -> Done:
        done = self._commands.execute(parsed.statement, parsed.text, properties)
        self._tell_system()
        return done

    def _commit(self, draft: Draft) -> list[tuple[Changing, Done]]:
        done = self._commands.commit(draft)
        self._tell_system()
        return done

    def _tell_system(self) -> None:
        try:
            self._system.refresh()
        except HoldfastError as error:
            # The command is written: it must not seem to have failed.
            log.warning("the system tables are behind: %s", error)

    def _refresh_system(self) -> None:
        """Have system tables tell what is true now, or was a moment ago."""
        if self._system.stale:
            # Not at any price: while a long tick runs, they tell what was true before it.
            with suppress(TimeoutError):
                self._coordinator.ask(self._system.refresh, timeout=SYSTEM_SECONDS)

    def _system_rows(self) -> Told:
        queries = [(q.id, q.state, q.done, q.reason, q.sink, q.statement) for q in self.queries()]
        open_ = [
            (s.id, ", ".join(s.reads), s.created_ms, s.held, s.lag_ms, s.rows, s.bytes, s.buffered_bytes,
             s.peak_buffered_bytes)
            for s in self.subscriptions()
        ]  # fmt: skip
        holds = self._holds.status()
        return {
            "mz_queries": queries,
            "mz_subscriptions": open_,
            "mz_holds": [(h.hold.id, None, h.hold.name, h.at) for h in holds],
            "mz_hold_objects": [(h.hold.id, name) for h in holds for name in h.hold.on],
            "mz_hold_status": [
                (h.hold.id, h.lag_ms, h.hold.max_lag_ms, h.pinned.rows, h.pinned.bytes, h.advanced, h.reason)
                for h in holds
            ],
        }

    def queries(self) -> list[QueryInfo]:
        catalog = self.catalog
        found = []
        for entry in catalog.queries.values():
            progress = self._cluster.status(entry.id)
            state = entry.state.value if entry.state is QueryState.INCOMPATIBLE or not progress else progress.status
            sink = catalog.find(entry.sink) if entry.sink else None
            found.append(
                QueryInfo(
                    id=entry.id,
                    statement=entry.statement,
                    sources=entry.sources,
                    sink=entry.sink,
                    sink_topic=sink.topic if sink else None,
                    state=str(state),
                    reason=entry.reason or (progress.reason if progress else None),
                    done=progress.done if progress and state == "BUILDING" else 1.0,
                )
            )
        return found

    def explain(self, what: BoundExplain | QueryEntry, format_: ExplainFormat) -> str:
        """The plan of a query that runs, or that a statement would start."""
        if isinstance(what, QueryEntry):
            return explain_plan(what.plan, format_)
        text, bound = explain_statement(what.statement, what.text, format_), what.statement
        if format_ is ExplainFormat.TEXT and isinstance(bound, BoundSelect | BoundRead):
            return f"{text}{explained_paths(bound, self._store, self._times)}"
        return text

    def topics(self) -> Sequence[TopicName]:
        return self._admin.topics()

    def described_topics(self, names: Iterable[TopicName]) -> Mapping[TopicName, Topic]:
        """Those of some topics that there are."""
        return self._admin.describe(names)

    def topic_readers(self) -> Mapping[TopicName, tuple[int, int]]:
        """How many consumers, of how many groups, read each topic now."""
        return self._admin.readers()

    def print_topic(self, asked: Print) -> TopicTail:
        """The records of a topic as they come; the caller closes it."""
        try:
            return TopicTail(self.settings, self._admin, TopicName(asked.topic), from_beginning=asked.from_beginning)
        except UnknownObject as error:
            error.position = asked.topic_position
            named = self.catalog.find(asked.topic.upper())
            if named is not None and named.topic is None:
                error.detail = f'{named.KIND.capitalize()} "{named.name}" has no topic.'
                error.hint = f"Follow it with SELECT * FROM {show(named.name)} EMIT CHANGES;"
            raise

    def assert_topic(self, asserted: BoundAssertTopic) -> None:
        """Wait until a topic is as it is said to be; an error when it is not within the time."""
        assert_topic(asserted, self._admin)

    def _read_catalog(self) -> tuple[Catalog, int]:
        records = self._log.read_all()
        commands = [decode_command(r.key or b"", r.value or b"", offset=r.offset) for r in records]
        last = records[-1].offset if records else -1
        adopted = next((c.id.entity for c in reversed(commands) if c.id.type == ADOPT.type), None)
        if adopted != self._store.id:
            if adopted is not None and not self.settings.rebuild:
                raise ForeignStore(
                    "the data folder does not belong to this service's topics",
                    detail=f"The topics belong to store {adopted}, the folder has store {self._store.id}.",
                    hint="Use the data folder of this service, or start once with --rebuild to build it again.",
                )
            last = self._log.append(*encode_command(Command(id=replace(ADOPT, entity=self._store.id), statement="")))
        start = EMPTY.with_object(processing_log.stream(self.settings))
        return fold((c for c in commands if c.id.type != ADOPT.type), start, replan=replan), last

    # -- reading and writing -------------------------------------------------------------------------

    def pull(self, bound: BoundSelect | BoundRead, transaction: str | None = None) -> PullResult:
        """Answer a query once; in a transaction, at its time."""
        if transaction is not None:
            bound = replace(bound, as_of=self._transactions.as_of(transaction, bound.tables, bound.as_of))
        if isinstance(bound, BoundRead):
            return read(bound, self._store, self._reading, self._times)
        return pull(bound, self._store, self._reading, self._times)

    def begin_transaction(self, *, read_only: bool = False) -> str:
        """Open a transaction; gives its id."""
        return self._transactions.begin(read_only=read_only)

    def change_in_transaction(self, id: str, parsed: ParsedStatement, properties: Mapping[str, str]) -> Changing:
        """Have a statement done on COMMIT; gives it bound."""
        return self._transactions.change(id, parsed, properties, self.catalog)

    def fail_transaction(self, id: str, reason: str) -> None:
        """Have a transaction that does not read change nothing."""
        self._transactions.fail(id, reason)

    def end_transaction(self, id: str, *, commits: bool) -> list[tuple[Changing, Done]]:
        """End a transaction; gives what it has changed."""
        draft = self._transactions.end(id, commits=commits)
        if not draft.statements:
            return []
        self._holds.await_built(draft.planned(self.catalog, number=0).inputs)
        done = self._coordinator.ask(lambda: self._commit(draft))
        self._wakeup.ring()
        return done

    def explain_timestamp(self, bound: BoundSelect | BoundRead) -> str:
        """The time that a query would be answered for, and which bound decided."""
        bound = self._from_kept(bound)
        choice = self._times.choose(bound.tables, bound.as_of, bound.indexes)
        return explained(choice, self._clock.read_time())

    def dated(self, bound: BoundSelect | BoundRead) -> BoundSelect | BoundRead:
        """A pull with the `now()` of its AS OF as what it is now."""
        return bound if bound.as_of is None else replace(bound, as_of=bound.as_of.dated(self._clock.read_time()))

    def left_ms(self, bound: BoundSelect | BoundRead) -> int:
        """Milliseconds until the time that a pull asks for has come."""
        bound = self._from_kept(bound)
        return self._times.left_ms(bound.tables, bound.as_of, bound.indexes)

    def _from_kept(self, bound: BoundSelect | BoundRead) -> BoundSelect | BoundRead:
        """What a query reads: views as indexes keep them, where they serve it."""
        return kept_for(bound, self._times) or bound if isinstance(bound, BoundRead) else bound

    def prepare_lookup(self, bound: BoundSelect) -> KeyLookup | None:
        """A pull as one by key, if it is one."""
        return key_lookup(bound, self._store)

    def lookup(self, prepared: KeyLookup, keys: Sequence[Key]) -> KeyRows:
        """The rows of keys, all as of one time."""
        return prepared.read(keys, self._times)

    def push(self, bound: BoundSelect | BoundSubscribe, properties: Mapping[str, str]) -> Push:
        """Start a push query; it lives until it is closed."""
        earliest = properties.get("auto.offset.reset", "latest").lower() == "earliest"
        with self._pushes_lock:
            if len(self._pushes) >= self.settings.max_push_queries:
                raise NotSupported("too many push queries are open", hint="Close some of them.")
        if isinstance(bound, BoundSubscribe):
            if bound.hold is not None:
                bound = replace(bound, as_of=BoundAsOf(Moment(self._holds.at(bound.hold))))
            subscription = TableSubscription if isinstance(bound.select, BoundSelect) else QuerySubscription
            started: Pushing = subscription(bound, self._rows, self._times, self._wakeup)
        elif isinstance(bound.relation, Stream):
            place = self._streams.start(bound.relation, earliest=earliest)
            started = StreamPush(bound, self._streams, self._rows, self._wakeup, place)
        else:
            all_ = bound.kind is SelectKind.ALL
            started = TablePush(bound, self._rows, self._times, self._wakeup, snapshot=earliest or all_, marked=all_)
        with self._pushes_lock:
            self._pushes[started.id] = started
        return started

    def subscriptions(self) -> list[Subscription]:
        """The push queries that are open, and their figures."""
        return listed(self._open_pushes(), self._clock.read_time())

    def _open_pushes(self) -> list[Pushing]:
        with self._pushes_lock:
            return list(self._pushes.values())

    def close_push(self, id: str) -> bool:
        """End a push query; False when there is none of that id."""
        with self._pushes_lock:
            found = self._pushes.pop(id, None)
        if found is not None:
            found.close()
        return found is not None

    def insert(self, bound: BoundInsert) -> None:
        """Give an object one row; it is durable when this returns."""
        self.insert_rows(bound.target, row_of(bound, self._store, wall_clock()))

    def insert_rows(self, target: CatalogObject, rows: pa.Table) -> None:
        """Give an object rows (`present, k0.., c0.., ts`); they are durable when this returns."""
        if target.read_only:
            raise BindError(f'{target.KIND} "{target.name}" is read-only')
        writers = [entry.id for entry in self.catalog.writers(target.name)] if target.derived else []
        if writers:
            query = target.query if target.query in writers else writers[0]
            for run in _runs(rows, len(target.schema.key)) if isinstance(target, Table) else (rows,):
                self._coordinator.ask(partial(self._cluster.insert, query, _through_tick(run)))
            return
        assert target.topic is not None
        encoded = Encoder(target.schema, target.formats).encode(rows, self._store)
        self._writer.write(Outgoing(target.topic, encoded))

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        """Have a function called whenever push queries may have something; gives how to end it."""
        return self._wakeup.listen(ring)

    def lags(self) -> Mapping[QueryId, Sequence[Lag]]:
        return self._lags.lags()

    # -- life ----------------------------------------------------------------------------------------

    @property
    def backups(self) -> Backups:
        return self._backups

    def store_bytes(self) -> Mapping[str, int]:
        """The size of the store's files, by what they hold."""
        return self._store.sizes()

    def owed_rows(self) -> int:
        """How many rows sink topics have still to get."""
        return sum(owed.rows for owed in self._store.owed())

    def health(self) -> Health:
        parts = {"ticks": self._coordinator.problem, "kafka": self._publishing.problem or self._lease.problem}
        problems = {part: problem for part, problem in parts.items() if problem}
        return Health(not problems, problems)

    def wait_failed(self, timeout: float) -> HoldfastError | None:
        """Why the server has to stop, or None when it has not within the time."""
        if self._sessions.await_end(0):
            self._fail(SparkEnded())
        if self._broker is not None and not self._broker.alive:
            self._fail(BrokerEnded(self._broker.log_file))
        return self._failure if self._failed.wait(timeout) else None

    def _fail(self, error: HoldfastError) -> None:
        self._failure = error
        self._failed.set()

    def _lease_lost(self) -> None:
        self._fail(ServiceTaken("another server has taken this service id", hint="Stop one of the two."))

    def ends_with(self, processes: ExitStack) -> None:
        """End these too with the service, after it."""
        self._processes = processes

    def stop(self) -> None:
        """End in order: no more ticks, the outbox published, the store closed, then the other processes."""
        self._lag_watch.stop()
        for id_ in list(self._pushes):
            self.close_push(id_)
        self._transactions.close_all()
        self._coordinator.stop()
        self._backups.close()
        self._publishing.stop()
        self._writer.close()
        self._log.close()
        self._reader.close()
        self._ranges.close()
        self._lease.release()
        self._store.close()
        self._processes.close()


def start_service(settings: Settings, *, progress: Callable[[str], None] = quiet) -> Service:
    """Start everything that a server needs, or say what is missing."""
    java = find_java(settings.java_home)
    if settings.rebuild:
        set_aside(settings.data_dir / "store")
    store = open_store(settings.data_dir / "store", memory_limit=f"{settings.store_memory}B")
    with ExitStack() as opened, ExitStack() as started:
        opened.callback(store.close)
        jars = fetch_jars(JarSet.SPARK, settings.jar_dir, java=java, ivy_settings=settings.ivy_settings)
        broker = EmbeddedBroker(settings) if settings.kafka is None else None
        with ThreadPoolExecutor(1) as beside:
            if broker is not None:
                progress("starting Kafka and Spark")
                started.callback(broker.stop)
                starting = beside.submit(broker.start)
            else:
                progress("starting Spark")
            sessions = open_sessions(
                master=settings.spark_master,
                jars=jars,
                work_dir=settings.data_dir / "spark",
                properties=settings.spark_properties,
                java=java,
                archive=spark_archive(settings.jar_dir, java, jars),
            )
            started.callback(sessions.stop)
            if broker is not None:
                starting.result()
                settings = settings.at_kafka(broker.bootstrap)
        service = Service(settings, sessions, store, broker=broker, progress=progress)
        service.ends_with(started.pop_all())
        opened.pop_all()
        return service


def _runs(rows: pa.Table, keys: int) -> Iterator[pa.Table]:
    """The rows in their order, cut where a key comes again: a tick changes a key of a table once."""
    start = 0
    seen: set[str] = set()
    for i, key in enumerate(zip(*(rows.column(f"k{n}").to_pylist() for n in range(keys)), strict=True)):
        if repr(key) in seen:
            yield rows.slice(start, i - start)
            start = i
            seen.clear()
        seen.add(repr(key))
    yield rows.slice(start)


def _through_tick(rows: pa.Table) -> pa.Table:
    numbers = pa.array(range(rows.num_rows), pa.int64())
    return rows.append_column("part", pa.repeat(pa.scalar(0, pa.int32()), rows.num_rows)).append_column("off", numbers)
