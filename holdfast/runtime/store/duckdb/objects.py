"""Which collections, states and outboxes there are, in which tables, and how their times stand."""

from dataclasses import dataclass, field

import duckdb

from holdfast.errors import StoreError
from holdfast.names import CollectionId, QueryId, StateId
from holdfast.runtime.expressions.parse import parse_type
from holdfast.runtime.store.duckdb.columns import declared, key_type, listed, updatable_number
from holdfast.runtime.store.duckdb.ledger import Entry
from holdfast.runtime.store.duckdb.one import one
from holdfast.runtime.store.frontier import BUILDING
from holdfast.runtime.store.port import Frontier, Layout, Time


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
    """The since that `advance_since` was asked for; holds may keep the real one below it."""
    oldest: Time | None = None
    """The least `until` in history, None when history is empty."""

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

    def entry(self, *, upper: Time | None = None, written: Time | None = None, next_seq: int | None = None) -> Entry:
        """The ledger's entry of the collection as it is, or as a tick will leave it."""
        start = 0 if self.history_from is None else self.history_from + 1
        numbers = (
            self.frontier.since,
            self.frontier.upper if upper is None else upper,
            start,
            self.written if written is None else written,
            self.next_seq if next_seq is None else next_seq,
        )
        return Entry("collection", self.id, numbers=numbers)

    def recall(self, numbers: tuple[int, ...]) -> None:
        since, upper, start, written, self.next_seq = numbers
        self.frontier = Frontier(Time(since), Time(upper))
        self.history_from = Time(start - 1) if start else None
        self.written = self.writing = Time(written)


@dataclass(frozen=True, slots=True)
class State:
    id: StateId
    number: int
    layout: Layout

    @property
    def table(self) -> str:
        return f"state_{self.number}"


@dataclass(slots=True)
class Outbox:
    query: QueryId
    number: int
    layout: Layout
    owed: dict[Time, int] = field(default_factory=dict)
    """Rows by time, oldest first."""

    @property
    def table(self) -> str:
        return f"outbox_{self.number}"


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
        rows = database.execute("SELECT kind, name, number, key, value, window_ms FROM objects ORDER BY number")
        for kind, name, number, key, value, window_ms in rows.fetchall():
            layout = Layout(tuple(map(parse_type, key)), tuple(map(parse_type, value)))
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
                    outbox.owed.update(database.execute(counts).fetchall())
                    objects.outboxes[outbox.query] = outbox
        return objects

    def collection(self, id_: CollectionId) -> Collection:
        try:
            return self.collections[id_]
        except KeyError:
            raise StoreError(f"the store has no collection {id_}") from None

    def state(self, id_: StateId) -> State:
        try:
            return self.states[id_]
        except KeyError:
            raise StoreError(f"the store has no state {id_}") from None

    def outbox(self, query: QueryId) -> Outbox:
        try:
            return self.outboxes[query]
        except KeyError:
            raise StoreError(f"the store has no outbox of {query}") from None


def _oldest(database: duckdb.DuckDBPyConnection, collection: Collection) -> Time | None:
    [oldest] = one(database, f"SELECT min(until) FROM {collection.history}")
    return None if oldest is None else Time(oldest)


# -- tables ------------------------------------------------------------------------------------------


def collection_tables(collection: Collection) -> list[str]:
    """`history` has one row per change: the version superseded at `until`, not present when the key was absent."""
    key, layout = f"k {key_type(collection.layout)}", collection.layout
    keys = declared("k", layout.key)
    numbers = [updatable_number("ts", "BIGINT"), updatable_number("since", "UBIGINT")]
    current = listed([key, "seq UBIGINT"], keys, declared("c", layout.value, updatable=True), numbers)
    history = listed([key, "seq UBIGINT"], keys, declared("c", layout.value))
    return [
        f"CREATE TABLE {collection.current} ({current})",
        f"CREATE INDEX {collection.current}_k ON {collection.current} (k)",
        f"CREATE TABLE {collection.history} ({history}, ts BIGINT, since UBIGINT, until UBIGINT, present BOOLEAN)",
    ]


def state_tables(state: State) -> list[str]:
    key, layout = f"k {key_type(state.layout)}", state.layout
    values = [*declared("s", layout.value, updatable=True), updatable_number("ts", "BIGINT")]
    return [
        f"CREATE TABLE {state.table} ({listed([key], declared('k', layout.key), values)})",
        f"CREATE INDEX {state.table}_k ON {state.table} (k)",
    ]


def outbox_tables(outbox: Outbox) -> list[str]:
    values = listed(declared("k", outbox.layout.key), declared("c", outbox.layout.value), ["ts BIGINT"])
    return [f"CREATE TABLE {outbox.table} (time UBIGINT, n UBIGINT, present BOOLEAN, {values})"]
