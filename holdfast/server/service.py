"""What the HTTP server needs of the service behind it; `holdfast.app.Service` has this shape, and so has a test's fake.

Every method blocks and may be called from any thread.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from holdfast.backup.cut import Cut
from holdfast.catalog.objects import CatalogObject, Hold, QueryEntry
from holdfast.catalog.snapshot import Catalog
from holdfast.config import Settings
from holdfast.errors import HoldfastError
from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.planner.draft import Changing
from holdfast.runtime.store.port import Pinned, Time
from holdfast.serving.lookup import Key, KeyLookup, KeyRows
from holdfast.serving.results import PullResult, Push
from holdfast.serving.subscriptions import Subscription
from holdfast.sql.bound import BoundAssertTopic, BoundExplain, BoundInsert, BoundSelect, BoundSubscribe
from holdfast.sql.bound_hold import BoundAdvanceHold
from holdfast.sql.bound_read import BoundRead
from holdfast.sql.parse import ParsedStatement
from holdfast.sql.statements import ExplainFormat, Print


class Done(Protocol):
    """What a statement did."""

    @property
    def message(self) -> str: ...

    @property
    def sequence(self) -> int: ...

    @property
    def query(self) -> QueryId | None: ...


class QueryInfo(Protocol):
    """A query and how it fares; `done` is the part of its backfill that is behind it, from 0 to 1."""

    @property
    def id(self) -> QueryId: ...

    @property
    def statement(self) -> str: ...

    @property
    def sources(self) -> tuple[ObjectName, ...]: ...

    @property
    def sink(self) -> ObjectName | None: ...

    @property
    def sink_topic(self) -> TopicName | None: ...

    @property
    def state(self) -> str: ...

    @property
    def reason(self) -> str | None: ...

    @property
    def done(self) -> float: ...


class HoldInfo(Protocol):
    """A hold and its time. `advanced` counts how often it was moved on by itself, last for `reason`."""

    @property
    def hold(self) -> Hold: ...

    @property
    def at(self) -> Time: ...

    @property
    def lag_ms(self) -> int: ...

    @property
    def advanced(self) -> int: ...

    @property
    def reason(self) -> str | None: ...

    @property
    def pinned(self) -> Pinned: ...


class Health(Protocol):
    """Whether the service works; `problems` says by part what does not."""

    @property
    def healthy(self) -> bool: ...

    @property
    def problems(self) -> Mapping[str, str]: ...


class Lag(Protocol):
    """How far a query is in a partition that it reads: the next offset that it takes, and the partition's end."""

    @property
    def topic(self) -> TopicName: ...

    @property
    def partition(self) -> int: ...

    @property
    def current(self) -> int: ...

    @property
    def end(self) -> int: ...


class Topic(Protocol):
    """A topic as Kafka has it: how many partitions, and how many copies of each."""

    @property
    def partitions(self) -> int: ...

    @property
    def replicas(self) -> tuple[int, ...]: ...


class Tail(Protocol):
    """The records of a topic as they come: `timestamp, key, value, partition`. For one thread."""

    def next(self, timeout: float) -> pa.Table: ...

    def close(self) -> None: ...


class Backups(Protocol):
    """Backups of a running service; see `holdfast.coordinator.backups`."""

    def begin(self) -> Cut: ...

    def keep(self, id_: str, /) -> bool: ...

    def end(self, id_: str, /) -> bool: ...


class Service(Protocol):
    """A running service."""

    @property
    def settings(self) -> Settings: ...

    @property
    def version(self) -> str: ...

    @property
    def cluster_id(self) -> str: ...

    @property
    def catalog(self) -> Catalog: ...

    @property
    def backups(self) -> Backups: ...

    def execute(self, parsed: ParsedStatement, properties: Mapping[str, str]) -> Done: ...

    def insert(self, bound: BoundInsert) -> None: ...

    def insert_rows(self, target: CatalogObject, rows: pa.Table) -> None:
        """Give an object rows (`present, k0.., c0.., ts`); they are durable when this returns."""

    def pull(self, bound: BoundSelect | BoundRead, transaction: str | None = None) -> PullResult: ...

    def begin_transaction(self, *, read_only: bool = False) -> str:
        """Open a transaction; gives its id."""

    def change_in_transaction(self, id: str, parsed: ParsedStatement, properties: Mapping[str, str]) -> Changing:
        """Have a statement done on COMMIT; gives it bound."""

    def fail_transaction(self, id: str, reason: str) -> None:
        """Have a transaction that does not read change nothing."""

    def end_transaction(self, id: str, *, commits: bool) -> Sequence[tuple[Changing, Done]]:
        """End a transaction; gives what it has changed."""

    def explain_timestamp(self, bound: BoundSelect | BoundRead) -> str: ...

    def dated(self, bound: BoundSelect | BoundRead) -> BoundSelect | BoundRead:
        """A pull with the `now()` of its AS OF as what it is now."""

    def left_ms(self, bound: BoundSelect | BoundRead) -> int:
        """Milliseconds until the time that a pull asks for has come."""

    def prepare_lookup(self, bound: BoundSelect) -> KeyLookup | None:
        """A pull as one by key, if it is one. Quick: it asks no disk."""

    def lookup(self, prepared: KeyLookup, keys: Sequence[Key]) -> KeyRows: ...

    def push(self, bound: BoundSelect | BoundSubscribe, properties: Mapping[str, str]) -> Push: ...

    def close_push(self, id: str) -> bool: ...

    def subscriptions(self) -> Sequence[Subscription]: ...

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        """Have a function called whenever push queries may have something; gives how to end it."""

    def queries(self) -> Sequence[QueryInfo]: ...

    def advance_hold(self, bound: BoundAdvanceHold) -> Time: ...

    def holds(self) -> Sequence[HoldInfo]: ...

    def store_bytes(self) -> Mapping[str, int]: ...

    def owed_rows(self) -> int: ...

    def lags(self) -> Mapping[QueryId, Sequence[Lag]]: ...

    def explain(self, what: BoundExplain | QueryEntry, format_: ExplainFormat) -> str: ...

    def topics(self) -> Sequence[TopicName]: ...

    def described_topics(self, names: Iterable[TopicName]) -> Mapping[TopicName, Topic]:
        """Those of some topics that there are."""

    def topic_readers(self) -> Mapping[TopicName, tuple[int, int]]:
        """How many consumers, of how many groups, read each topic now."""

    def print_topic(self, asked: Print) -> Tail:
        """The records of a topic as they come; the caller closes it."""

    def assert_topic(self, asserted: BoundAssertTopic) -> None:
        """Wait until a topic is as it is said to be; an error when it is not within the time."""

    def health(self) -> Health: ...

    def wait_failed(self, timeout: float) -> HoldfastError | None: ...

    def stop(self) -> None: ...
