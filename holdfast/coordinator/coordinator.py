"""The one writer: rounds of requests, backfill, a tick and compaction, and the thread that runs them."""

import logging
from collections.abc import Callable
from threading import Event, Thread

from holdfast.coordinator.activity import Activity
from holdfast.coordinator.back_pressure import BackPressure
from holdfast.coordinator.backfill.loop import BackfillLoop
from holdfast.coordinator.clock import Clock
from holdfast.coordinator.commands import Commands
from holdfast.coordinator.compaction import Compaction
from holdfast.coordinator.intervals import Intervals
from holdfast.coordinator.reconcile import Reconciler
from holdfast.coordinator.refusals import Refusals
from holdfast.coordinator.requests import Requests
from holdfast.coordinator.tick_loop import TickLoop
from holdfast.errors import HoldfastError, StoreEnded
from holdfast.wall_clock import WallClock

log = logging.getLogger(__name__)

LONGEST_RETRY_SECONDS = 10.0
"""The pause after a failed round doubles up to this while the problem stays the same."""


class Coordinator:
    """Runs rounds: `step` one, the thread of `start` all of them. `problem` says why the last round failed."""

    def __init__(
        self,
        requests: Requests,
        commands: Commands,
        reconciler: Reconciler,
        refusals: Refusals,
        pressure: BackPressure,
        backfill: BackfillLoop,
        ticks: TickLoop,
        compaction: Compaction,
        clock: Clock,
        wall_clock: WallClock,
        intervals: Intervals,
        activity: Activity,
        ended: Callable[[HoldfastError], None],
    ) -> None:
        """`ended` is called when the store has failed for good: no further round can succeed."""
        self._requests, self._commands, self._reconciler, self._refusals = requests, commands, reconciler, refusals
        self._pressure, self._backfill, self._ticks, self._compaction = pressure, backfill, ticks, compaction
        self._clock, self._wall_clock, self._intervals = clock, wall_clock, intervals
        self._activity, self._on_ended = activity, ended
        self._stopping = Event()
        self._thread = Thread(target=self._loop, name="coordinator", daemon=True)
        """The only thread that changes the catalog, what runs, and the store's contents.

        Other threads change its times, holds and publishing marks: readers let uppers follow the clock.
        """
        self.problem: str | None = None
        self._pause = 0.0

    def start(self) -> None:
        self._requests.serve()
        self._thread.start()

    def stop(self) -> None:
        """End after the round that is running."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def step(self, timeout: float = 0.0) -> bool:
        """One round; waits up to `timeout` seconds for records. False when there was nothing to read."""
        self._requests.answer()
        with self._activity.of("changes of the catalog"):
            self._commands.settle()
            self._reconciler.pause()
            self._refusals.settle()
            self._pressure.check()
        with self._activity.of("a backfill"):
            built = self._backfill.run()
            if built:
                self._pressure.measure()
        with self._activity.of("a tick"):
            ticked = self._ticks.tick(0.0 if built else timeout)
        with self._activity.of("compaction"):
            self._clock.reserve_ahead()
            self._compaction.run()
        return built or ticked

    def settle(self) -> bool:
        """Wait until backfills start; False when none waits for that. For a coordinator that is stepped."""
        seconds = self._backfill.starts_in()
        if seconds > 0:
            self._wall_clock.sleep(max(seconds, 0.001))
        return seconds > 0

    def _loop(self) -> None:
        try:
            while not self._stopping.is_set():
                self._round()
            self._requests.answer()
        except StoreEnded as error:
            log.critical("ticks ended: problem=%s", error)
            self.problem = str(error)
            self._on_ended(error)

    def _round(self) -> None:
        try:
            self.step(self._intervals.poll)
            self.problem = None
        except StoreEnded:
            raise
        except HoldfastError as error:
            self._back_off(str(error))
        except Exception as error:
            log.exception("round failed")
            self._back_off(f"{type(error).__name__}: {error}")

    def _back_off(self, problem: str) -> None:
        """Wait before the next round. Nothing of a failed tick is stored, and its cause (a full disk) may pass."""
        if problem != self.problem:
            log.error("ticks stopped: problem=%s", problem)
            self._pause = self._intervals.retry
        else:
            self._pause = min(2 * self._pause, max(LONGEST_RETRY_SECONDS, self._intervals.retry))
        self.problem = problem
        deadline = self._wall_clock.monotonic() + self._pause
        while self._wall_clock.monotonic() < deadline and not self._stopping.is_set():
            self._requests.answer()
            self._wall_clock.sleep(0.05)
