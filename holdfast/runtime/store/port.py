"""What the engine requires of a store.

**Contents.** A store has four kinds of things, and changes them only in `TickStage.commit`:

- **collections**: the multi-version contents of tables. A row has key columns, value columns and a ROWTIME (`ts`,
  milliseconds).
- **state**: what a stateful step stores per key; it has no history.
- **outboxes**: rows that a query still has to publish to its sink topic.
- **progress**: the remap, and the position of every query.

The rows of a **grouped** collection or state have a group, the first columns of their key. Several rows, the elements
of the group, share it, and are found without reading others.

**Time.** These words are used in exactly this sense:

    ────┬───────────────┬────▶ time         since   least readable time
      since           upper                 upper   least time that is not final

- A read `as_of` t is repeatable when ``since <= t < upper``: it returns the same rows whenever it is made.
- `since` and `upper` never move back, and ``since <= upper``.
- snapshot(b) = snapshot(a) + changes(a, b), for readable a <= b.
- The **implied since** is a window behind upper. The real since is the least of it, of every hold and of every pin.
  A **hold** is durable and has a name in SQL; a **pin** belongs to an open reader of this process.
- **Compaction** forgets versions that no readable time needs, and changes no readable answer.
- A collection is **building** until its first `set_upper`: it is written, but has no readable time.

**Arrow layouts**, by column name. Names are positional, so that names of SQL never clash:

- rows in: ``k0..`` key columns, ``c0..`` value columns, ``ts`` BIGINT; upserts add ``present`` BOOLEAN.
- a **delta**, the result of an upsert or a merge: ``k0..``, ``b_present, b0.., b_ts`` (before the tick) and
  ``a_present, a0.., a_ts`` (after it). One row per touched key; ``a_ts`` of a delete is the deleting row's.
- changes out: ``time`` UBIGINT, ``k0..``, then before and after as in a delta; ``a_ts`` of a delete is null.
- partials in: ``k0..``, ``p0..``, ``ts``.
- spans of time: any of a state's key and value columns, ``after`` and ``upto`` BIGINT. A row is in a span with the same
  values in those columns when ``after < ts <= upto``; a null `after` is no bound.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Protocol

import pyarrow as pa

from holdfast.errors import ReadError, StoreError
from holdfast.names import CollectionId, HoldId, QueryId, StateId, StoreId
from holdfast.runtime.store.values import (
    NEW_QUERY,
    ChangeRange,
    EndOffset,
    Frontier,
    GroupRead,
    KeyRange,
    KeyRead,
    Layout,
    Merge,
    PageSize,
    PendingRows,
    Period,
    Placement,
    QueryPosition,
    Relation,
    RetainedHistory,
    StateMerge,
    StateProjection,
    StateView,
    StoredHold,
    Time,
)

__all__ = [
    "NEW_QUERY",
    "ChangeRange",
    "EndOffset",
    "Frontier",
    "GroupRead",
    "KeyRange",
    "KeyRead",
    "Layout",
    "Merge",
    "PageSize",
    "PendingRows",
    "Period",
    "Placement",
    "QueryPosition",
    "Relation",
    "RetainedHistory",
    "SqlReader",
    "StateMerge",
    "StateProjection",
    "StateView",
    "Store",
    "StoreFacts",
    "StoreHolds",
    "StoreObjects",
    "StoreOutboxes",
    "StorePins",
    "StoreReads",
    "StoreTicks",
    "StoreTimes",
    "StoredHold",
    "TickStage",
    "Time",
]


class TickStage(Protocol):
    """A tick in progress. Nothing of it is visible or durable before `commit`.

    Work is grouped by query: `discard` drops all that was staged for one, so that a failing query does not affect the
    others. What cannot be staged is a `StoreError`, and is not staged.
    """

    def upsert(self, query: QueryId, collection: CollectionId, rows: pa.Table) -> None:
        """Stage the last row per key (``present`` false deletes). Keys must be unique within `rows`.

        A collection is written once per tick.
        """

    def merge(self, mergings: Sequence[StateMerge]) -> Mapping[QueryId, StoreError]:
        """Stage partials into states, each once per tick, and the upserts of the collections derived from them.

        All queries together, because a statement over a few rows costs hardly more for many queries than for one.
        Returns the errors by query: nothing of those is staged, and all of the others.
        """

    def put(self, query: QueryId, state: StateId, rows: pa.Table, expired: pa.Table | None = None) -> None:
        """Stage the last row per key of a state (``present`` false deletes). Keys must be unique within `rows`.

        Rows within the spans `expired` are deleted as well, except for keys in `rows`. A state is put or merged once
        per tick.
        """

    def enqueue(self, query: QueryId, rows: pa.Table) -> None:
        """Stage rows of a stream for the query's outbox, in order; without ``present``, all are present."""

    def enqueue_changes(self, query: QueryId, collection: CollectionId) -> None:
        """Stage the collection's changes of this tick for the query's outbox."""

    def delta(self, collection: CollectionId) -> pa.Table:
        """Before and after of each key that this tick upserts in the collection."""

    def state_delta(self, state: StateId) -> pa.Table:
        """Before and after of each key that this tick merges or puts in the state; b and a are state columns."""

    def lookup(self, collection: CollectionId, keys: pa.Table, at: Time | None = None) -> pa.Table:
        """The committed rows of some keys (``k0..``), now or as of a time: ``k0.., c0.., ts``."""

    def lookup_state(self, state: StateId, keys: pa.Table) -> pa.Table:
        """The committed state of some keys: ``k0.., c0.., ts``."""

    def lookup_groups(self, state: StateId, groups: pa.Table, within: Period | None = None) -> pa.Table:
        """The committed elements of some groups (``k0..``) of a grouped state: ``k0.., c0.., ts``.

        With `within`, only those whose ``ts`` is in it.
        """

    def lookup_spans(self, state: StateId, spans: pa.Table) -> pa.Table:
        """The committed rows of a state within spans of time: ``k0.., c0.., ts``."""

    def move(
        self,
        query: QueryId,
        ends: Sequence[EndOffset] = (),
        placement: Placement | None = None,
        *,
        replayed_to: Time | None = None,
    ) -> None:
        """Stage a change of a query's position; what is not passed stays as it is."""

    def remap(self, ends: Sequence[EndOffset]) -> None:
        """Stage which offsets become visible at this tick's time."""

    def discard(self, query: QueryId) -> None:
        """Drop everything staged for a query."""

    def commit(self, time: Time, frozen: Set[CollectionId] = frozenset()) -> None:
        """Make everything staged durable and visible at `time`, all or nothing.

        For each collection in it, `time` must be at least its upper and above the last time it was written at. Its
        upper becomes ``time + 1``, unless it is building or `frozen`: what is written to a frozen collection becomes
        readable when `set_upper` raises its upper. After an error nothing has changed, and `commit` may be called
        again.
        """

    def abandon(self) -> None:
        """Drop everything staged."""


class StoreObjects(Protocol):
    """The collections, states and outboxes of a store. Creating one that exists changes nothing, except as noted."""

    def create_collection(self, collection: CollectionId, layout: Layout, *, window_ms: int) -> None:
        """Create an empty, building collection. One that exists gets the layout's further value columns, which are NULL
        in all its rows, and its groups.

        While it is building its frontier is (0, 0) and it has no history; it is first readable at ``upper - 1``, unless
        `advance_since` said before where its history starts.
        """

    def set_window(self, collection: CollectionId, window_ms: int) -> None:
        """Change how far the implied since trails upper. What is forgotten stays forgotten."""

    def drop_collection(self, collection: CollectionId) -> None: ...

    def collections(self) -> Mapping[CollectionId, Layout]: ...

    def create_state(self, state: StateId, layout: Layout) -> None:
        """Create an empty state. A grouped one is put, never merged."""

    def drop_state(self, state: StateId) -> None: ...

    def states(self) -> Mapping[StateId, Layout]: ...

    def create_outbox(self, query: QueryId, layout: Layout) -> None:
        """Create an empty outbox. One that exists gets further value columns, which are NULL in its rows."""

    def drop_outbox(self, query: QueryId) -> None: ...

    def queries(self) -> Set[QueryId]:
        """Every query that has a position or an outbox."""

    def forget_query(self, query: QueryId) -> None:
        """Drop a query's position, and its facts: those whose key starts with ``<query>/``."""


class StoreTimes(Protocol):
    """Time: what was committed, what is readable, and what is forgotten."""

    def last_time(self) -> Time:
        """The greatest time that was committed or reserved. After a restart, a new time must be above it."""

    def committed_time(self) -> Time:
        """The greatest time that was committed."""

    def reserve(self, until: Time) -> None:
        """Make durable that times up to `until` may have been handed to readers."""

    def try_reserve(self, until: Time) -> bool:
        """The same, unless another thread is writing: then nothing changes, and the answer is False at once."""

    def frontier(self, collection: CollectionId) -> Frontier:
        """Since and upper; (0, 0) while the collection is building."""

    def set_upper(self, collections: Sequence[CollectionId], upper: Time) -> None:
        """Declare that no change below `upper` will follow. In memory until the next commit; never moves back."""

    def advance_since(self, collection: CollectionId, to: Time) -> None:
        """Allow history before `to` to be forgotten. Never moves back, nor past upper, a hold or a pin.

        Of a building collection: its history starts at `to`.
        """

    def implied_since(self, collection: CollectionId) -> Time:
        """Where since would be without holds and pins."""

    def compact(self, *, limit: int) -> int:
        """Advance every since as far as windows, holds and pins allow, then forget at most `limit` superseded rows that
        no readable time needs. Returns how many it forgot.

        It may also run a checkpoint, for which ticks wait: call it regularly, best when the store is idle.
        """


class StorePins(Protocol):
    """Times that open readers of this process need."""

    def pin(self, collection: CollectionId, at: Time) -> int:
        """Keep `at` readable until `unpin` of the returned token.

        `ReadError` when it is below since; it may be in the future.
        """

    def unpin(self, token: int) -> None: ...


class StoreHolds(Protocol):
    """SQL holds: named times that stay readable, also after a restart. Every change is durable on return."""

    def put_hold(self, hold: HoldId, on: Sequence[CollectionId], at: Time) -> None:
        """Create or replace a hold: keep `at` readable on all these collections.

        `ReadError` when it is below the since of one; it may be in the future. A building collection can be held from
        where `advance_since` said that its history starts.
        """

    def move_holds(self, moves: Mapping[HoldId, Time]) -> Mapping[HoldId, ReadError]:
        """Move holds in one transaction, also back where since allows it.

        Returns the errors by hold: those stay, and all others are moved.
        """

    def drop_holds(self, ids: Sequence[HoldId]) -> None: ...

    def holds(self) -> Mapping[HoldId, StoredHold]:
        """Every hold. A dropped collection is in none."""

    def retained_by(self, hold: HoldId) -> RetainedHistory:
        """The superseded versions that `compact` could forget without this hold.

        Several holds at the same time retain nothing alone. Bytes are those of the rows in memory, estimated from a
        sample.
        """


class StoreTicks(Protocol):
    """Ticks and what they moved. Ticks come from one thread."""

    def stage(self) -> TickStage: ...

    def position(self, query: QueryId) -> QueryPosition:
        """How far a query has come; `NEW_QUERY` when it was never moved."""

    def remap_ends(self) -> Sequence[EndOffset]:
        """The end offset of every topic partition at the last tick."""

    def remap_at(self, time: Time) -> Sequence[EndOffset]:
        """The end offsets that were visible at a time, from the least since of a live or building collection on."""


class StoreReads(Protocol):
    """Reads of collections, from any thread. A time that is not readable is a `ReadError`."""

    def snapshot(self, collection: CollectionId, at: Time, *, page: PageSize = 50_000) -> Iterator[pa.Table]:
        """The rows as of `at` (``k0.., c0.., ts``), in pages, each read in a transaction of its own.

        The time is pinned from the first page to the last.
        """

    def read_groups(self, part: GroupRead) -> pa.Table:
        """Rows of a grouped collection: ``k0.., c0.., ts``, where ``k0`` is the first key column after the group,
        or of the group if that is read as well."""

    def changes(self, collection: CollectionId, after: Time, to: Time, keys: KeyRange | None = None) -> pa.Table:
        """Every change with ``after < time <= to``, ordered by time; of some keys, or of all."""

    def change_ranges(self, collection: CollectionId, after: Time, to: Time, *, rows: int) -> Sequence[ChangeRange]:
        """Cut the same changes into ranges of at most `rows`: whole ticks, or some keys of a tick that is larger."""

    def change_times(self, collection: CollectionId, after: Time, to: Time) -> Sequence[Time]:
        """The times at which the collection changed, with ``after < time <= to``, in order."""

    def changed_at(self, collection: CollectionId) -> Time:
        """The time of the last tick that changed the collection."""

    def count(self, collection: CollectionId) -> int:
        """The approximate number of current rows."""


class StoreOutboxes(Protocol):
    """Rows that are not published yet, and where the sink topics ended."""

    def pending(self, of: Iterable[QueryId] | None = None) -> Sequence[PendingRows]:
        """What is pending, of all outboxes or those of some queries, by time and query, oldest first."""

    def pending_bytes(self, query: QueryId) -> int:
        """About how many bytes are pending of a query's outbox."""

    def pending_rows(self, query: QueryId, time: Time) -> pa.Table:
        """``present, k0.., c0.., ts`` in the order in which they were staged."""

    def mark_published(self, upto: Mapping[QueryId, Time], ends: Sequence[EndOffset] = ()) -> None:
        """Drop the pending rows of each outbox up to its time; `ends` are where their topics end then.

        An end of 0 forgets the partition. An outbox that was dropped meanwhile is no error.
        """

    def published_ends(self) -> Sequence[EndOffset]:
        """The end offsets of the sink topics at the last `mark_published`."""


class StoreFacts(Protocol):
    """Small durable facts: a topic's id, a query's status."""

    def put(self, key: str, value: str | None) -> None:
        """Store a fact, durable on return; None removes it."""

    def get(self, key: str) -> str | None: ...

    def facts(self, prefix: str) -> Mapping[str, str]:
        """The facts whose keys start with a prefix."""


class Store(
    StoreObjects, StoreTimes, StorePins, StoreHolds, StoreTicks, StoreReads, StoreOutboxes, StoreFacts, Protocol
):
    """One durable store. Reads may come from any thread; ticks come from one."""

    @property
    def id(self) -> StoreId: ...

    def close(self) -> None: ...


class SqlReader(Protocol):
    """Reads in SQL, evaluated by the store."""

    def evaluate(self, sql: str, relations: Mapping[str, Relation], parameters: Sequence[object] = ()) -> pa.Table:
        """Run a SELECT over named relations.

        A relation has the columns ``k0.., c0.., ts``. An error of the statement is a `ReadError`.
        """

    def evaluate_tuples(
        self, sql: str, relations: Mapping[str, Relation], parameters: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        """The same as plain values; for a few rows it takes a third of the time. Values other than numbers, texts and
        booleans have the store's own types."""

    def evaluate_over(self, sql: str, tables: Mapping[str, pa.Table], parameters: Sequence[object] = ()) -> pa.Table:
        """The same over Arrow tables of the caller."""
