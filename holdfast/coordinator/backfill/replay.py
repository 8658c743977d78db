"""Replay: a new query over tables whose result needs the history of its inputs.

The query takes the rows of its inputs as of where their history starts, and then their changes, time by time. Each
slice commits at the time at which its inputs changed, below the present. The result is not readable before it has
caught up, so no reader sees a time twice. A hold protects the history of the inputs until then.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from holdfast.coordinator.backfill.deltas import as_delta, by_time
from holdfast.names import CollectionId, ObjectName, QueryId
from holdfast.runtime.program import Program
from holdfast.runtime.store.port import Layout, Store, Time
from holdfast.runtime.tick_inputs import TickInputs

ROWS = 50_000
"""Changes that are read at once; a tick with more changes is read whole."""


@dataclass(frozen=True, slots=True)
class ReplaySlice:
    """What the inputs were, or how they changed, `at` a time."""

    at: Time
    inputs: TickInputs
    done: float


@dataclass(slots=True)
class _ReadAhead:
    """The changes of the inputs up to a time that are read and not yet replayed."""

    upto: Time
    changes: deque[tuple[Time, dict[ObjectName, pa.Table]]] = field(default_factory=deque)


class Replay:
    """Cuts the slices of queries. On the coordinator's thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ahead: dict[QueryId, _ReadAhead] = {}

    def next(self, query: QueryId, tables: Mapping[ObjectName, Program], start: Time) -> ReplaySlice | None:
        """The slice after what the query has; None when it has all that its inputs have."""
        inputs = {name: (each.collection, each.layout) for name, each in tables.items() if each.collection}
        done = self._store.position(query).replayed_to
        if done is None:
            self._ahead.pop(query, None)
            return self._first(inputs, start)
        ahead = self._ahead.setdefault(query, _ReadAhead(done))
        while ahead.changes and ahead.changes[0][0] <= done:
            ahead.changes.popleft()
        if not ahead.changes:
            self._read(ahead, [(name, collection) for name, (collection, _) in inputs.items()])
        if not ahead.changes:
            del self._ahead[query]
            return None
        at, changed = ahead.changes[0]
        return ReplaySlice(
            at=at,
            inputs=TickInputs({}, changed, lookup_as_of=Time(at - 1)),
            done=_done(start, at, self._end(inputs)),
        )

    def _first(self, inputs: Mapping[ObjectName, tuple[CollectionId, Layout]], start: Time) -> ReplaySlice:
        rows: dict[ObjectName, pa.Table] = {}
        for name, (collection, layout) in inputs.items():
            if pages := list(self._store.snapshot(collection, start)):
                rows[name] = as_delta(pages, layout)
        return ReplaySlice(start, TickInputs({}, rows, lookup_as_of=start), 0.0)

    def _read(self, ahead: _ReadAhead, inputs: Sequence[tuple[ObjectName, CollectionId]]) -> None:
        """Read the next changes, of all inputs up to one time."""
        changed = [(name, id_) for name, id_ in inputs if self._store.changed_at(id_) > ahead.upto]
        if not changed:
            return
        after = ahead.upto
        ends = []
        for _, id_ in changed:
            last = self._store.changed_at(id_)
            ranges = self._store.change_ranges(id_, after, last, rows=ROWS)
            ends.append(ranges[0].to if len(ranges) > 1 else max(self._store.changed_at(other) for _, other in changed))
        ahead.upto = Time(min(ends))
        found: dict[Time, dict[ObjectName, pa.Table]] = {}
        for name, id_ in changed:
            to = Time(min(ahead.upto, self._store.changed_at(id_)))
            for time, rows in by_time(self._store.changes(id_, after, to)):
                found.setdefault(time, {})[name] = rows
        ahead.changes = deque(sorted(found.items()))

    def _end(self, inputs: Mapping[ObjectName, tuple[CollectionId, Layout]]) -> Time:
        return max((self._store.changed_at(id_) for id_, _ in inputs.values()), default=Time(0))


def _done(start: Time, at: Time, end: Time) -> float:
    return (at - start) / (end - start) if end > start else 1.0
