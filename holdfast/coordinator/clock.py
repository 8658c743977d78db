"""The time of the database: strictly increasing, even after a crash or when the machine's clock steps back."""

from collections.abc import Callable
from threading import Lock

from holdfast.crash import crash_point
from holdfast.runtime.store.port import Store, Time

BLOCK_MS = 5_000
"""Times are reserved this far ahead, so that a read time needs no write."""


class Clock:
    """Chooses the times of ticks and of reads.

    Law: a read time is below the time of every tick that was not yet visible when it was returned, and a tick's time
    is above every read time returned before it, in this process or an earlier one.

    No read waits for the store's writer. What was reserved is never below the last time, so a read that cannot reserve
    now gets the end of the reserved block: everything that is visible is visible there.
    """

    def __init__(self, store: Store, now: Callable[[], int]) -> None:
        self._store = store
        self._now = now
        self._lock = Lock()
        """Protects all that follows; never held while waiting for the store's writer."""
        self._last = store.last_time()
        self._reserved = self._last
        self._committing: Time | None = None

    def rise_above(self, time: Time) -> None:
        """Never again return a time up to this one."""
        with self._lock:
            passed = time <= self._last
        if not passed:
            self._reserve(time)
            with self._lock:
                self._last = max(self._last, time)

    def begin_commit(self) -> Time:
        """The time of a tick that is about to commit. Until `end_commit`, reads get times below it."""
        while True:
            with self._lock:
                time = Time(max(self._now(), self._last + 1))
                # Also because the commit may fail: then this time is the last one, and nothing else makes it durable.
                if time <= self._reserved:
                    self._committing = time
                    return time
            self._reserve(time)

    def end_commit(self) -> None:
        """The tick of `begin_commit` is visible, or never will be."""
        with self._lock:
            if self._committing is not None:
                self._last = max(self._last, self._committing)
            self._committing = None

    def read_time(self) -> Time:
        """The latest time whose contents are final and that is, or can at once be, reserved."""
        with self._lock:
            time = self._latest()
            if time > self._reserved:
                until = Time(time + BLOCK_MS)
                crash_point("before_time_reservation")
                if self._store.try_reserve(until):
                    self._reserved = until
                crash_point("after_time_reservation")
            self._last = max(self._last, min(time, self._reserved))
            return self._last

    def reserve_ahead(self) -> None:
        """Reserve the next block before the current one runs out."""
        with self._lock:
            latest = self._latest()
            reserved = latest + BLOCK_MS // 2 <= self._reserved
        if not reserved:
            self._reserve(latest)

    def _latest(self) -> Time:
        return Time(self._committing - 1) if self._committing is not None else Time(max(self._now(), self._last))

    def _reserve(self, time: Time) -> None:
        until = Time(time + BLOCK_MS)
        crash_point("before_time_reservation")
        self._store.reserve(until)
        crash_point("after_time_reservation")
        with self._lock:
            self._reserved = max(self._reserved, until)
