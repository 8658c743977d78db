"""The database's time: strictly increasing, never taken back, also not by a crash or a clock that steps back."""

from collections.abc import Callable
from threading import Lock
from time import time_ns

from holdfast.crash import crash_point
from holdfast.runtime.store.port import Store, Time

BLOCK_MS = 5_000
"""Times are reserved this far ahead, so that handing one out needs no write."""


def wall_clock() -> int:
    return time_ns() // 1_000_000


class Clock:
    """Chooses the times of ticks and of reads.

    Law: a read time is below the time of every tick that was not yet visible when it was handed out, and a tick's time
    is above every time that was handed out before it, in this process or in one before it.
    """

    def __init__(self, store: Store, now: Callable[[], int] = wall_clock) -> None:
        self._store = store
        self._now = now
        self._lock = Lock()
        self._last = store.last_time()
        self._reserved = self._last
        self._committing: Time | None = None

    def rise_above(self, time: Time) -> None:
        """Give no time up to this one any more."""
        with self._lock:
            if time > self._last:
                self._reserve(time)
                self._last = time

    def begin_commit(self) -> Time:
        """The time of a tick that is about to commit. Until `end_commit`, reads get times below it."""
        with self._lock:
            self._committing = Time(max(self._now(), self._last + 1))
            return self._committing

    def end_commit(self) -> None:
        """The tick of `begin_commit` is visible, or never will be."""
        with self._lock:
            if self._committing is not None:
                self._last = max(self._last, self._committing)
            self._committing = None

    def read_time(self) -> Time:
        """The latest time whose contents are final."""
        with self._lock:
            time = self._latest()
            if time > self._reserved:
                self._reserve(time)
            self._last = max(self._last, time)
            return time

    def reserve_ahead(self) -> None:
        """Reserve the next block before the present one runs out."""
        with self._lock:
            if self._latest() + BLOCK_MS // 2 > self._reserved:
                self._reserve(self._latest())

    def _latest(self) -> Time:
        return Time(self._committing - 1) if self._committing is not None else Time(max(self._now(), self._last))

    def _reserve(self, time: Time) -> None:
        until = Time(time + BLOCK_MS)
        crash_point("before_time_reservation")
        self._store.reserve(until)
        self._reserved = until
        crash_point("after_time_reservation")
