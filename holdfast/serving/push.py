"""Push queries: every change from now on, or from the start, at the client's own pace.

A reader keeps its place in the store or in the topic, not rows in memory: a slow one is slow and loses nothing.
"""

import time as clock
from abc import ABC, abstractmethod
from collections.abc import Iterator
from threading import Event, Lock
from uuid import uuid4

import pyarrow as pa

from holdfast.names import CollectionId
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.spark.engine import Engine, Round
from holdfast.runtime.store.port import Time
from holdfast.serving.projection import Projection, on_spark
from holdfast.serving.pull import ReadStore, as_declared
from holdfast.serving.results import PushBatch, ResultColumn
from holdfast.serving.streams import StreamPlace, StreamReader
from holdfast.serving.times import Times
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.bound import BoundSelect

BATCH_OFFSETS = 20_000
"""At most this many records of a stream are read for one batch."""


class _Push(ABC):
    """What pushes on streams and on tables have in common: the id, LIMIT, waiting and closing."""

    def __init__(self, bound: BoundSelect, wakeup: Wakeup) -> None:
        self._projection = Projection(bound)
        self._wakeup = wakeup
        self._left: int | None = bound.limit
        self._closed = Event()
        self._id = f"push_{bound.relation.name}_{uuid4().hex[:12]}"

    @property
    def id(self) -> str:
        return self._id

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return self._projection.columns

    def next(self, timeout: float) -> PushBatch | None:
        deadline = clock.monotonic() + timeout
        while not self._closed.is_set() and self._left != 0:
            seen = self._wakeup.count
            batch = self._read()
            if batch is not None and batch.rows.num_rows:
                return self._limited(batch)
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
    def _read(self) -> PushBatch | None:
        """What has come since the last time, None when nothing has."""

    def _limited(self, batch: PushBatch) -> PushBatch:
        if self._left is None:
            return batch
        rows = batch.rows.slice(0, self._left)
        self._left -= rows.num_rows
        return PushBatch(rows, batch.time)


class StreamPush(_Push):
    """Follows a stream through its topic."""

    def __init__(
        self,
        bound: BoundSelect,
        reader: StreamReader,
        engine: Engine,
        store: ReadStore,
        wakeup: Wakeup,
        place: StreamPlace,
    ) -> None:
        super().__init__(bound, wakeup)
        self._reader, self._engine, self._store, self._place = reader, engine, store, place
        self._dialect = self._projection.dialect

    def _read(self) -> PushBatch | None:
        found = self._reader.read(self._projection.bound.relation, self._place, BATCH_OFFSETS)
        if found is None:
            return None
        rows, self._place, time = found
        rows = rows.sort_by([("part", "ascending"), ("off", "ascending")])
        if self._dialect is Dialect.DUCKDB:
            chosen = self._store.evaluate_over(self._projection.select("t", Dialect.DUCKDB), {"t": rows})
        else:
            chosen = on_spark(self._engine, self._projection, rows)
        chosen = as_declared(chosen, self._projection)
        return PushBatch(chosen.append_column("tombstone", pa.repeat(pa.scalar(False), chosen.num_rows)), time)


class TablePush(_Push):
    """Follows a table through its changes; with `snapshot`, after the rows that it has."""

    def __init__(
        self, bound: BoundSelect, store: ReadStore, engine: Engine, times: Times, wakeup: Wakeup, *, snapshot: bool
    ) -> None:
        super().__init__(bound, wakeup)
        self._store, self._engine, self._times = store, engine, times
        self._collection = CollectionId(bound.relation.name)
        self._dialect = self._projection.dialect
        self._snapshot = snapshot
        self._pages: Iterator[pa.Table] | None = None
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
        self._at = self._times.latest_of(self._projection.bound.relation).time
        self._keep(self._store.hold(self._collection, self._at))
        if self._snapshot:
            self._pages = self._store.snapshot(self._collection, self._at)

    def _read(self) -> PushBatch | None:
        if self._hold is None:
            if self._times.building(self._projection.bound.relation):
                return None
            self._begin()
        if self._pages is not None:
            page = next(self._pages, None)
            if page is not None:
                return PushBatch(self._of_rows(page), self._at)
            self._pages = None
        to = self._times.latest_of(self._projection.bound.relation).time
        if to <= self._at:
            return None
        changes = self._store.changes(self._collection, self._at, to)
        self._advance(to)
        return PushBatch(self._of_changes(changes), to) if changes.num_rows else None

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

    def _of_rows(self, rows: pa.Table) -> pa.Table:
        if self._dialect is Dialect.DUCKDB:
            chosen = self._store.evaluate_over(self._projection.select("t", Dialect.DUCKDB), {"t": rows})
        else:
            chosen = on_spark(self._engine, self._projection, rows)
        chosen = as_declared(chosen, self._projection)
        return chosen.append_column("tombstone", pa.repeat(pa.scalar(False), chosen.num_rows))

    def _of_changes(self, changes: pa.Table) -> pa.Table:
        sql = changes_sql(self._projection, self._dialect)
        if self._dialect is Dialect.DUCKDB:
            found = self._store.evaluate_over(sql, {"client_changes": changes})
        else:
            # Spark knows no unsigned numbers.
            signed = changes.set_column(0, "time", changes.column("time").cast(pa.int64()))
            found = self._engine.select(sql, Round({"client_changes": signed}, {}))
        return as_declared(found.drop_columns(["n"]), self._projection)


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
