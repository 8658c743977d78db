"""The rows of large tables for a query that begins, in slices that fit Spark's memory.

All slices are of one time, each of some rows of one table, as if they were inserted one table after the other: where
several are joined, those that have had their turn are looked up as of that time, and the others have no rows yet. Then
come the changes since, time by time. A query that a crash stops in between begins again: what it has so far is of no
time.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from holdfast.coordinator.deltas import as_delta, by_time
from holdfast.names import CollectionId, ObjectName, QueryId
from holdfast.runtime.program import Program
from holdfast.runtime.store.port import Layout, Store, Time
from holdfast.runtime.tick import TickInputs

PAGE = 50_000


@dataclass(frozen=True, slots=True)
class Part:
    """What comes next; with the `last` one, which is empty, the queries have what the tables have."""

    inputs: TickInputs
    done: float
    last: bool = False


@dataclass
class Hydration:
    """Queries on their way. `close` it when they are through, or when one of them is no longer what it was."""

    store: Store
    queries: Mapping[QueryId, Program]
    tables: Mapping[ObjectName, tuple[CollectionId, Layout]]
    at: Time
    slice_bytes: int
    _held: list[int] = field(default_factory=list)
    _rows: Iterator[tuple[ObjectName, pa.Table]] | None = None
    _given: int = 0
    _total: int = 0
    _changes: deque[tuple[Time, dict[ObjectName, pa.Table]]] = field(default_factory=deque)
    _pending: Part | None = None

    def __post_init__(self) -> None:
        self._held = [self.store.hold(collection, self.at) for collection, _ in self.tables.values()]
        self._total = sum(self.store.count(collection) for collection, _ in self.tables.values())
        self._rows = self._slices()
        self._upto = self.at

    def go_on_with(self, waiting: Mapping[QueryId, Program]) -> bool:
        """Leave out the queries that wait no more, or not as they were; False when none is left."""
        self.queries = {query: program for query, program in self.queries.items() if waiting.get(query) is program}
        return bool(self.queries)

    def next(self) -> Part:
        """What comes next: the same until it is `taken`."""
        if self._pending is None:
            self._pending = self._part_of_rows() or self._part_of_changes()
        return self._pending

    def taken(self) -> None:
        """What was next is committed."""
        self._pending = None

    def _part_of_rows(self) -> Part | None:
        if self._rows is None or (found := next(self._rows, None)) is None:
            self._rows = None
            return None
        name, rows = found
        self._given += rows.num_rows
        names = list(self.tables)
        absent = frozenset(names[names.index(name) + 1 :])
        done = min(self._given / max(self._total, 1), 0.99)
        return Part(TickInputs({}, {name: rows}, before=self.at, absent=absent), done)

    def _part_of_changes(self) -> Part:
        if not self._changes:
            self._read_changes()
        if not self._changes:
            return Part(TickInputs({}), 1.0, last=True)
        time, changed = self._changes.popleft()
        return Part(TickInputs({}, changed, before=Time(time - 1)), 1.0)

    def close(self) -> None:
        self._rows = None
        for token in self._held:
            self.store.release(token)
        self._held = []

    def _slices(self) -> Iterator[tuple[ObjectName, pa.Table]]:
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
        """What the tables' ticks have changed since, as far as they have come."""
        found: dict[Time, dict[ObjectName, pa.Table]] = {}
        upto = max(self.store.changed_at(collection) for collection, _ in self.tables.values())
        for name, (collection, _) in self.tables.items():
            to = Time(min(upto, self.store.changed_at(collection)))
            if to > self._upto:
                for time, rows in by_time(self.store.changes(collection, self._upto, to)):
                    found.setdefault(time, {})[name] = rows
        self._upto = max(self._upto, upto)
        self._changes = deque(sorted(found.items()))
