"""The values that a store takes and returns: layouts, times, positions, and what is read or merged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NewType

import pyarrow as pa

from holdfast.names import CollectionId, QueryId, StateId, TopicName
from holdfast.types import SqlType

Time = NewType("Time", int)
"""Milliseconds since the epoch, unsigned, strictly increasing from tick to tick."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The physical columns of a collection, a state or an outbox: types in order.

    The first `group` key columns of a grouped collection or state are its group; 0 otherwise. The rows of a group of a
    collection are found by ranges of its key column number `ordered`, a BIGINT.
    """

    key: tuple[SqlType, ...]
    value: tuple[SqlType, ...]
    group: int = 0
    ordered: int | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """How a partial row is merged into the state of its key, as DuckDB SQL.

    Each expression is over ``s0..`` (the state, or `initial` for a new key) and ``p0..`` (the partial). `ts` merges as
    the greatest. Expressions must not fail (overflow wraps, `TRY`); one that does fails its query, not the tick.
    `partial` has the types of the partial columns where they differ from the state's.
    """

    initial: tuple[str, ...]
    merged: tuple[str, ...]
    partial: tuple[SqlType, ...] | None = None

    def arriving(self, state: Layout) -> Layout:
        """The columns of a partial row."""
        return state if self.partial is None else Layout(state.key, self.partial)


@dataclass(frozen=True, slots=True)
class StateProjection:
    """A projection and a condition over a merged state, computed by the store.

    Expressions are DuckDB SQL over ``s0..`` and ``k0..``. A row for which `having` is not true is absent.
    """

    columns: tuple[str, ...]
    having: str | None


@dataclass(frozen=True, slots=True)
class StateView:
    """The collection that publishes a projection of a state."""

    collection: CollectionId
    projection: StateProjection


@dataclass(frozen=True, slots=True)
class StateMerge:
    """Partials, one row per key, that a query merges into a state, and the collection derived from it.

    `expired` are the keys (``k0.., ts``) of rows to delete from both; none of them is a key of the partials.
    """

    query: QueryId
    state: StateId
    partials: pa.Table
    merge: Merge
    view: StateView | None = None
    expired: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class Frontier:
    """The readable times of a collection are ``[since, upper)``."""

    since: Time
    upper: Time


@dataclass(frozen=True, slots=True)
class StoredHold:
    """A hold: a time that stays readable on some collections, across restarts."""

    on: tuple[CollectionId, ...]
    at: Time


@dataclass(frozen=True, slots=True)
class RetainedHistory:
    """The superseded versions that only one hold retains, and about how many bytes they take."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class EndOffset:
    """The end offset of a topic partition: one more than the last offset read or written."""

    topic: TopicName
    partition: int
    offset: int


class Placement(Enum):
    """Where a query stands among the ticks. It changes in the commit that makes it true."""

    BEHIND = auto()
    """At offsets of its own: it is backfilling, paused or failed, and can continue from them."""
    LIVE = auto()
    """With the remap: it processes the same ticks as every other live query."""
    REBUILD = auto()
    """Nowhere: it missed rows of another query that are no longer stored, and has to be built from scratch."""


@dataclass(frozen=True, slots=True)
class QueryPosition:
    """How far a query has come. `offsets` and `replayed_to` are meaningful unless it is `LIVE`."""

    placement: Placement = Placement.BEHIND
    offsets: Mapping[tuple[TopicName, int], int] = field(default_factory=dict)
    """The next offset to read, by topic and partition."""
    replayed_to: Time | None = None
    """The time up to which the changes of its input tables were replayed; None before the first."""
    new: bool = False
    """Whether the query was never moved."""


NEW_QUERY = QueryPosition(new=True)


@dataclass(frozen=True, slots=True)
class PendingRows:
    """How many rows of one tick a query still has to publish to its sink topic."""

    time: Time
    query: QueryId
    rows: int


@dataclass(frozen=True, slots=True)
class GroupRead:
    """The rows of a grouped collection as of a time, without the columns of the group unless `with_group`.

    All of them, or those of `groups` (``k0..``); a group with a null matches nothing, as in a comparison. `first` and
    `last` are the bounds, inclusive, of the ordered key column; None for an open one.
    """

    collection: CollectionId
    at: Time
    groups: pa.Table | None = None
    with_group: bool = False
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class KeyRead:
    """The rows of a collection as of a time with one of `keys` (``k0..``); a key with a null matches nothing.

    They are read through the key's index, whatever else a statement filters by.
    """

    collection: CollectionId
    at: Time
    keys: pa.Table


Relation = tuple[CollectionId, Time] | GroupRead | KeyRead
"""What a statement reads under a name: a collection as of a time, whole or in part."""


Period = tuple[int, int]
"""The first ``ts`` and the last one."""


KeyRange = tuple[Any, Any]
"""The first encoded key of a range, and the first beyond it; None when there is no bound."""


PageSize = int | Callable[[], int]
"""The most rows of a page, or a function that is called before each page and can adapt to the size of rows."""


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """A part of a collection's changes, as `Store.changes` takes it."""

    after: Time
    to: Time
    keys: KeyRange | None = None
