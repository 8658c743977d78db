"""Push queries: every change from now on, or from the start, at the client's own pace.

A reader keeps its place in the store or in the topic, not rows in memory: a slow one is slow and loses nothing. Readers
at the same place share what is read, computed and written for them.
"""

import re
import time as clock
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from threading import Event, Lock
from uuid import uuid4

import pyarrow as pa

from holdfast.errors import HoldfastError
from holdfast.names import CollectionId
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.spark.engine import Engine, Round
from holdfast.runtime.store.port import ChangeRange, Time
from holdfast.serving.projection import Projection, on_spark
from holdfast.serving.pull import ReadStore, as_declared
from holdfast.serving.results import PushBatch, ResultColumn
from holdfast.serving.shared import Shared
from holdfast.serving.streams import StreamPlace, StreamReader, Stretch
from holdfast.serving.times import Times
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.bound import BoundSelect

FIRST_OFFSETS, MOST_OFFSETS = 500, 20_000
"""How many records of a stream are read for a batch: few at first, until it is known how large they are."""
BATCH_BYTES = 8 << 20
BATCH_ROWS = 20_000
KEPT_BATCHES = 8
CATCH_UP_MS = 1_000
"""A reader of a table that does not change still moves on so often: what it holds keeps others from being forgotten."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rows of a batch, and what was made of them, for all who read it."""

    rows: pa.Table
    encoded: dict[Hashable, bytes] = field(default_factory=dict)


class RowReader:
    """Evaluates the queries of all pushes of a process; equal ones at the same place once."""

    def __init__(self, store: ReadStore, engine: Engine) -> None:
        self.store, self.engine = store, engine
        self._kept: Shared[Chosen] = Shared(KEPT_BATCHES)

    def shared(self, key: Hashable, make: Callable[[], pa.Table]) -> Chosen:
        return self._kept.get(key, lambda: Chosen(make()))

    def rows(self, projection: Projection, rows: pa.Table) -> pa.Table:
        """The query over rows that are true."""
        if projection.dialect is Dialect.DUCKDB:
            chosen = self.store.evaluate_over(projection.select("t", Dialect.DUCKDB), {"t": rows})
        else:
            chosen = on_spark(self.engine, projection, rows)
        chosen = as_declared(chosen, projection)
        return chosen.append_column("tombstone", pa.repeat(pa.scalar(False), chosen.num_rows))

    def changes(self, projection: Projection, changes: pa.Table) -> pa.Table:
        """The query over changes: rows that became true, and tombstones."""
        sql = changes_sql(projection, projection.dialect)
        if projection.dialect is Dialect.DUCKDB:
            found = self.store.evaluate_over(sql, {"client_changes": changes})
        else:
            # Spark knows no unsigned numbers.
            signed = changes.set_column(0, "time", changes.column("time").cast(pa.int64()))
            found = self.engine.select(sql, Round({"client_changes": signed}, {}))
        return as_declared(found.drop_columns(["n"]), projection)


class _Push(ABC):
    """What pushes on streams and on tables have in common: the id, LIMIT, waiting and closing."""

    def __init__(self, bound: BoundSelect, reader: RowReader, wakeup: Wakeup) -> None:
        self._projection = Projection(bound)
        self._relation = bound.relation
        self._reader = reader
        self._wakeup = wakeup
        self._left: int | None = bound.limit
        self._closed = Event()
        self._time: Time | None = None
        name = re.sub(r"\W", "_", bound.relation.name, flags=re.ASCII)
        self._id = f"PUSH_{name}_{uuid4().hex[:12]}".upper()
        shape = self._projection.select("t", self._projection.dialect)
        self._key = (bound.relation.name, bound.relation.topic, str(bound.relation.schema), shape)

    @property
    def id(self) -> str:
        return self._id

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return self._projection.columns

    @property
    def time(self) -> Time | None:
        return self._time

    def ready(self) -> bool:
        try:
            return self._closed.is_set() or self._left == 0 or self._pending()
        except HoldfastError:
            return True

    def next(self, timeout: float) -> PushBatch | None:
        deadline = clock.monotonic() + timeout
        while not self._closed.is_set() and self._left != 0:
            seen = self._wakeup.count
            batch = self._read()
            if batch is not None:
                if batch.rows.num_rows:
                    return self._limited(batch)
                continue
            left = deadline - clock.monotonic()
            if left <= 0:
                return None
            self._wakeup.wait(seen, min(left, 1.0))
        self.close()
        raise StopIteration

    def close(self) -> None:
        self._closed.set()
        self._wakeup.ring()

    @abstractmethod
    def _pending(self) -> bool:
        """Whether there is something to read, as far as memory knows."""

    @abstractmethod
    def _read(self) -> PushBatch | None:
        """What has come since the last time, None when nothing has; sets `_time`."""

    def _batch(self, chosen: Chosen) -> PushBatch:
        return PushBatch(chosen.rows, self._time, chosen.encoded)

    def _limited(self, batch: PushBatch) -> PushBatch:
        if self._left is None:
            return batch
        if batch.rows.num_rows > self._left:
            batch = PushBatch(batch.rows.slice(0, self._left), None)
        self._left -= batch.rows.num_rows
        return batch


class StreamPush(_Push):
    """Follows a stream through its topic."""

    def __init__(
        self, bound: BoundSelect, streams: StreamReader, reader: RowReader, wakeup: Wakeup, place: StreamPlace
    ) -> None:
        super().__init__(bound, reader, wakeup)
        self._streams, self._place = streams, place
        self._most = FIRST_OFFSETS

    def _pending(self) -> bool:
        return self._streams.behind(self._relation, self._place)

    def _read(self) -> PushBatch | None:
        time, ends = self._streams.visible(self._relation)
        starts = {partition: self._place.get(partition, 0) for partition in ends}
        ranges = {p: (starts[p], min(end, starts[p] + self._most)) for p, end in ends.items() if end > starts[p]}
        if not ranges:
            self._time = time
            return None
        wanted: Stretch = tuple(sorted(ranges.items()))
        chosen = self._reader.shared((*self._key, wanted), lambda: self._rows(wanted))
        self._place = {**self._place, **{partition: end for partition, (_, end) in ranges.items()}}
        self._time = time if all(self._place[partition] >= end for partition, end in ends.items()) else None
        return self._batch(chosen)

    def _rows(self, ranges: Stretch) -> pa.Table:
        rows = self._streams.read(self._relation, ranges)
        fits = BATCH_BYTES * max(rows.num_rows, 1) // max(rows.nbytes, 1)
        self._most = max(1, min(4 * self._most, fits, MOST_OFFSETS))
        return self._reader.rows(self._projection, rows)


class TablePush(_Push):
    """Follows a table through its changes; with `snapshot`, after the rows that it has."""

    def __init__(self, bound: BoundSelect, reader: RowReader, times: Times, wakeup: Wakeup, *, snapshot: bool) -> None:
        super().__init__(bound, reader, wakeup)
        self._store, self._times = reader.store, times
        self._collection = CollectionId(bound.relation.name)
        self._snapshot = snapshot
        self._pages: Iterator[pa.Table] | None = None
        self._ranges: deque[ChangeRange] = deque()
        self._at = Time(0)
        self._hold: int | None = None
        self._holding = Lock()
        if not times.building(bound.relation):
            self._begin()

    def next(self, timeout: float) -> PushBatch | None:
        try:
            return super().next(timeout)
        except StopIteration:
            self._pages = None
            raise

    def close(self) -> None:
        super().close()
        self._keep(None)

    def _begin(self) -> None:
        """Take a place: at the latest time, or, while the table is being built, at its first one."""
        self._at = self._times.latest_of(self._relation).time
        self._keep(self._store.hold(self._collection, self._at))
        if self._snapshot:
            self._pages = self._store.snapshot(self._collection, self._at, page=BATCH_ROWS)

    def _pending(self) -> bool:
        if self._hold is None:
            return not self._times.building(self._relation)
        return self._pages is not None or bool(self._ranges) or self._store.changed_at(self._collection) > self._at

    def _read(self) -> PushBatch | None:
        if self._hold is None:
            if self._times.building(self._relation):
                return None
            self._begin()
        if self._pages is not None:
            page = next(self._pages, None)
            if page is not None:
                return PushBatch(self._reader.rows(self._projection, page), None)
            self._pages = None
        if not self._ranges and not self._look():
            return None
        part = self._ranges[0]
        chosen = self._reader.shared((*self._key, part), lambda: self._changes(part))
        self._ranges.popleft()
        if not self._ranges:
            self._advance(part.to)
        self._time = None if self._ranges else part.to
        return self._batch(chosen)

    def _look(self) -> bool:
        """Find what came since; where nothing did, only the time has moved on."""
        latest = self._times.latest_of(self._relation).time
        # In this order: a tick at or before `latest` is known to have changed the table, if it has.
        to = Time(min(latest, self._store.changed_at(self._collection)))
        if to > self._at:
            self._ranges.extend(self._store.change_ranges(self._collection, self._at, to, rows=BATCH_ROWS))
        if not self._ranges:
            self._time = max(latest, self._at)
            if latest >= self._at + CATCH_UP_MS or to > self._at:
                self._advance(latest)
        return bool(self._ranges)

    def _changes(self, part: ChangeRange) -> pa.Table:
        changes = self._store.changes(self._collection, part.after, part.to, part.keys)
        return self._reader.changes(self._projection, changes)

    def _advance(self, to: Time) -> None:
        self._keep(self._store.hold(self._collection, to))
        self._at = to

    def _keep(self, hold: int | None) -> None:
        """Take a hold in place of the one before; a query that was closed meanwhile keeps none."""
        with self._holding:
            ended = [self._hold, hold] if self._closed.is_set() else [self._hold]
            self._hold = None if self._closed.is_set() else hold
        for token in ended:
            if token is not None:
                self._store.release(token)


def changes_sql(projection: Projection, dialect: Dialect) -> str:
    """Rows that are true after a change, and tombstones of rows that were shown before it and are no more."""
    before, after = projection.scope("b", "b_ts"), projection.scope("a", "a_ts")
    shown = f"(a_present AND coalesce({projection.condition(after, dialect)}, false))"
    was_shown = f"(b_present AND coalesce({projection.condition(before, dialect)}, false))"
    numbered = "SELECT *, row_number() OVER (ORDER BY time) AS n FROM client_changes"
    rows = (
        f"SELECT {', '.join(projection.items(after, dialect))}, false AS tombstone, n FROM ({numbered}) WHERE {shown}"
    )
    gone = (
        f"SELECT {', '.join(projection.key_items(before, dialect))}, true AS tombstone, n FROM ({numbered}) "
        f"WHERE {was_shown} AND NOT {shown}"
    )
    return f"SELECT * FROM ({rows} UNION ALL {gone}) ORDER BY n"
