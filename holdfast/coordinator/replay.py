"""A new query over tables whose result is to have the history of its inputs.

It takes the rows of its inputs as of where their history starts, and then their changes, time by time: each slice is
committed at the time at which its inputs changed, below the present. What it keeps is not readable before it has
caught up, so that nobody sees a time again. Its inputs must be held at the start until then.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from holdfast.coordinator.deltas import as_delta, by_time
from holdfast.names import CollectionId, ObjectName, QueryId
from holdfast.runtime.program import Program
from holdfast.runtime.progress import replayed, replayed_upto
from holdfast.runtime.store.port import Layout, Moved, Store, Time
from holdfast.runtime.tick import TickInputs

ROWS = 50_000
"""Changes that are read at once; a tick that has more is read whole."""

Deltas = Mapping[ObjectName, pa.Table]


@dataclass(frozen=True, slots=True)
class Step:
    """A slice: what the inputs were or became `at` a time."""

    at: Time
    inputs: TickInputs
    moved: tuple[Moved, ...]
    done: float


@dataclass(slots=True)
class _Read:
    """The changes of the inputs that were read and not given yet, up to a time."""

    upto: Time
    steps: deque[tuple[Time, dict[ObjectName, pa.Table]]] = field(default_factory=deque)


class Replay:
    """Cuts the slices of queries. On the coordinator's thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ahead: dict[QueryId, _Read] = {}

    def next(self, query: QueryId, tables: Mapping[ObjectName, Program], start: Time) -> Step | None:
        """The slice after what the query has; None when it has all that its inputs have."""
        inputs = {name: (keeper.collection, keeper.layout) for name, keeper in tables.items() if keeper.collection}
        done = replayed_upto(self._store.positions(query))
        if done is None:
            self._ahead.pop(query, None)
            return self._first(inputs, start)
        ahead = self._ahead.setdefault(query, _Read(done))
        while ahead.steps and ahead.steps[0][0] <= done:
            ahead.steps.popleft()
        if not ahead.steps:
            self._read(ahead, [(name, collection) for name, (collection, _) in inputs.items()])
        if not ahead.steps:
            del self._ahead[query]
            return None
        at, changed = ahead.steps[0]
        return Step(
            at=at,
            inputs=TickInputs({}, changed, before=Time(at - 1)),
            moved=(replayed(at),),
            done=_part(start, at, self._end(inputs)),
        )

    def _first(self, inputs: Mapping[ObjectName, tuple[CollectionId, Layout]], start: Time) -> Step:
        rows: dict[ObjectName, pa.Table] = {}
        for name, (collection, layout) in inputs.items():
            if pages := list(self._store.snapshot(collection, start)):
                rows[name] = as_delta(pages, layout)
        return Step(start, TickInputs({}, rows, before=start), (replayed(start),), 0.0)

    def _read(self, ahead: _Read, inputs: Sequence[tuple[ObjectName, CollectionId]]) -> None:
        """The changes that come next, of all inputs up to one time."""
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
        ahead.steps = deque(sorted(found.items()))

    def _end(self, inputs: Mapping[ObjectName, tuple[CollectionId, Layout]]) -> Time:
        return max((self._store.changed_at(id_) for id_, _ in inputs.values()), default=Time(0))


def _part(start: Time, at: Time, end: Time) -> float:
    return (at - start) / (end - start) if end > start else 1.0
