"""SUBSCRIBE over one table: its snapshot and its changes as rows with times, from any time that is still readable.

After a progress row at T, a client that begins again AS OF T - 1 without a snapshot misses nothing and is told nothing
twice: it has all changes before T, and is sent those after T - 1.
"""

import time as clock

import pyarrow as pa

from holdfast.catalog.objects import Table
from holdfast.runtime.store.port import ChangeRange, Time
from holdfast.serving.follow import Follower, Page, SnapshotDone, Start
from holdfast.serving.pushing import Pushing
from holdfast.serving.results import PushBatch
from holdfast.serving.rows import RowReader
from holdfast.serving.times import Times
from holdfast.serving.updates import Updates
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.bound import BoundSubscribe

PROGRESS_SECONDS = 1.0
"""Where nothing changes, a progress row comes so often."""


class TableSubscription(Pushing):
    """Follows one table; a filter and a projection work on its changes."""

    def __init__(self, bound: BoundSubscribe, reader: RowReader, times: Times, wakeup: Wakeup) -> None:
        table = bound.select.relation
        assert isinstance(table, Table)
        self._updates = Updates(bound)
        super().__init__([table.name], self._updates.columns, wakeup)
        self._reader, self._bound = reader, bound
        self._key = (table.name, table.topic, str(table.schema), self._updates.key)
        self._told = Time(0)
        self._told_at = clock.monotonic()
        start = Start(bound.snapshot, bound.as_of, bound.up_to)
        self._follower = Follower(reader.store, reader.widths, times, table, start)

    @property
    def held(self) -> Time | None:
        return self._follower.at if self._follower.begun else None

    def next(self, timeout: float) -> PushBatch | None:
        try:
            return super().next(timeout)
        except StopIteration:
            self._follower.forget_pages()
            raise

    def close(self) -> None:
        super().close()
        self._follower.close()

    def _pending(self) -> bool:
        return self._follower.pending()

    def _ended(self) -> bool:
        return self._follower.ended and (not self._bound.progress or self._told > self._follower.at)

    def _read(self) -> PushBatch | None:
        step = self._follower.step()
        self._time = self._follower.time
        match step:
            case None:
                return self._progress(self._time)
            case Page(rows):
                rows = self._updates.of_snapshot(self._reader.rows(self._updates.projection, rows), self._follower.at)
                return PushBatch(rows, None)
            case SnapshotDone(at):
                self._tell(at)
                return PushBatch(self._updates.progress(Time(at + 1)), at, snapshot=at)
            case ChangeRange() as part:
                chosen = self._reader.shared((*self._key, part), lambda: self._changes(part))
                self._follower.took(part)
                self._time = self._follower.time
                if self._bound.progress and chosen.rows.num_rows and chosen.rows.column(1)[-1].as_py():
                    self._tell(Time(chosen.rows.column(0)[-1].as_py() - 1))
                return self._batch(chosen)

    def _changes(self, part: ChangeRange) -> pa.Table:
        # Of a tick that is read in parts, only the last one says that its time is over.
        whole = part.keys is None or part.keys[1] is None
        return self._updates.of_changes(self._reader, self._follower.changes(part), whole=whole)

    def _progress(self, time: Time | None) -> PushBatch | None:
        """A progress row where one is due."""
        if not self._bound.progress or time is None or time < self._told:
            return None
        due = self._follower.ended or clock.monotonic() - self._told_at >= PROGRESS_SECONDS
        if not due:
            return None
        self._tell(time)
        return PushBatch(self._updates.progress(Time(time + 1)), time)

    def _tell(self, time: Time) -> None:
        self._told, self._told_at = Time(time + 1), clock.monotonic()
