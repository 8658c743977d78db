"""SUBSCRIBE: a snapshot and changes as rows with times, from any time that is still readable.

After a progress row at T, a client that begins again AS OF T - 1 without a snapshot misses nothing and is told nothing
twice: it has all changes before T, and is sent those after T - 1.
"""

import time as clock
from collections.abc import Sequence

import pyarrow as pa

from holdfast.catalog.objects import Table
from holdfast.names import ObjectName
from holdfast.runtime.store.port import ChangeRange, Time
from holdfast.serving.follow import Follower, Page, SnapshotDone, Start
from holdfast.serving.projection import Projection
from holdfast.serving.pushing import Pushing
from holdfast.serving.results import PushBatch, ResultColumn
from holdfast.serving.rows import RowReader
from holdfast.serving.times import Times
from holdfast.serving.updates import Told, Updates
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.bound import BoundSelect, BoundSubscribe

PROGRESS_SECONDS = 1.0
"""Where nothing changes, a progress row comes so often."""


def told_by(bound: BoundSubscribe) -> Told:
    columns = tuple(ResultColumn(column.name, column.type) for column in bound.select.columns)
    return Told(columns, bound.key, bound.progress)


class Subscribing(Pushing):
    """What all subscriptions have in common: when they tell that a time is over."""

    def __init__(self, bound: BoundSubscribe, reads: Sequence[ObjectName], wakeup: Wakeup) -> None:
        self._told = told_by(bound)
        super().__init__(reads, self._told.columns, wakeup)
        self._over = Time(0)
        self._over_at = clock.monotonic()

    def _snapshot_done(self, at: Time) -> PushBatch:
        self._tell(Time(at + 1))
        return PushBatch(self._told.progress(Time(at + 1)), at, snapshot=at)

    def _note(self, rows: pa.Table) -> None:
        """Rows are told of which the last may be one of progress."""
        if self._told.with_progress and rows.num_rows and rows.column(1)[-1].as_py():
            self._tell(Time(rows.column(0)[-1].as_py()))

    def _progress(self, time: Time | None, *, ended: bool) -> PushBatch | None:
        """A progress row where one is due: with the end, and now and then where nothing happens."""
        if not self._told.with_progress or time is None or time < self._over:
            return None
        if not ended and clock.monotonic() - self._over_at < PROGRESS_SECONDS:
            return None
        self._tell(Time(time + 1))
        return PushBatch(self._told.progress(Time(time + 1)), time)

    def _is_told(self, time: Time) -> bool:
        """Whether nothing is left to be said of a time that is over."""
        return not self._told.with_progress or self._over > time

    def _tell(self, over: Time) -> None:
        self._over, self._over_at = over, clock.monotonic()


class TableSubscription(Subscribing):
    """Follows one table; a filter and a projection work on its changes."""

    def __init__(self, bound: BoundSubscribe, reader: RowReader, times: Times, wakeup: Wakeup) -> None:
        assert isinstance(bound.select, BoundSelect)
        table = bound.select.relation
        assert isinstance(table, Table)
        super().__init__(bound, [table.name], wakeup)
        self._reader = reader
        self._updates = Updates(Projection(bound.select), self._told)
        self._key = (table.name, table.topic, str(table.schema), self._updates.key)
        start = Start(bound.snapshot, bound.as_of, bound.up_to)
        self._follower = Follower(reader.store, reader.widths, times, table, start)

    @property
    def held(self) -> Time | None:
        return self._follower.at if self._follower.begun else None

    def close(self) -> None:
        super().close()
        self._follower.close()

    def _pending(self) -> bool:
        return self._follower.pending()

    def _ended(self) -> bool:
        return self._follower.ended and self._is_told(self._follower.at)

    def _read(self) -> PushBatch | None:
        step = self._follower.step()
        self._time = self._follower.time
        match step:
            case None:
                return self._progress(self._time, ended=self._follower.ended)
            case Page(rows):
                shown = self._reader.rows(self._updates.projection, rows)
                return PushBatch(self._told.rows(shown, self._follower.at), None)
            case SnapshotDone(at):
                return self._snapshot_done(at)
            case ChangeRange() as part:
                chosen = self._reader.shared((*self._key, part), lambda: self._changes(part))
                self._follower.took(part)
                self._time = self._follower.time
                self._note(chosen.rows)
                return self._batch(chosen)

    def _changes(self, part: ChangeRange) -> pa.Table:
        # Of a tick that is read in parts, only the last one says that its time is over.
        whole = part.keys is None or part.keys[1] is None
        return self._updates.of_changes(self._reader, self._follower.changes(part), whole=whole)
