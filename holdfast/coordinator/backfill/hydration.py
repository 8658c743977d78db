"""Hydration: the rows of large tables for a new query, in slices that fit Spark's memory.

All slices are as of one time, each with some rows of one table, as if the rows were inserted one table after the other.
Where tables are joined, those already inserted are looked up as of that time, and the others have no rows yet. After
the rows come the changes since then, time by time. A query that a crash interrupts starts over: what it has so far
belongs to no time.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from holdfast.coordinator.backfill.deltas import as_delta, by_time
from holdfast.names import CollectionId, ObjectName, QueryId
from holdfast.runtime.program import Program
from holdfast.runtime.store.port import Layout, Store, Time
from holdfast.runtime.tick_inputs import TickInputs

PAGE = 50_000


@dataclass(frozen=True, slots=True)
class HydrationSlice:
    """The next rows; with the `last` slice, which is empty, the queries have all rows of the tables."""

    inputs: TickInputs
    done: float
    last: bool = False


@dataclass
class Hydration:
    """The hydration of some queries. Pins the tables until `close`."""

    store: Store
    queries: Mapping[QueryId, Program]
    tables: Mapping[ObjectName, tuple[CollectionId, Layout]]
    at: Time
    slice_bytes: int
    _pins: list[int] = field(default_factory=list)
    _rows: Iterator[tuple[ObjectName, pa.Table]] | None = None
    _taken: int = 0
    _total: int = 0
    _changes: deque[tuple[Time, dict[ObjectName, pa.Table]]] = field(default_factory=deque)
    _next: HydrationSlice | None = None

    def __post_init__(self) -> None:
        self._pins = [self.store.pin(collection, self.at) for collection, _ in self.tables.values()]
        self._total = sum(self.store.count(collection) for collection, _ in self.tables.values())
        self._rows = self._cut_rows()
        self._upto = self.at

    def continue_with(self, waiting: Mapping[QueryId, Program]) -> bool:
        """Leave out queries that no longer wait, or have another program now; False when none is left."""
        self.queries = {query: program for query, program in self.queries.items() if waiting.get(query) is program}
        return bool(self.queries)

    def next(self) -> HydrationSlice:
        """The next slice: the same one until it is `committed`."""
        if self._next is None:
            self._next = self._next_rows() or self._next_changes()
        return self._next

    def committed(self) -> None:
        """The slice of `next` is committed."""
        self._next = None

    def close(self) -> None:
        self._rows = None
        for pin in self._pins:
            self.store.unpin(pin)
        self._pins = []

    def _next_rows(self) -> HydrationSlice | None:
        if self._rows is None or (found := next(self._rows, None)) is None:
            self._rows = None
            return None
        name, rows = found
        self._taken += rows.num_rows
        names = list(self.tables)
        absent = frozenset(names[names.index(name) + 1 :])
        done = min(self._taken / max(self._total, 1), 0.99)
        return HydrationSlice(TickInputs({}, {name: rows}, lookup_as_of=self.at, absent=absent), done)

    def _next_changes(self) -> HydrationSlice:
        if not self._changes:
            self._read_changes()
        if not self._changes:
            return HydrationSlice(TickInputs({}), 1.0, last=True)
        time, changed = self._changes.popleft()
        return HydrationSlice(TickInputs({}, changed, lookup_as_of=Time(time - 1)), 1.0)

    def _cut_rows(self) -> Iterator[tuple[ObjectName, pa.Table]]:
        for name, (collection, layout) in self.tables.items():
            pages: list[pa.Table] = []
            for page in self.store.snapshot(collection, self.at, page=PAGE):
                pages.append(page)
                if sum(each.nbytes for each in pages) >= self.slice_bytes:
                    yield name, as_delta(pages, layout)
                    pages = []
            if pages:
                yield name, as_delta(pages, layout)

    def _read_changes(self) -> None:
        """Read what ticks have changed in the tables since, as far as they are committed."""
        found: dict[Time, dict[ObjectName, pa.Table]] = {}
        upto = max(self.store.changed_at(collection) for collection, _ in self.tables.values())
        for name, (collection, _) in self.tables.items():
            to = Time(min(upto, self.store.changed_at(collection)))
            if to > self._upto:
                for time, rows in by_time(self.store.changes(collection, self._upto, to)):
                    found.setdefault(time, {})[name] = rows
        self._upto = max(self._upto, upto)
        self._changes = deque(sorted(found.items()))
