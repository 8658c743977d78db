"""The collections, states and outboxes of the store: their tables, frontiers and memtables."""

from dataclasses import dataclass, field
from typing import NamedTuple

import duckdb
import pyarrow as pa

from holdfast.errors import StoreError
from holdfast.names import CollectionId, QueryId, StateId
from holdfast.runtime.expressions.parse import parse_type
from holdfast.runtime.store.duckdb.columns import ORDERED, column, declared, group_type, key_type, listed
from holdfast.runtime.store.duckdb.disk.wal import WalEntry
from holdfast.runtime.store.duckdb.memtable.rows import (
    Memtable,
    SupersededRows,
    collection_rows_schema,
    history_schema,
    state_rows_schema,
)
from holdfast.runtime.store.duckdb.statements import one
from holdfast.runtime.store.frontier import BUILDING
from holdfast.runtime.store.port import Frontier, Layout, Time
from holdfast.runtime.store.schemas import is_plain_key


@dataclass(frozen=True, slots=True)
class Unflushed:
    """What memory has beyond a collection's tables, as of a moment.

    `now` has a row for each key that changed since `first`, not present when it was deleted; `past` has the versions
    that were superseded since. The tables then count for nothing in what such a key is, or was from `first` on.
    """

    now: pa.Table
    past: pa.Table
    first: Time


@dataclass(slots=True)
class Collection:
    """A collection's tables and times. `history_from` is where a builder said that its history starts."""

    id: CollectionId
    number: int
    layout: Layout
    window_ms: int
    frontier: Frontier = BUILDING
    history_from: Time | None = None
    written: Time = BUILDING.since
    writing: Time = BUILDING.since
    """The time of the newest tick that may be visible to a read; set before that tick commits."""
    next_seq: int = 0
    wanted: Time = BUILDING.since
    """The since that `advance_since` requested; pins and holds may keep the real one below it."""
    oldest: Time | None = None
    """The least `until` in history, None when history is empty."""
    memtable: Memtable = field(init=False)
    past: SupersededRows = field(init=False)
    _first: Time | None = None
    _unflushed: Unflushed | None = None

    def __post_init__(self) -> None:
        self.memtable, self.past = (
            Memtable(collection_rows_schema(self.layout)),
            SupersededRows(history_schema(self.layout)),
        )

    def unflushed(self) -> Unflushed | None:
        """Callers hold `memory_lock`."""
        if self._unflushed is None and self._first is not None:
            self._unflushed = Unflushed(self.memtable.dirty(), self.past.table(), self._first)
        return self._unflushed

    def change(self, now: pa.Table, before: pa.Table | None, time: Time, number: int) -> None:
        """Take what a small tick did: the rows it left, and those it superseded."""
        self.memtable.change(now, number)
        if before is not None:
            self.past.add(time, before)
        self._first = time if self._first is None else self._first
        self._unflushed = None

    def flushed(self) -> None:
        """The tables have all."""
        self.memtable.flushed()
        self.past.clear()
        self._first = self._unflushed = None

    def forget(self, bound: Time, limit: int) -> int:
        """Drop at most `limit` versions that memory has and no readable time needs; returns how many."""
        forgotten = self.past.forget(bound, limit)
        if forgotten:
            self._unflushed = None
        return forgotten

    @property
    def current(self) -> str:
        return f"current_{self.number}"

    @property
    def history(self) -> str:
        return f"history_{self.number}"

    @property
    def keeps_history(self) -> bool:
        """A collection that no time can be read of needs none."""
        return self.frontier.upper > 0 or self.history_from is not None

    def entry(self, *, upper: Time | None = None, written: Time | None = None, next_seq: int | None = None) -> WalEntry:
        """The log's entry of the collection as it is, or as a tick will leave it."""
        start = 0 if self.history_from is None else self.history_from + 1
        numbers = (
            self.frontier.since,
            self.frontier.upper if upper is None else upper,
            start,
            self.written if written is None else written,
            self.next_seq if next_seq is None else next_seq,
        )
        return WalEntry("collection", self.id, numbers=numbers)

    def restore(self, numbers: tuple[int, ...]) -> None:
        since, upper, start, written, self.next_seq = numbers
        self.frontier = Frontier(Time(since), Time(upper))
        self.history_from = Time(start - 1) if start else None
        self.written = self.writing = Time(written)


@dataclass(slots=True)
class State:
    id: StateId
    number: int
    layout: Layout
    memtable: Memtable = field(init=False)
    oldest: int | None = None
    """No row of the table has a lesser `ts`; None when it is not known."""

    def __post_init__(self) -> None:
        self.memtable = Memtable(state_rows_schema(self.layout))

    def written(self) -> None:
        """The table was written."""
        self.oldest = None

    @property
    def table(self) -> str:
        return f"state_{self.number}"


class Unwritten(NamedTuple):
    """Rows of one tick that are only in memory and in the log, under a number."""

    number: int
    rows: pa.Table


class Sampled(NamedTuple):
    """The mean width of the rows of a table, in bytes, as of a number of rows."""

    rows: int
    width: float


@dataclass(slots=True)
class Outbox:
    query: QueryId
    number: int
    layout: Layout
    written: dict[Time, int] = field(default_factory=dict)
    """How many rows the table has by time, oldest first."""
    unwritten: dict[Time, Unwritten] = field(default_factory=dict)
    sampled: Sampled | None = None

    @property
    def pending(self) -> dict[Time, int]:
        """Rows by time."""
        return self.written | {time: part.rows.num_rows for time, part in self.unwritten.items()}

    @property
    def first(self) -> int | None:
        """The number in the log of the oldest rows that are only in memory."""
        return min((part.number for part in self.unwritten.values()), default=None)

    @property
    def table(self) -> str:
        return f"outbox_{self.number}"


Object = Collection | State | Outbox


class Objects:
    """All objects by id; a lookup that fails says what is missing."""

    def __init__(self) -> None:
        self.collections: dict[CollectionId, Collection] = {}
        self.states: dict[StateId, State] = {}
        self.outboxes: dict[QueryId, Outbox] = {}
        self.next_number = 0

    @classmethod
    def read(cls, database: duckdb.DuckDBPyConnection) -> "Objects":
        objects = cls()
        rows = database.execute(
            "SELECT kind, name, number, key, value, window_ms, grouped, ordered FROM objects ORDER BY number"
        )
        for kind, name, number, key, value, window_ms, grouped, ordered in rows.fetchall():
            layout = Layout(tuple(map(parse_type, key)), tuple(map(parse_type, value)), grouped, ordered)
            objects.next_number = number + 1
            match kind:
                case "collection":
                    collection = Collection(CollectionId(name), number, layout, window_ms)
                    collection.oldest = _oldest(database, collection)
                    objects.collections[collection.id] = collection
                case "state":
                    objects.states[StateId(name)] = State(StateId(name), number, layout)
                case "outbox":
                    outbox = Outbox(QueryId(name), number, layout)
                    counts = f"SELECT time, count(*) FROM {outbox.table} GROUP BY time ORDER BY time"
                    outbox.written.update(database.execute(counts).fetchall())
                    objects.outboxes[outbox.query] = outbox
        return objects

    def by_number(self) -> dict[int, Object]:
        everything: list[Object] = [*self.collections.values(), *self.states.values(), *self.outboxes.values()]
        return {found.number: found for found in everything}

    def collection(self, id_: CollectionId) -> Collection:
        try:
            return self.collections[id_]
        except KeyError:
            raise StoreError(
                f'"{id_}" does not exist in the store', detail="It was dropped, or is not created yet."
            ) from None

    def state(self, id_: StateId) -> State:
        try:
            return self.states[id_]
        except KeyError:
            raise StoreError(f'state "{id_}" does not exist in the store') from None

    def outbox(self, query: QueryId) -> Outbox:
        try:
            return self.outboxes[query]
        except KeyError:
            raise StoreError(f'query "{query}" has no outbox in the store') from None


def _oldest(database: duckdb.DuckDBPyConnection, collection: Collection) -> Time | None:
    [oldest] = one(database, f"SELECT min(until) FROM {collection.history}")
    return None if oldest is None else Time(oldest)


# -- tables ------------------------------------------------------------------------------------------


def collection_tables(collection: Collection) -> list[str]:
    """`history` has one row per change: the version superseded at `until`, not present when the key was absent."""
    layout = collection.layout
    key, seq = _key_column(layout), column("seq", "UBIGINT", plain=True)
    times = [column("ts", "BIGINT", plain=True), column("since", "UBIGINT", plain=True)]
    group = [_group_column(layout)] if layout.group else []
    current = listed([key, seq], _key_columns(layout), declared("c", layout.value, plain=True), times, group)
    history = listed([f"k {key_type(layout)}", "seq UBIGINT"], declared("k", layout.key), declared("c", layout.value))
    tables = [
        f"CREATE TABLE {collection.current} ({current})",
        f"CREATE INDEX {collection.current}_k ON {collection.current} (k)",
        f"CREATE TABLE {collection.history} ({history}, ts BIGINT, since UBIGINT, until UBIGINT, present BOOLEAN)",
    ]
    indexed = "g" if layout.ordered is None else f"({ORDERED})"
    return [*tables, f"CREATE INDEX {collection.current}_g ON {collection.current} ({indexed})"] if group else tables


def state_tables(state: State) -> list[str]:
    layout = state.layout
    values = [*declared("s", layout.value, plain=True), column("ts", "BIGINT", plain=True)]
    group = [_group_column(layout)] if layout.group else []
    tables = [
        f"CREATE TABLE {state.table} ({listed([_key_column(layout)], _key_columns(layout), values, group)})",
        f"CREATE INDEX {state.table}_k ON {state.table} (k)",
    ]
    return [*tables, f"CREATE INDEX {state.table}_g ON {state.table} (g)"] if group else tables


def outbox_tables(outbox: Outbox) -> list[str]:
    """Not compressed: rows are there until they are published."""
    layout = outbox.layout
    values = listed(declared("k", layout.key, plain=True), declared("c", layout.value, plain=True), ["ts BIGINT"])
    return [f"CREATE TABLE {outbox.table} (time UBIGINT, n UBIGINT, present BOOLEAN, {values})"]


def _key_column(layout: Layout) -> str:
    return column("k", key_type(layout), plain=True)


def _key_columns(layout: Layout) -> list[str]:
    """A plain key is its own encoding, and is not read a second time with a row."""
    return declared("k", layout.key, plain=not is_plain_key(layout))


def _group_column(layout: Layout) -> str:
    return column("g", group_type(layout), plain=True)
