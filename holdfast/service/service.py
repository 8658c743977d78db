"""The interface of a running Holdfast for servers and programs."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from holdfast.catalog.objects import CatalogObject, QueryEntry
from holdfast.catalog.snapshot import Catalog
from holdfast.config import Settings
from holdfast.errors import HoldfastError
from holdfast.kafka.port import Topic
from holdfast.kafka.tail import TopicTail
from holdfast.names import QueryId, TopicName
from holdfast.planner.draft import Change
from holdfast.runtime.store.port import Time
from holdfast.service.backups import Backups
from holdfast.service.ddl import Ddl, Done, HoldStatus
from holdfast.service.inserts import Inserts
from holdfast.service.lag import Lag
from holdfast.service.push import OpenPush, PushQueries
from holdfast.service.reads import Reads
from holdfast.service.status import Health, QueryInfo, ServiceStatus
from holdfast.service.supervisor import Supervisor
from holdfast.service.topics import Topics
from holdfast.serving.pull.key_lookup import Key, KeyLookup, KeyRows
from holdfast.serving.push.lag_watch import SubscriptionInfo
from holdfast.serving.push.query import PushQuery
from holdfast.serving.results import PullResult
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.bind.assert_topic import BoundAssertTopic
from holdfast.sql.bind.hold import BoundAdvanceHold
from holdfast.sql.bind.insert import BoundInsert
from holdfast.sql.bind.statement import BoundExplain
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.read.subscribe import BoundSubscribe
from holdfast.sql.syntax.parse import ParsedStatement
from holdfast.sql.syntax.statements import ExplainFormat, Print
from holdfast.version import VERSION


class ServiceApi:
    """A running server without HTTP. Every method blocks and may be called from any thread.

    A facade: each part has its own module in this package. Its creator stops the parts.
    """

    version = VERSION

    def __init__(
        self,
        settings: Settings,
        *,
        ddl: Ddl,
        reads: Reads,
        push_queries: PushQueries,
        inserts: Inserts,
        topics: Topics,
        status: ServiceStatus,
        backups: Backups,
        supervisor: Supervisor,
        cluster_id: Callable[[], str],
    ) -> None:
        self.settings, self.backups = settings, backups
        self._ddl, self._reads, self._push_queries, self._inserts = ddl, reads, push_queries, inserts
        self._topics, self._status, self._supervisor = topics, status, supervisor
        self._cluster_id = cluster_id

    # -- DDL

    @property
    def catalog(self) -> Catalog:
        return self._ddl.catalog

    def execute(self, parsed: ParsedStatement, properties: Mapping[str, str]) -> Done:
        return self._ddl.execute(parsed, properties)

    def advance_hold(self, bound: BoundAdvanceHold) -> Time:
        return self._ddl.advance_hold(bound)

    def holds(self) -> list[HoldStatus]:
        return self._ddl.holds()

    # -- reads

    def pull(self, bound: BoundSelect | BoundRead, transaction: str | None = None) -> PullResult:
        return self._reads.pull(bound, transaction)

    def prepare_lookup(self, bound: BoundSelect) -> KeyLookup | None:
        return self._reads.prepare_lookup(bound)

    def lookup(self, prepared: KeyLookup, keys: Sequence[Key]) -> KeyRows:
        return self._reads.lookup(prepared, keys)

    def explain(self, what: BoundExplain | QueryEntry, format_: ExplainFormat) -> str:
        return self._reads.explain(what, format_)

    def explain_timestamp(self, bound: BoundSelect | BoundRead) -> str:
        return self._reads.explain_timestamp(bound)

    def dated(self, bound: BoundSelect | BoundRead) -> BoundSelect | BoundRead:
        return self._reads.dated(bound)

    def left_ms(self, bound: BoundSelect | BoundRead) -> int:
        return self._reads.left_ms(bound)

    def begin_transaction(self, *, read_only: bool = False) -> str:
        return self._reads.begin_transaction(read_only=read_only)

    def change_in_transaction(self, id_: str, parsed: ParsedStatement, properties: Mapping[str, str]) -> Change:
        return self._reads.change_in_transaction(id_, parsed, properties)

    def fail_transaction(self, id_: str, reason: str) -> None:
        self._reads.fail_transaction(id_, reason)

    def end_transaction(self, id_: str, *, commits: bool) -> list[Done]:
        return self._reads.end_transaction(id_, commits=commits)

    # -- push queries

    def push(
        self, bound: BoundSelect | BoundSubscribe, properties: Mapping[str, str], statement: str = ""
    ) -> PushQuery:
        return self._push_queries.start(bound, properties, statement)

    def open_pushes(self) -> list[OpenPush]:
        return self._push_queries.open()

    def find_push(self, id_: str) -> PushQuery | None:
        return self._push_queries.find(id_)

    def close_push(self, id_: str) -> bool:
        return self._push_queries.close(id_)

    def subscriptions(self) -> list[SubscriptionInfo]:
        return self._push_queries.subscriptions()

    @property
    def wakeup(self) -> Wakeup:
        return self._push_queries.wakeup

    # -- inserts

    def insert(self, bound: BoundInsert) -> None:
        self._inserts.insert(bound)

    def insert_rows(self, target: CatalogObject, rows: pa.Table) -> None:
        self._inserts.insert_rows(target, rows)

    # -- topics

    @property
    def cluster_id(self) -> str:
        """The id of the Kafka cluster."""
        return self._cluster_id()

    def topics(self) -> Sequence[TopicName]:
        return self._topics.names()

    def described_topics(self, names: Iterable[TopicName]) -> Mapping[TopicName, Topic]:
        return self._topics.describe(names)

    def topic_readers(self) -> Mapping[TopicName, tuple[int, int]]:
        return self._topics.readers()

    def print_topic(self, statement: Print) -> TopicTail:
        return self._topics.print(statement)

    def assert_topic(self, asserted: BoundAssertTopic) -> None:
        self._topics.assert_topic(asserted)

    # -- status

    def queries(self) -> list[QueryInfo]:
        return self._status.queries()

    def health(self) -> Health:
        return self._status.health()

    def lags(self) -> Mapping[QueryId, Sequence[Lag]]:
        return self._status.lags()

    def store_bytes(self) -> Mapping[str, int]:
        return self._status.store_bytes()

    def pending_rows(self) -> int:
        return self._status.pending_rows()

    def wait_failed(self, timeout: float) -> HoldfastError | None:
        """Why the server has to stop, or None."""
        return self._supervisor.wait_failed(timeout)
