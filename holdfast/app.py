"""The composition root: the only module that wires the parts together."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace

from holdfast.backup.restore import read_restored
from holdfast.catalog.commands import Command, CommandId, decode_command, encode_command
from holdfast.catalog.current import CurrentCatalog
from holdfast.catalog.fold import fold
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.config import Settings
from holdfast.coordinator import processing_log
from holdfast.coordinator.activity import Activity
from holdfast.coordinator.back_pressure import BackPressure
from holdfast.coordinator.backfill.loop import BackfillLoop
from holdfast.coordinator.backfill.slices import BackfillSlices
from holdfast.coordinator.barriers import Barriers
from holdfast.coordinator.clock import Clock
from holdfast.coordinator.commands import Commands
from holdfast.coordinator.commit import CommitPoint
from holdfast.coordinator.compaction import Compaction
from holdfast.coordinator.coordinator import Coordinator
from holdfast.coordinator.drains import Drains
from holdfast.coordinator.freeze import Freezer, frozen_reason
from holdfast.coordinator.holds import Holds
from holdfast.coordinator.intake import Intake, raw
from holdfast.coordinator.intervals import Intervals
from holdfast.coordinator.log_outbox import LogOutbox
from holdfast.coordinator.publishing import Publishing
from holdfast.coordinator.queries import Queries
from holdfast.coordinator.read_limits import ReadLimits
from holdfast.coordinator.reconcile import Reconciler
from holdfast.coordinator.refusals import Refusals
from holdfast.coordinator.requests import Requests
from holdfast.coordinator.sink_records import SinkRecords
from holdfast.coordinator.spark_exits import SparkExits
from holdfast.coordinator.start import QueryStarter
from holdfast.coordinator.system_tables import SystemTables
from holdfast.coordinator.tick_loop import TickLoop
from holdfast.coordinator.topics.deletions import TopicDeletions
from holdfast.coordinator.topics.follower import TopicFollower
from holdfast.coordinator.topics.known import KnownTopics
from holdfast.coordinator.topics.sink_ids import SinkIds, sink_id_key
from holdfast.coordinator.topics.wanted import WantedTopics
from holdfast.coordinator.uppers import Uppers
from holdfast.errors import ForeignStore, RequestTimeout
from holdfast.jars import JarSet, fetch_jars, find_java
from holdfast.kafka.broker import EmbeddedBroker
from holdfast.kafka.command_log import CommandLog
from holdfast.kafka.lane import Lane
from holdfast.kafka.librdkafka.cluster import KafkaCluster
from holdfast.kafka.markers import LANES, MarkerTopic
from holdfast.kafka.port import Kafka, TopicSpec
from holdfast.planner.commands import replan
from holdfast.runtime.record_decoder import RecordDecoder
from holdfast.runtime.spark.archive import spark_archive
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.runtime.spark.session import Sessions, open_sessions
from holdfast.runtime.store.duckdb.disk.files import set_aside
from holdfast.runtime.store.duckdb.store import DuckDbStore, open_store
from holdfast.runtime.tick import Ticker
from holdfast.service import service as facade
from holdfast.service.backups import Backups
from holdfast.service.ddl import Ddl
from holdfast.service.inserts import Inserts
from holdfast.service.lag import Lags
from holdfast.service.permissions import Permissions
from holdfast.service.push import PushQueries, PushRegistry
from holdfast.service.reads import Reads
from holdfast.service.status import ServiceStatus
from holdfast.service.status_rows import status_rows
from holdfast.service.supervisor import Supervisor
from holdfast.service.topics import Topics
from holdfast.serving.push.lag_watch import LagWatch
from holdfast.serving.push.row_reader import RowReader
from holdfast.serving.push.stream_reader import StreamReader
from holdfast.serving.push.topic_reads import TopicReads
from holdfast.serving.time.read_times import Times
from holdfast.serving.transactions import Transactions
from holdfast.serving.wakeup import Wakeup
from holdfast.version import VERSION
from holdfast.wall_clock import WallClock

log = logging.getLogger(__name__)

SYSTEM_SECONDS = 2.0
"""How long a read of a system table waits for it to be brought up to date."""
ADOPT = CommandId("store", "", "adopt")
"""The command that binds the service's topics to a store."""


def quiet(_line: str) -> None:
    """Ignore progress messages."""


class Service(facade.ServiceApi):
    """A service that is wired, recovered and running."""

    def __init__(
        self,
        settings: Settings,
        sessions: Sessions,
        store: DuckDbStore,
        kafka: Kafka,
        clock: WallClock | None = None,
        *,
        broker: EmbeddedBroker | None = None,
        processes: ExitStack | None = None,
        progress: Callable[[str], None] = quiet,
        engines: EnginePair | None = None,
        intervals: Intervals | None = None,
        stepped: bool = False,
        system_tables: bool = True,
    ) -> None:
        """Takes ownership of the store, the Kafka clients and the processes once it has started.

        A `stepped` service starts no threads: its owner calls `coordinator.step` and `publishing.publish_pending`, or
        `run_until_idle`. `engines` may be shared by services that run one after the other. Without `system_tables`,
        which take a while to create, the relations of `mz_catalog` cannot be read.
        """
        self._sessions, self._engines, self._store, self._kafka = sessions, engines, store, kafka
        self.stepped = stepped
        with ExitStack() as parts:
            self._wire(settings, broker, clock or WallClock(), intervals or Intervals(), parts, progress, system_tables)
            if not stepped:
                self.publishing.start()
                self.coordinator.start()
                self._lag_watch.start()
            owned = ExitStack() if processes is None else processes.pop_all()
            owned.callback(store.close)
            owned.push(parts.pop_all())
            self._owned = owned

    def _wire(
        self,
        settings: Settings,
        broker: EmbeddedBroker | None,
        wall_clock: WallClock,
        intervals: Intervals,
        parts: ExitStack,
        progress: Callable[[str], None],
        system_tables: bool,
    ) -> None:
        """Create the parts in dependency order, then recover. `parts` closes what was opened."""
        store, sessions, kafka = self._store, self._sessions, self._kafka
        parts.callback(kafka.close)
        supervisor = Supervisor(sessions, broker)
        wakeup = Wakeup()

        # The command topic and the catalog
        self._admin, self._ranges = kafka.topics, kafka.ranges
        restored = read_restored(settings.data_dir)
        if restored is not None:
            restored.check(settings.service_id, kafka.topics.cluster_id())
        kafka.topics.create(TopicSpec(name=settings.processing_log_topic))
        lease = kafka.lease(on_lost=supervisor.lose_lease)
        lease.acquire(store.id if restored is None else f"{store.id}/{restored.id}")
        parts.callback(lease.release)
        self._log = CommandLog(settings, kafka, lease.confirm)
        parts.callback(self._log.close)
        self._log.open()
        read, last = _read_catalog(settings, self._log, store)
        catalog = CurrentCatalog(read)

        # The engine: queries, time, publishing and the commit point
        engines = self._engines or EnginePair.open(sessions, kafka.spark_options, settings.query_timeout)
        self._engine, reading = engines.ticks, engines.reads
        clock = Clock(store, wall_clock.now_ms)
        sink_records = SinkRecords(store)
        self.query_registry = queries = Queries(settings, sink_records)
        uppers = Uppers(store, clock.read_time, queries.status, queries.stop)
        self._holds = holds = Holds(
            store, uppers, catalog, wall_clock, ceiling=settings.hold_max_lag, grace=settings.hold_grace
        )
        self._writer = kafka.writer()
        parts.callback(self._writer.close)
        followed = KnownTopics(store)
        wanted = WantedTopics(kafka.topics, followed.was_read)
        markers, barriers = MarkerTopic(settings, kafka), Barriers(store)
        main, retry = (Lane(settings, kafka, markers, number, lease.confirm) for number in range(LANES))
        self.publishing = publishing = Publishing(
            store, (main, retry), markers, kafka.topics, queries.sinks, barriers.by_topic, queries.skips_refused,
            lambda: wanted.uncreated, wall_clock, transaction_rows=settings.transaction_rows,
            ended=supervisor.fail, published=wakeup.notify,
        )  # fmt: skip
        parts.callback(publishing.stop)
        drains = Drains(store, sink_records, publishing, wall_clock)
        log_outbox = LogOutbox(store, settings.outbox_bytes)
        commit = CommitPoint(store, clock, uppers, queries, publishing, log_outbox, wakeup.notify, wall_clock.now_ms)
        freezer = Freezer(store, queries, barriers, commit, uppers)

        # The coordinator's round: commands, backfill, tick, compaction
        consumer = kafka.consumer()
        parts.callback(consumer.close)
        limits = ReadLimits(settings, kafka.ranges)
        intake = Intake(consumer, limits)
        sink_ids = SinkIds(store, kafka.topics, publishing, barriers, queries)
        follower = TopicFollower(
            store, kafka.topics, followed, sink_ids, intake, queries, freezer, commit, wall_clock,
            check_seconds=intervals.topic_check,
        )  # fmt: skip
        starter = QueryStarter(
            store, queries, followed, freezer, commit, uppers, sink_records, barriers, holds.start_of,
            window_ms=intervals.window_ms,
        )  # fmt: skip
        reconciler = Reconciler(
            store, queries, starter, follower, freezer, publishing, barriers, drains, wall_clock,
            window_ms=intervals.window_ms,
        )  # fmt: skip
        refusals = Refusals(store, publishing, freezer, drains, commit, wall_clock)
        ticker = Ticker(self._engine, store, RecordDecoder(self._engine))
        ticks = TickLoop(store, ticker, intake, queries, follower, freezer, commit, SparkExits(limits))
        slices = BackfillSlices(store, uppers, kafka, limits, publishing, holds.start_of)
        pressure = BackPressure(
            store, queries, freezer, publishing.blocked, reconciler.resume, log_outbox, wall_clock,
            max_bytes=settings.outbox_bytes, check_seconds=intervals.pressure_check,
        )  # fmt: skip
        backfill = BackfillLoop(
            store, ticker, slices, queries, starter, freezer, commit, uppers, wall_clock, intervals, SparkExits(limits),
            pressure.is_full,
        )  # fmt: skip
        self._deletions = TopicDeletions(store, kafka.topics)
        self.commands = commands = Commands(
            self._log,
            wanted,
            self._deletions,
            drains,
            queries.dataflow,
            reconciler,
            holds,
            catalog,
            wall_clock,
            store_id=store.id,
            next_number=last + 1,
        )
        waits = settings.request_timeout.total_seconds()
        activity = Activity(wall_clock, limit=waits)
        requests = Requests(activity, seconds=waits)
        compaction = Compaction(store, holds, wall_clock, intervals)
        self.coordinator = coordinator = Coordinator(
            requests, commands, reconciler, refusals, pressure, backfill, ticks, compaction, clock, wall_clock,
            intervals, activity, supervisor.fail,
        )  # fmt: skip
        backups = Backups(settings, VERSION, store, broker, kafka.topics.cluster_id, requests.ask, wall_clock)
        parts.callback(backups.close)
        parts.callback(coordinator.stop)

        # What clients use
        self._pushes = registry = PushRegistry(settings.max_push_queries)
        streams = StreamReader(
            store,
            kafka.topics,
            kafka.push_ranges,
            RecordDecoder(reading),
            clock.read_time,
            raw,
            lambda name: [entry.id for entry in catalog().writers(name)],
            TopicReads(wall_clock, wakeup.notify),
            followed.loss,
            lambda topic: store.get(sink_id_key(topic)),
        )
        self._lag_watch = lag_watch = LagWatch(registry.pushes, clock.read_time, settings.subscribe_max_lag)
        status = ServiceStatus(
            store,
            Lags(store, kafka.topics, catalog, wall_clock),
            queries.status,
            catalog,
            publishing.blocked,
            lambda query: frozen_reason(queries, store, query),
            lambda: {
                "ticks": coordinator.problem or activity.stuck(),
                "kafka": lease.problem,
                "publishing": publishing.problem,
                "inserts": self._writer.problem,
                "subscriptions": lag_watch.problem,
            },
            lambda: {"ticks": activity.busy(), "publishing": log_outbox.notice, "subscriptions": streams.reads.notice},
        )
        system = SystemTables(
            store, uppers, commit, catalog, lambda: status_rows(status, registry, holds, clock.read_time()), wall_clock
        )

        def refresh_system() -> None:
            """Bring the system tables up to date; during a long tick, they keep their previous contents."""
            if system.stale:
                with suppress(RequestTimeout):
                    requests.ask("the system tables", system.refresh, timeout=SYSTEM_SECONDS)

        self._times = Times(store, uppers, wall_clock, wakeup, holds.on, refresh_system=refresh_system)
        idle = settings.transaction_idle.total_seconds()
        transactions = Transactions(store, self._times, lambda: catalog().tables, idle_seconds=idle)
        rows = RowReader(store, reading)
        push_queries = PushQueries(registry, catalog, rows, streams, self._times, holds, wakeup, wall_clock)
        ddl = Ddl(commands, holds, requests, system, wakeup, Permissions(settings))
        reads = Reads(store, reading, self._times, transactions, ddl)
        parts.callback(reads.close)
        parts.callback(push_queries.close_all)
        parts.callback(lag_watch.stop)

        progress("recovering")
        clock.rise_above(publishing.fence(republish=settings.republish))
        commands.recover()
        if settings.rebuild:
            slices.set_floor(publishing.sink_ends())
        if system_tables:
            system.install()
            system.refresh()
        publishing.recover()

        super().__init__(
            settings,
            ddl=ddl,
            reads=reads,
            push_queries=push_queries,
            inserts=Inserts(store, self._writer, ticks, requests, catalog, wall_clock),
            topics=Topics(kafka, catalog, wall_clock),
            status=status,
            backups=backups,
            supervisor=supervisor,
            cluster_id=kafka.topics.cluster_id,
        )

    def run_until_idle(self) -> None:
        """Run rounds and publish until there is nothing left to do. For a stepped service."""
        working = True
        while working:
            ticked = self.coordinator.step()
            working = self.publishing.publish_pending() or ticked or self.coordinator.settle()

    def stop(self) -> None:
        """Stop in order: end the ticks, publish the outbox, close the store, stop the processes."""
        self._owned.close()


def _read_catalog(settings: Settings, command_log: CommandLog, store: DuckDbStore) -> tuple[Catalog, int]:
    """The catalog of the command topic, and the offset of its last command. A new topic is bound to the store."""
    records = command_log.read_all()
    commands = [decode_command(r.key or b"", r.value or b"", offset=r.offset) for r in records]
    last = records[-1].offset if records else -1
    adopted = next((c.id.entity for c in reversed(commands) if c.id.type == ADOPT.type), None)
    if adopted != store.id:
        if adopted is not None and not settings.rebuild:
            raise ForeignStore(
                "the data folder does not belong to this service's topics",
                detail=f"The topics belong to store {adopted}, the folder has store {store.id}.",
                hint="Use the data folder of this service, or start once with --rebuild to rebuild it.",
            )
        last = command_log.append(*encode_command(Command(id=replace(ADOPT, entity=store.id), statement="")))
    start = EMPTY.with_object(processing_log.stream(settings))
    return fold((c for c in commands if c.id.type != ADOPT.type), start, replan=replan), last


def start_service(
    settings: Settings, *, progress: Callable[[str], None] = quiet, clock: WallClock | None = None
) -> Service:
    """Start everything that a server needs; raises an error that names what is missing."""
    java = find_java(settings.java_home)
    if settings.rebuild:
        set_aside(settings.data_dir / "store")
    store = open_store(
        settings.data_dir / "store",
        memory_limit=f"{settings.store_memory}B",
        max_result_bytes=settings.max_result_bytes,
    )
    with ExitStack() as opened, ExitStack() as started:
        opened.callback(store.close)
        jars = fetch_jars(JarSet.SPARK, settings.jar_dir, java=java, ivy_settings=settings.ivy_settings)
        broker = EmbeddedBroker(settings) if settings.kafka is None else None
        with ThreadPoolExecutor(1) as executor:
            if broker is not None:
                progress("starting Kafka and Spark")
                started.callback(broker.stop)
                starting = executor.submit(broker.start)
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
        service = Service(
            settings, sessions, store, KafkaCluster(settings), clock, broker=broker, processes=started,
            progress=progress,
        )  # fmt: skip
        opened.pop_all()
        return service
