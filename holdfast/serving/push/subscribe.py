"""SUBSCRIBE: a snapshot and changes as rows with times, from any time that is still readable.

After a progress row at T, a client that resumes AS OF T - 1 without a snapshot gets every change once: it has all
changes before T and receives those after T - 1.
"""

import pyarrow as pa

from holdfast.catalog.objects import Table
from holdfast.runtime.store.port import ChangeRange, Time
from holdfast.serving.projection import Projection
from holdfast.serving.push.cursor import Cursor, CursorSource, CursorState, Start
from holdfast.serving.push.query import CursorQuery
from holdfast.serving.push.query_source import QueryChanges
from holdfast.serving.push.read_objects import ReadObjects
from holdfast.serving.push.row_reader import RowReader, SharedRows
from holdfast.serving.push.table_source import TableChanges
from holdfast.serving.push.update_rows import TableUpdates, UpdateFormat
from holdfast.serving.results import PushBatch, ResultColumn
from holdfast.serving.time.read_times import Times
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.read.subscribe import BoundSubscribe
from holdfast.wall_clock import WallClock

PROGRESS_SECONDS = 1.0
"""The interval of progress rows while nothing changes."""


def update_format(bound: BoundSubscribe) -> UpdateFormat:
    columns = tuple(ResultColumn(column.name, column.type) for column in bound.select.columns)
    return UpdateFormat(columns, bound.key, bound.progress)


class SubscribeQuery(CursorQuery):
    """Base class of subscriptions: sends progress rows."""

    def __init__(
        self,
        bound: BoundSubscribe,
        objects: ReadObjects,
        source: CursorSource,
        reader: RowReader,
        times: Times,
        wakeup: Wakeup,
        clock: WallClock,
    ) -> None:
        self._format = update_format(bound)
        start = Start(bound.snapshot, bound.as_of, bound.up_to)
        cursor = Cursor(source, reader.store, times, start)
        super().__init__(objects, cursor, self._format.columns, wakeup, clock)
        self._progress = Time(0)
        """The time of the last progress row."""
        self._progress_at = clock.monotonic()

    def seconds_to_wait(self) -> float:
        seconds = super().seconds_to_wait()
        return min(seconds, max(0.0, self._progress_due())) if self._format.with_progress else seconds

    def _ended(self) -> bool:
        return super()._ended() and (not self._format.with_progress or self._progress > self._cursor.at)

    def _snapshot_end(self, at: Time) -> PushBatch:
        return PushBatch(self._progress_row(Time(at + 1)), at, snapshot=at)

    def _batch(self, rows: SharedRows | pa.Table) -> PushBatch:
        batch = super()._batch(rows)
        # The last row of a tick may be its progress row.
        if self._format.with_progress and batch.rows.num_rows and batch.rows.column(1)[-1].as_py():
            self._note_progress(Time(batch.rows.column(0)[-1].as_py()))
        return batch

    def _idle(self) -> PushBatch | None:
        """A progress row if one is due: at the end, and at intervals while nothing changes."""
        if not self._format.with_progress or self._time is None or self._time < self._progress:
            return None
        if self._cursor.state is not CursorState.ENDED and self._progress_due() > 0:
            return None
        return PushBatch(self._progress_row(Time(self._time + 1)), self._time)

    def _progress_due(self) -> float:
        """Seconds until the next progress row is due."""
        return self._progress_at + PROGRESS_SECONDS - self._clock.monotonic()

    def _progress_row(self, time: Time) -> pa.Table:
        self._note_progress(time)
        return self._format.progress(time)

    def _note_progress(self, time: Time) -> None:
        self._progress, self._progress_at = time, self._clock.monotonic()


class TableSubscription(SubscribeQuery):
    """Follows one table; filter and projection are applied to its changes."""

    def __init__(
        self,
        bound: BoundSubscribe,
        objects: ReadObjects,
        reader: RowReader,
        times: Times,
        wakeup: Wakeup,
        clock: WallClock,
    ) -> None:
        assert isinstance(bound.select, BoundSelect)
        table = bound.select.relation
        assert isinstance(table, Table)
        self._reader, self._source = reader, TableChanges(table, reader.store, reader.sizes)
        self._updates = TableUpdates(Projection(bound.select), update_format(bound))
        self._key = (table.name, table.id, str(table.schema), self._updates.key)
        super().__init__(bound, objects, self._source, reader, times, wakeup, clock)

    def _snapshot_rows(self, rows: pa.Table) -> pa.Table:
        return self._format.rows(self._reader.rows(self._updates.projection, rows), self._cursor.at)

    def _change_rows(self, part: ChangeRange) -> SharedRows:
        return self._reader.shared((*self._key, part), lambda: self._updates_of(part))

    def _updates_of(self, part: ChangeRange) -> pa.Table:
        # If a tick is read in parts, only the last part completes its time.
        complete = part.keys is None or part.keys[1] is None
        return self._updates.of_changes(self._reader, self._source.changes(part), complete=complete)


class QuerySubscription(SubscribeQuery):
    """Follows a query with joins or aggregates."""

    def __init__(
        self,
        bound: BoundSubscribe,
        objects: ReadObjects,
        reader: RowReader,
        times: Times,
        wakeup: Wakeup,
        clock: WallClock,
    ) -> None:
        assert isinstance(bound.select, BoundRead)
        self._source = QueryChanges(bound.select, update_format(bound), reader)
        super().__init__(bound, objects, self._source, reader, times, wakeup, clock)

    def _snapshot_rows(self, rows: pa.Table) -> pa.Table:
        return rows

    def _change_rows(self, part: ChangeRange) -> pa.Table:
        return self._source.changes(part)
