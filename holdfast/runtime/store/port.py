"""What the engine asks of a store.

A store keeps three kinds of things, and moves them only in `TickStage.commit`:

- **collections**: the multi-version contents of tables. A row has key columns, value columns and a
  ROWTIME (`ts`, milliseconds). Between `since` and `upper` every time is readable.
- **state**: what a stateful step remembers per key; no history.
- **groups**: a grouped collection or state has several rows, its elements, for the same first columns of the key, which
  are its group. The rows of a group are found without looking at others.
- **what a tick moved**: remap, offsets, and the rows that are owed to sink topics (the outbox).

Arrow layouts, by column name (explicit schemas, positional names so that SQL names never meet):

- rows in: ``k0..`` key columns, ``c0..`` value columns, ``ts`` BIGINT; upserts add ``present`` BOOLEAN.
- a **delta** out of an upsert or a merge: ``k0..``, ``b_present, b0.., b_ts`` (before the tick) and
  ``a_present, a0.., a_ts`` (after it). One row per touched key; ``a_ts`` of a delete is the deleting row's.
- changes out: ``time`` UBIGINT, ``k0..``, then before and after as in a delta; ``a_ts`` of a delete is null.
- partials in: ``k0..``, ``p0..``, ``ts``.
- spans of time: any of a state's key columns, ``after`` and ``upto`` BIGINT. A row is in a span that has the same
  values in those columns when ``after < ts <= upto``; a null `after` is no bound.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NewType, Protocol

import pyarrow as pa

from holdfast.errors import ReadError, StoreError
from holdfast.names import CollectionId, HoldId, QueryId, StateId, StoreId, TopicName
from holdfast.types import SqlType

Time = NewType("Time", int)
"""Milliseconds since the epoch, unsigned, strictly increasing from tick to tick."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The physical columns of a collection, a state or an outbox: types in order.

    The first `group` key columns of a grouped collection or state are its group; 0 otherwise.
    """

    key: tuple[SqlType, ...]
    value: tuple[SqlType, ...]
    group: int = 0


@dataclass(frozen=True, slots=True)
class Merge:
    """How a partial row is merged into the state of its key, as DuckDB SQL.

    Each expression is over ``s0..`` (the state, its initial value for a new key) and ``p0..`` (the partial);
    `initial` gives the state of a key that was never seen. `ts` always merges as the greatest. Expressions are
    written so that they cannot fail (overflow wraps, `TRY`); one that does fails its query, not the tick.
    `partial` has the types of the partial where they are not those of the state.
    """

    initial: tuple[str, ...]
    merged: tuple[str, ...]
    partial: tuple[SqlType, ...] | None = None

    def arriving(self, state: Layout) -> Layout:
        """The columns of a partial row."""
        return state if self.partial is None else Layout(state.key, self.partial)


@dataclass(frozen=True, slots=True)
class RideAlong:
    """A projection and a condition over a merged state, computed where the state is.

    Expressions are DuckDB SQL over ``s0..`` and ``k0..``. A row for which `having` is not true is absent.
    """

    projection: tuple[str, ...]
    having: str | None


@dataclass(frozen=True, slots=True)
class Show:
    """The collection that shows a state, by a projection of it."""

    collection: CollectionId
    along: RideAlong


@dataclass(frozen=True, slots=True)
class Merging:
    """Partials, one row per key, that a query merges into a state; and the collection that shows it."""

    query: QueryId
    state: StateId
    partials: pa.Table
    merge: Merge
    show: Show | None = None


@dataclass(frozen=True, slots=True)
class Frontier:
    """``[since, upper)`` are the readable times of a collection.

    ────┬───────────────┬────▶ time
      since           upper
    """

    since: Time
    upper: Time


@dataclass(frozen=True, slots=True)
class Kept:
    """A time that is kept readable on collections, whichever process has the store."""

    on: tuple[CollectionId, ...]
    at: Time


@dataclass(frozen=True, slots=True)
class Pinned:
    """What is in history only because of a hold: superseded versions, and about how many bytes they are."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Moved:
    """The end offset that a topic partition reached in a tick."""

    topic: TopicName
    partition: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class Position:
    """How far a query has read a topic partition."""

    query: QueryId
    topic: TopicName
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Owed:
    """Rows of one tick that a sink topic has still to get, oldest first."""

    time: Time
    sink: QueryId
    rows: int


@dataclass(frozen=True, slots=True)
class Part:
    """What a grouped collection arranges, as of a time: its rows without the columns of the group.

    All of them, or those of some groups (``k0..``); a group with a null finds nothing, as in a comparison.
    """

    collection: CollectionId
    at: Time
    groups: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """The rows of a collection as of a time that have one of some keys (``k0..``); a key with a null finds nothing.

    They are found by the key's index, whatever else a statement asks of them.
    """

    collection: CollectionId
    at: Time
    keys: pa.Table


Relation = tuple[CollectionId, Time] | Part | Named
"""A collection as of a time, as a reader names it."""


Period = tuple[int, int]
"""The first ``ts`` and the last one."""


KeyRange = tuple[Any, Any]
"""The first encoded key, and the first that is not in it; None when there is none."""


PageSize = int | Callable[[], int]
"""The rows of a page at most, or who says so before each: he may have learnt from the last how large rows are."""


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """A part of a collection's changes, as `Store.changes` takes it."""

    after: Time
    to: Time
    keys: KeyRange | None = None


class TickStage(Protocol):
    """The half-done tick. Nothing of it is visible, and nothing of it survives, before `commit`.

    Work is grouped by query: `discard` forgets all that was staged for one, so that a failing query
    leaves the others alone.
    """

    def upsert(self, query: QueryId, collection: CollectionId, rows: pa.Table) -> None:
        """Stage the last row per key (``present`` false deletes). Keys must be unique within `rows`.

        A collection is written once per tick. What cannot be staged is a `StoreError`, and is not staged.
        """

    def merge(self, mergings: Sequence[Merging]) -> Mapping[QueryId, StoreError]:
        """Stage partials into states, each once per tick, and the upserts of the collections that show them.

        All together, because what a few rows cost is hardly more for many queries than for one. What fails of a
        query stages nothing of it, and is told by query; the others are staged.
        """

    def put(self, query: QueryId, state: StateId, rows: pa.Table, expired: pa.Table | None = None) -> None:
        """Stage the last row per key of a state (``present`` false deletes). Keys must be unique within `rows`.

        Beside them the rows within the spans `expired` are deleted, but for the keys that `rows` has. A state is
        put or merged once per tick. What cannot be staged is a `StoreError`, and is not staged.
        """

    def append(self, query: QueryId, rows: pa.Table) -> None:
        """Stage rows of a stream for the query's outbox, in their order; ``present`` may be left out."""

    def owe(self, query: QueryId, collection: CollectionId) -> None:
        """Stage the collection's changes of this tick for the query's outbox."""

    def delta(self, collection: CollectionId) -> pa.Table:
        """Before and after of each key that this tick upserts in the collection."""

    def state_delta(self, state: StateId) -> pa.Table:
        """Before and after of each key that this tick merges or puts in the state; b and a are state columns."""

    def lookup(self, collection: CollectionId, keys: pa.Table, at: Time | None = None) -> pa.Table:
        """The committed rows of the given keys (``k0..``), now or as of a time: ``k0.., c0.., ts``."""

    def lookup_state(self, state: StateId, keys: pa.Table) -> pa.Table:
        """The committed state of the given keys: ``k0.., c0.., ts``."""

    def lookup_groups(self, state: StateId, groups: pa.Table, within: Period | None = None) -> pa.Table:
        """The committed elements of the given groups (``k0..``) of a grouped state: ``k0.., c0.., ts``.

        With `within`, those whose ``ts`` is in it.
        """

    def lookup_spans(self, state: StateId, spans: pa.Table) -> pa.Table:
        """The committed rows of a state within spans of time: ``k0.., c0.., ts``."""

    def move(self, query: QueryId, moved: Sequence[Moved]) -> None:
        """Stage how far a query has read."""

    def remap(self, moved: Sequence[Moved]) -> None:
        """Stage which offsets become visible at this tick's time."""

    def discard(self, query: QueryId) -> None:
        """Forget everything staged for a query."""

    def commit(self, time: Time) -> None:
        """Make everything staged durable and visible at `time`, all or nothing.

        For each collection in it, `time` must be at least its upper and above the last time it was written at;
        its upper becomes ``time + 1``, unless it is still being built. After an error all is as before, and
        `commit` may be tried again.
        """

    def abandon(self) -> None:
        """Forget everything staged."""


class Store(Protocol):
    """One durable store. Reads may come from any thread; ticks come from one."""

    @property
    def id(self) -> StoreId: ...

    def close(self) -> None: ...

    # -- objects -------------------------------------------------------------------------------------

    def create_collection(self, collection: CollectionId, layout: Layout, *, window_ms: int) -> None:
        """Make an empty collection that is readable from its first `set_upper` on. Again: nothing happens.
        Again with more value columns: it gets them, with NULL in all rows that it has had.

        Until then it is being built: ticks write it but leave its frontier at (0, 0). It keeps no history while
        it is built, and can then be read from ``upper - 1`` on, unless `advance_since` said before where its
        history starts.
        """

    def set_window(self, collection: CollectionId, window_ms: int) -> None:
        """Keep history for so long behind upper from now on. What is forgotten already stays forgotten."""

    def drop_collection(self, collection: CollectionId) -> None: ...

    def collections(self) -> Mapping[CollectionId, Layout]: ...

    def create_state(self, state: StateId, layout: Layout) -> None:
        """Make an empty state. One with groups is only put, not merged. Again: nothing happens."""

    def drop_state(self, state: StateId) -> None: ...

    def states(self) -> Mapping[StateId, Layout]: ...

    def create_outbox(self, query: QueryId, layout: Layout) -> None:
        """Make an empty outbox. Again: it gets the further value columns, with NULL in the rows that it has."""

    def drop_outbox(self, query: QueryId) -> None: ...

    def queries(self) -> Set[QueryId]:
        """Every query that has offsets or an outbox."""

    def forget_query(self, query: QueryId) -> None:
        """Drop a query's offsets and its facts: those whose key starts with ``<query>/``."""

    # -- time ----------------------------------------------------------------------------------------

    def last_time(self) -> Time:
        """The greatest time that was committed or reserved: a new time must be above it after a restart."""

    def committed_time(self) -> Time:
        """The greatest time that was committed."""

    def reserve(self, until: Time) -> None:
        """Make durable that times up to `until` may have been handed to readers."""

    def frontier(self, collection: CollectionId) -> Frontier:
        """Its upper is where `commit` or `set_upper` left it; it is 0 while it is being built."""

    def set_upper(self, collections: Sequence[CollectionId], upper: Time) -> None:
        """Say that nothing more comes below `upper`. In memory until the next commit; never moves back."""

    def advance_since(self, collection: CollectionId, to: Time) -> None:
        """Allow history before `to` to be forgotten. Never moves back, nor past upper; a hold keeps it where it is.

        Of a collection that is being built: keep history from `to` on, for when it becomes readable.
        """

    def hold(self, collection: CollectionId, at: Time) -> int:
        """Keep `at` readable for a reader in this process until `release`; gives a token.

        `ReadError` when it is below since already; it may be in the future.
        """

    def release(self, token: int) -> None: ...

    def keep(self, hold: HoldId, on: Sequence[CollectionId], at: Time) -> None:
        """Keep `at` readable on all these collections until `drop_kept`, also after a restart; durable on return.

        In place of what the hold kept before. `ReadError` when it is below the since of one; it may be in the future.
        A collection that is being built can be kept from where `advance_since` said that its history starts.
        """

    def move_kept(self, moves: Mapping[HoldId, Time]) -> Mapping[HoldId, ReadError]:
        """Move holds, back too where since allows it, all in one transaction; durable on return.

        A hold that cannot be moved stays, and is told why; the others are moved.
        """

    def drop_kept(self, holds: Sequence[HoldId]) -> None: ...

    def kept(self) -> Mapping[HoldId, Kept]:
        """Every hold. A collection that is dropped is in none."""

    def pinned(self, hold: HoldId) -> Pinned:
        """The superseded versions that `compact` could forget if it were not for this hold.

        Of several holds at the same time none alone keeps anything. Bytes are those of the rows in memory, by a sample.
        """

    def implied_since(self, collection: CollectionId) -> Time:
        """Where since would be without any hold."""

    def compact(self, *, limit: int) -> int:
        """Forget at most `limit` superseded rows that no readable time needs; gives how many it forgot.

        Before that, every since is brought as far as its collection's window and the holds allow. May also fold
        the store's log, which makes ticks wait: call it regularly, best when there is nothing else to do.
        """

    # -- ticks ---------------------------------------------------------------------------------------

    def stage(self) -> TickStage: ...

    def positions(self, query: QueryId) -> Sequence[Position]: ...

    def remap_ends(self) -> Sequence[Moved]:
        """The end offset of every topic partition at the last tick."""

    def remap_at(self, time: Time) -> Sequence[Moved]:
        """The end offsets that were visible at a time."""

    # -- reading -------------------------------------------------------------------------------------

    def snapshot(self, collection: CollectionId, at: Time, *, page: PageSize = 50_000) -> Iterator[pa.Table]:
        """The rows as of `at` (``k0.., c0.., ts``), in pages, each read in a transaction of its own.

        The time is held from the first page to the last.
        """

    def find(self, part: Part) -> pa.Table:
        """The rows of a part: ``k0.., c0.., ts``, where ``k0`` is the first key column behind the group."""

    def changes(self, collection: CollectionId, after: Time, to: Time, keys: KeyRange | None = None) -> pa.Table:
        """Every change with ``after < time <= to``, ordered by time; of some keys, or of all."""

    def change_ranges(self, collection: CollectionId, after: Time, to: Time, *, rows: int) -> Sequence[ChangeRange]:
        """How to read the same in parts of at most `rows`: whole ticks, or some keys of a tick that is larger."""

    def change_times(self, collection: CollectionId, after: Time, to: Time) -> Sequence[Time]:
        """The times at which the collection changed, with ``after < time <= to``, in order."""

    def changed_at(self, collection: CollectionId) -> Time:
        """The time of the last tick that changed the collection: nothing came after it."""

    def count(self, collection: CollectionId) -> int:
        """About how many rows the collection has now."""

    # -- outbox --------------------------------------------------------------------------------------

    def owed(self) -> Sequence[Owed]: ...

    def owed_rows(self, query: QueryId, time: Time) -> pa.Table:
        """``present, k0.., c0.., ts`` in the order they were staged."""

    def settle(self, upto: Time, published: Sequence[Moved] = ()) -> None:
        """Forget what is owed up to a time; `published` are the sink topics' end offsets then."""

    def published_at(self, time: Time) -> Sequence[Moved]:
        """The end offsets of the sink topics at the last `settle` up to a time that is not after `time`."""

    # -- small facts ---------------------------------------------------------------------------------

    def put(self, key: str, value: str | None) -> None:
        """Keep a small fact durably (a topic's id, a query's status); None removes it."""

    def get(self, key: str) -> str | None: ...

    def facts(self, prefix: str) -> Mapping[str, str]:
        """The facts whose keys start with a text."""


class SqlReader(Protocol):
    """Reads evaluated where the rows are."""

    def evaluate(self, sql: str, relations: Mapping[str, Relation], parameters: Sequence[object] = ()) -> pa.Table:
        """Run a SELECT of the reading dialect in which each named relation is a collection as of a time.

        A relation has the columns ``k0.., c0.., ts``. An error of the statement is a `ReadError`.
        """

    def evaluate_tuples(
        self, sql: str, relations: Mapping[str, Relation], parameters: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        """The same as plain values, for a few rows: a third of the time. Other than numbers, texts and booleans come
        as the store's own kinds of values."""

    def evaluate_over(self, sql: str, tables: Mapping[str, pa.Table], parameters: Sequence[object] = ()) -> pa.Table:
        """The same over Arrow tables that the caller has."""
