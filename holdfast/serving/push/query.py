"""Base classes of push queries: id, LIMIT, waiting, closing and metrics."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from threading import Event
from uuid import uuid4

import pyarrow as pa

from holdfast.errors import HoldfastError
from holdfast.runtime.store.port import ChangeRange, Time
from holdfast.serving.push.cursor import Cursor, CursorState, Page, SnapshotEnd
from holdfast.serving.push.meter import Meter
from holdfast.serving.push.read_objects import ReadObjects
from holdfast.serving.push.row_reader import SharedRows
from holdfast.serving.results import Notice, PushBatch, ResultColumn
from holdfast.serving.wakeup import Wakeup
from holdfast.wall_clock import WallClock

IDLE_SECONDS = 5.0
"""How often a push query is polled when no commit wakes it."""


class PushQuery(ABC):
    """A query that runs until it is closed. For one reader; `ready`, `fail` and `close` are thread-safe."""

    def __init__(
        self,
        objects: ReadObjects,
        columns: Sequence[ResultColumn],
        wakeup: Wakeup,
        clock: WallClock,
        *,
        limit: int | None = None,
    ) -> None:
        self._columns = tuple(columns)
        self._wakeup, self._clock = wakeup, clock
        self._left = limit
        self._closed = Event()
        self._failure: HoldfastError | None = None
        self._time: Time | None = None
        self.objects = objects
        self.meter = Meter(clock.now_ms())
        """Counts what was sent and buffered; updated by the sender."""
        name = re.sub(r"\W", "_", objects.names[0], flags=re.ASCII)
        self._id = f"PUSH_{name}_{uuid4().hex[:12]}".upper()

    @property
    def id(self) -> str:
        return self._id

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return self._columns

    @property
    def time(self) -> Time | None:
        """The time up to which `next` has returned everything; None in the middle of a time."""
        return self._time

    @property
    def pinned_at(self) -> Time | None:
        """The time from which it keeps history readable; None if it pins none."""
        return None

    @property
    def notice(self) -> Notice | None:
        """Why nothing more comes for now, or that it does again; as of the last call of `next`."""
        return None

    def lag_ms(self, now: Time) -> int:
        """How far it is behind what it could read `now`. Thread-safe."""
        del now
        return 0

    def ready(self) -> bool:
        """Whether `next` may return or raise something immediately. Never waits and never reads from disk."""
        try:
            self.objects.check()
            return self._closed.is_set() or self._left == 0 or self._pending()
        except HoldfastError:
            return True

    def seconds_to_wait(self) -> float:
        """Seconds after which `next` may return something, such as progress, even if nothing is committed."""
        return IDLE_SECONDS

    def next(self, timeout: float) -> PushBatch | None:
        """The next rows, or None when there were none within `timeout` seconds.

        Raises `StopIteration` when LIMIT is reached or the query was closed, and the error that ended it otherwise.
        """
        deadline = self._clock.monotonic() + timeout
        while not self._closed.is_set() and self._left != 0 and not self._ended():
            seen = self._wakeup.count
            try:
                batch = self._read()
                self.objects.check()
            except HoldfastError:
                if self._closed.is_set():  # closing released the rows being read
                    break
                self.objects.check()  # the reason may be that an object is gone
                raise
            if batch is not None:
                if batch.rows.num_rows or batch.snapshot is not None:
                    return self._limited(batch)
                continue
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return None
            self._wakeup.wait(seen, min(left, 1.0))
        self.close()
        if self._failure is not None:
            raise self._failure
        raise StopIteration

    def fail(self, error: HoldfastError) -> None:
        """End with an error, which the next call to `next` raises."""
        self._failure = error
        self.close()

    def close(self) -> None:
        self._closed.set()
        self._wakeup.notify()

    @abstractmethod
    def _pending(self) -> bool:
        """Whether there is something to read. Does not read from disk."""

    @abstractmethod
    def _read(self) -> PushBatch | None:
        """The rows since the last call, or None; sets `_time`."""

    def _ended(self) -> bool:
        """Whether no more rows can come."""
        return False

    def _batch(self, rows: SharedRows | pa.Table) -> PushBatch:
        if isinstance(rows, SharedRows):
            return PushBatch(rows.rows, self._time, encoded=rows.encoded, shared=True)
        return PushBatch(rows, self._time)

    def _limited(self, batch: PushBatch) -> PushBatch:
        if self._left is None:
            return batch
        if batch.rows.num_rows > self._left:
            batch = PushBatch(batch.rows.slice(0, self._left), None)
        self._left -= batch.rows.num_rows
        return batch


class CursorQuery(PushQuery):
    """A push query over tables: reads with a cursor and turns its pages and changes into rows."""

    def __init__(
        self,
        objects: ReadObjects,
        cursor: Cursor,
        columns: Sequence[ResultColumn],
        wakeup: Wakeup,
        clock: WallClock,
        *,
        limit: int | None = None,
    ) -> None:
        super().__init__(objects, columns, wakeup, clock, limit=limit)
        self._cursor = cursor

    @property
    def pinned_at(self) -> Time | None:
        return self._cursor.pinned_at

    @property
    def notice(self) -> Notice | None:
        return self._cursor.notice

    def lag_ms(self, now: Time) -> int:
        return self._cursor.lag_ms(now)

    def close(self) -> None:
        super().close()
        self._cursor.close()

    def seconds_to_wait(self) -> float:
        seconds = self._cursor.seconds_to_wait()
        return IDLE_SECONDS if seconds is None else min(IDLE_SECONDS, seconds)

    def _pending(self) -> bool:
        return self._cursor.pending()

    def _ended(self) -> bool:
        return self._cursor.state is CursorState.ENDED

    def _read(self) -> PushBatch | None:
        step = self._cursor.step()
        self._time = self._cursor.time
        match step:
            case None:
                return self._idle()
            case Page(rows):
                return PushBatch(self._snapshot_rows(rows), None)
            case SnapshotEnd(at):
                return self._snapshot_end(at)
            case ChangeRange() as part:
                rows = self._change_rows(part)
                self._cursor.advance_past(part)
                self._time = self._cursor.time
                return self._batch(rows)

    def _idle(self) -> PushBatch | None:
        """The batch to send when there is nothing to read, or None."""
        return None

    @abstractmethod
    def _snapshot_rows(self, rows: pa.Table) -> pa.Table: ...

    @abstractmethod
    def _snapshot_end(self, at: Time) -> PushBatch: ...

    @abstractmethod
    def _change_rows(self, part: ChangeRange) -> SharedRows | pa.Table: ...
