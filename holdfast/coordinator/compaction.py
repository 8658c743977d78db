"""Compaction beside the ticks, in bounded slices; holds that lag too far are advanced before each."""

from holdfast import metrics
from holdfast.coordinator.holds import Holds
from holdfast.coordinator.intervals import Intervals
from holdfast.crash import crash_point
from holdfast.runtime.store.port import Store
from holdfast.wall_clock import WallClock


class Compaction:
    """Drops history that nobody can read. On the coordinator's thread."""

    def __init__(self, store: Store, holds: Holds, clock: WallClock, intervals: Intervals) -> None:
        self._store, self._holds, self._clock, self._intervals = store, holds, clock, intervals
        self._next_at = float("-inf")

    def run(self) -> None:
        """One slice, if it is time for one."""
        if self._clock.monotonic() < self._next_at:
            return
        crash_point("before_compaction_slice")
        self._holds.settle()
        self._holds.advance_overdue()
        with metrics.COMPACTION_SECONDS.time():
            metrics.COMPACTED.inc(self._store.compact(limit=self._intervals.compaction_rows))
        crash_point("after_compaction_slice")
        self._next_at = self._clock.monotonic() + self._intervals.compaction
