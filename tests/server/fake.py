"""A service in memory, for tests of what is in front of one: statements change a real catalog, rows are put in."""

import itertools
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from holdfast.backup.cut import Cut
from holdfast.backup.manifest import About
from holdfast.catalog.commands import fold
from holdfast.catalog.objects import CatalogObject, QueryEntry
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.config import Settings
from holdfast.coordinator.holds import HoldStatus
from holdfast.coordinator.lag import Lag
from holdfast.errors import AssertionFailed, BackupError, HoldfastError, ReadOnlyTransaction, UnknownObject
from holdfast.kafka.admin import Topic
from holdfast.names import ObjectName, QueryId, ServiceId, StoreId, TopicName
from holdfast.planner.commands import OfHolds, OfQueries, commands_for
from holdfast.planner.draft import Changing, Draft
from holdfast.planner.explain import explain_plan, explain_statement
from holdfast.planner.plan import Plannable
from holdfast.runtime.store.port import Pinned, Time
from holdfast.serving.lookup import Key, KeyLookup, KeyRows
from holdfast.serving.meter import Meter
from holdfast.serving.results import PullResult, PushBatch, ResultColumn
from holdfast.serving.subscribe import told_by
from holdfast.serving.subscriptions import Subscription
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.bind import bind
from holdfast.sql.bound import BoundAssertTopic, BoundExplain, BoundInsert, BoundSelect, BoundSubscribe
from holdfast.sql.bound_hold import BoundAdvanceHold
from holdfast.sql.parse import ParsedStatement
from holdfast.sql.statements import ExplainFormat, Print

ORDERS = (
    "CREATE STREAM orders (id STRING KEY, amount INT) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=1);"
)
TOTALS = "CREATE TABLE totals AS SELECT id, SUM(amount) AS total FROM orders GROUP BY id;"


@dataclass(frozen=True)
class Done:
    message: str
    sequence: int
    query: QueryId | None = None


@dataclass(frozen=True)
class QueryInfo:
    id: QueryId
    statement: str
    sources: tuple[ObjectName, ...]
    sink: ObjectName | None
    sink_topic: TopicName | None
    state: str = "RUNNING"
    reason: str | None = None
    done: float = 1.0


@dataclass(frozen=True)
class Health:
    healthy: bool = True
    problems: Mapping[str, str] = field(default_factory=dict)


class FakePush:
    """A push query whose batches are put by the test; putting an error ends it with that error."""

    def __init__(self, bound: BoundSelect | BoundSubscribe, number: int, ring: Callable[[], None]) -> None:
        self.id = f"PUSH_{number}"
        self._ring = ring
        self._time: Time | None = None
        self._idle_time: Time | None = None
        self.taken = 0
        self.meter = Meter()
        self.bound = bound
        if isinstance(bound, BoundSubscribe):
            self.columns = told_by(bound).columns
        else:
            self.columns = tuple(ResultColumn(column.name, column.type) for column in bound.columns)
        self.closed = threading.Event()
        self._left = bound.limit
        self._batches: queue.Queue[PushBatch | Exception] = queue.Queue()

    @property
    def time(self) -> Time | None:
        return self._time

    def move_on(self, time: int) -> None:
        """Nothing happened up to a time."""
        self._idle_time = Time(time)

    def ready(self) -> bool:
        return self.closed.is_set() or self._left == 0 or not self._batches.empty()

    def put(self, *rows: Sequence[object], time: int | None = 1) -> None:
        """A batch of rows, each with its values and, last, whether it is a tombstone."""
        columns = list(zip(*rows, strict=True))
        names = [*(f"r{i}" for i in range(len(self.columns))), "tombstone"]
        table = pa.table(dict(zip(names, map(list, columns), strict=False)))
        self._batches.put(PushBatch(table, None if time is None else Time(time)))
        self._ring()

    def put_snapshot(self, time: int) -> None:
        """All rows as of a time were put."""
        nothing = pa.table({f"r{i}": [] for i in range(len(self.columns))})
        self._batches.put(PushBatch(nothing, Time(time), Time(time)))
        self._ring()

    def fail(self, error: Exception) -> None:
        self._batches.put(error)
        self._ring()

    def end(self) -> None:
        """It ends by itself after what was put."""
        self.fail(StopIteration())

    def next(self, timeout: float) -> PushBatch | None:
        if self._left == 0 or self.closed.wait(0):
            raise StopIteration
        try:
            batch = self._batches.get(timeout=timeout) if timeout else self._batches.get_nowait()
        except queue.Empty:
            self._time = self._idle_time or self._time
            return None
        if isinstance(batch, Exception):
            raise batch
        self.taken += 1
        self._time = batch.time
        if self._left is not None:
            batch = PushBatch(batch.rows.slice(0, self._left), batch.time, batch.snapshot)
            self._left -= batch.rows.num_rows
        return batch

    def close(self) -> None:
        self.closed.set()
        self._ring()


class FakeTail:
    """The records of a topic, all at once."""

    def __init__(self, records: list[dict[str, object]]) -> None:
        self._records, self.closed = records, False

    def next(self, _timeout: float) -> pa.Table:
        found, self._records = self._records, []
        return pa.Table.from_pylist(found) if found else pa.table({})

    def close(self) -> None:
        self.closed = True


class FakeBackups:
    """Hands out a cut of no files."""

    def __init__(self) -> None:
        self.id: str | None = None

    def begin(self) -> Cut:
        if self.id is not None:
            raise BackupError("another backup of this server is being made")
        self.id = "b1"
        about = About(
            release="1.2.3", service_id=ServiceId("default"), store_id=StoreId("s"), time=5, made_at="", read=(),
            published=(), kafka_cluster="cluster", embedded=False,
        )  # fmt: skip
        return Cut("b1", 60.0, "/none", about, ())

    def keep(self, id_: str) -> bool:
        return self.id == id_

    def end(self, id_: str) -> bool:
        held, self.id = self.id == id_, None if self.id == id_ else self.id
        return held


class FakeService:
    """Shaped as `holdfast.server.service.Service`."""

    version = "1.2.3"
    cluster_id = "cluster"

    def __init__(self) -> None:
        self.settings = Settings(data_dir=Path("/none"), jar_dir=Path("/none"), store_memory=1, http_port=0)
        self.catalog: Catalog = EMPTY
        self.inserted: list[BoundInsert] = []
        self.pulled = pa.table({"r0": ["a"], "r1": pa.array([3], pa.int32())})
        self.pulled_columns: tuple[ResultColumn, ...] | None = None
        self.pushes: list[FakePush] = []
        self.push_properties: Mapping[str, str] = {}
        self.started = threading.Semaphore(0)
        self.wakeup = Wakeup()
        self._numbers = itertools.count()
        self.given: list[tuple[str, list[dict[str, object]]]] = []
        self.state = Health()
        self.failing: Exception | None = None
        self.stopped = False
        self.transactions: list[str] = []
        self.drafts: Draft | None = None
        self.failed_transactions: dict[str, str] = {}
        self.pulled_in: list[str | None] = []
        self.printed: list[dict[str, object]] = []
        self.failing_print = False
        self.now = 1_000
        self.asked_at: list[int] = []
        self.left = 0
        """Milliseconds until the time of an AS OF has come; less each time that it is asked for."""
        self.backups = FakeBackups()

    def run(self, text: str) -> "FakeService":
        from holdfast.sql.parse import statements

        for parsed in statements(text):
            self.execute(parsed, {})
        return self

    def execute(self, parsed: ParsedStatement, properties: Mapping[str, str]) -> Done:
        if self.failing is not None:
            raise self.failing
        bound = bind(parsed.statement, self.catalog, properties)
        assert isinstance(bound, Plannable | OfQueries | OfHolds)
        number = len(self.catalog.objects)
        before = set(self.catalog.queries)
        self.catalog = fold(commands_for(bound, text=parsed.text, number=number), self.catalog)
        started = [id for id in self.catalog.queries if id not in before]
        return Done("Done.", number, started[0] if started else None)

    def advance_hold(self, bound: BoundAdvanceHold) -> Time:
        return Time(bound.to.millis if bound.to is not None else 7)

    def holds(self) -> list[HoldStatus]:
        return [
            HoldStatus(hold, Time(5), 1_500, 1, "it lagged", Pinned(7, 700)) for hold in self.catalog.holds.values()
        ]

    def insert(self, bound: BoundInsert) -> None:
        self.inserted.append(bound)

    def insert_rows(self, target: CatalogObject, rows: pa.Table) -> None:
        if self.failing is not None:
            raise self.failing
        self.given.append((target.name, rows.to_pylist()))

    def subscriptions(self) -> list[Subscription]:
        reads, opened = (ObjectName("TOTALS"),), [push for push in self.pushes if not push.closed.is_set()]
        return [
            Subscription(p.id, reads, 1, Time(5), 2_500, 0, 0, p.meter.buffered, p.meter.peak_buffered) for p in opened
        ]

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        return self.wakeup.listen(ring)

    def store_bytes(self) -> Mapping[str, int]:
        return {"data": 4096, "log": 512}

    def owed_rows(self) -> int:
        return 3

    def lags(self) -> Mapping[QueryId, Sequence[Lag]]:
        return {query: [Lag(TopicName("orders"), 0, 5, 12)] for query in self.catalog.queries}

    def pull(self, bound: BoundSelect, transaction: str | None = None) -> PullResult:
        self.pulled_in.append(transaction)
        if self.failing is not None:
            raise self.failing
        columns = self.pulled_columns or tuple(ResultColumn(c.name, c.type) for c in bound.columns)
        return PullResult(columns, self.pulled, Time(1))

    def begin_transaction(self, *, read_only: bool = False) -> str:
        self.transactions.append("TX_1")
        self.drafts = None if read_only else Draft()
        return "TX_1"

    def change_in_transaction(self, id: str, parsed: ParsedStatement, properties: Mapping[str, str]) -> Changing:
        if id not in self.transactions or self.drafts is None:
            raise ReadOnlyTransaction(f"{parsed.text.split()[0]} cannot be run in a transaction, which only reads")
        self.drafts, bound = self.drafts.adding(parsed, properties, self.catalog)
        return bound

    def fail_transaction(self, id: str, reason: str) -> None:
        self.failed_transactions[id] = reason

    def end_transaction(self, id: str, *, commits: bool) -> list[tuple[Changing, Done]]:
        self.transactions.remove(id)
        draft, self.drafts = self.drafts, None
        if not commits or draft is None or not draft.statements:
            return []
        planned = draft.planned(self.catalog, number=40)
        self.catalog = planned.after
        return [(bound, Done("Done.", 40)) for bound in planned.bound]

    def explain_timestamp(self, bound: BoundSelect) -> str:
        return f"query time: 1 of {bound.relation.name}"

    def dated(self, bound: BoundSelect) -> BoundSelect:
        assert bound.as_of is not None
        return replace(bound, as_of=bound.as_of.dated(self.now))

    def left_ms(self, bound: BoundSelect) -> int:
        assert bound.as_of is not None
        assert not bound.as_of.moment.from_now
        self.asked_at.append(bound.as_of.moment.millis)
        self.now += 50
        left, self.left = self.left, max(0, self.left - 50)
        return left

    def prepare_lookup(self, bound: BoundSelect) -> KeyLookup | None:
        del bound
        return None

    def lookup(self, prepared: KeyLookup, keys: Sequence[Key]) -> KeyRows:
        raise AssertionError(f"{prepared} was never prepared for {keys}")

    def push(self, bound: BoundSelect | BoundSubscribe, properties: Mapping[str, str]) -> FakePush:
        if self.failing is not None:
            raise self.failing
        self.push_properties = properties
        push = FakePush(bound, next(self._numbers), self.wakeup.ring)
        self.pushes.append(push)
        self.started.release()
        return push

    def next_push(self) -> FakePush:
        """The push query that a client starts, once it has."""
        assert self.started.acquire(timeout=5)
        return self.pushes[-1]

    def close_push(self, id: str) -> bool:
        found = [push for push in self.pushes if push.id == id and not push.closed.is_set()]
        for push in found:
            push.close()
        return bool(found)

    def queries(self) -> list[QueryInfo]:
        objects = self.catalog.objects
        return [
            QueryInfo(q.id, q.statement, q.sources, q.sink, objects[q.sink].topic if q.sink else None)
            for q in self.catalog.queries.values()
        ]

    def explain(self, what: BoundExplain | QueryEntry, format_: ExplainFormat) -> str:
        if isinstance(what, QueryEntry):
            return explain_plan(what.plan, format_)
        return explain_statement(what.statement, what.text, format_)

    def described_topics(self, names: Iterable[TopicName]) -> Mapping[TopicName, Topic]:
        return {name: Topic(name, "id", 2, (1, 1)) for name in names}

    def topic_readers(self) -> Mapping[TopicName, tuple[int, int]]:
        return {TopicName("orders"): (3, 2)}

    def print_topic(self, asked: Print) -> "FakeTail":
        if self.failing_print:
            raise UnknownObject(asked.topic, kind="topic", known=["orders"], position=asked.topic_position)
        return FakeTail(self.printed)

    def assert_topic(self, asserted: BoundAssertTopic) -> None:
        if (asserted.topic in self.topics()) is not asserted.exists:
            raise AssertionFailed("it is not so")

    def topics(self) -> Sequence[TopicName]:
        return [TopicName("_holdfast_default_command_topic"), TopicName("orders")]

    def health(self) -> Health:
        return self.state

    def wait_failed(self, timeout: float) -> HoldfastError | None:
        del timeout
        return None

    def stop(self) -> None:
        self.stopped = True
