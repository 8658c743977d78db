"""The one writer: a thread that runs ticks, and between them what others ask of it."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, TypeVar

from holdfast import metrics
from holdfast.coordinator.clock import Clock
from holdfast.coordinator.cluster import Cluster
from holdfast.coordinator.commands import Commands
from holdfast.crash import crash_point
from holdfast.errors import HoldfastError
from holdfast.runtime.store.port import Store

log = logging.getLogger(__name__)

POLL_SECONDS = 0.05
COMPACT_SECONDS = 0.5
COMPACT_ROWS = 50_000
RETRY_SECONDS = 1.0

T = TypeVar("T")


class Coordinator:
    """Runs the cluster. `ask` has a function run between two ticks, on the same thread."""

    def __init__(self, cluster: Cluster, commands: Commands, store: Store, clock: Clock) -> None:
        self._cluster, self._commands, self._store, self._clock = cluster, commands, store, clock
        self._requests: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._stopping = Event()
        self._thread = Thread(target=self._loop, name="coordinator", daemon=True)
        self._compacted_at = 0.0
        self.problem: str | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End after the tick that is running."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def ask(self, function: Callable[[], T], timeout: float | None = None) -> T:
        """Run a function on the coordinator's thread; gives or raises what it does.

        `TimeoutError` when it was not run within a time: it is then still to be run.
        """
        future: Future[T] = Future()
        self._requests.put((function, future))
        return future.result(timeout)

    def _loop(self) -> None:
        while not self._stopping.is_set():
            self._answer()
            try:
                self._work()
                self.problem = None
            except HoldfastError as error:
                self._wait_out(str(error))
            except Exception as error:
                log.exception("a tick failed")
                self._wait_out(f"{type(error).__name__}: {error}")
        self._answer()

    def _work(self) -> None:
        self._commands.settle()
        self._cluster.pause()
        building = self._cluster.build()
        self._cluster.tick(0.0 if building else POLL_SECONDS)
        self._clock.reserve_ahead()
        self._compact()

    def _answer(self) -> None:
        while True:
            try:
                function, future = self._requests.get_nowait()
            except Empty:
                return
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

    def _compact(self) -> None:
        if time.monotonic() - self._compacted_at < COMPACT_SECONDS:
            return
        crash_point("before_compaction_slice")
        if self._commands.holds is not None:
            self._commands.holds.settle()
            self._commands.holds.advance_overdue()
        with metrics.COMPACTION_SECONDS.time():
            metrics.COMPACTED.inc(self._store.compact(limit=COMPACT_ROWS))
        crash_point("after_compaction_slice")
        self._compacted_at = time.monotonic()

    def _wait_out(self, problem: str) -> None:
        """Nothing of a failed tick is kept; it is tried again, since what stops all ticks (a full disk) may pass."""
        if problem != self.problem:
            log.error("ticks have stopped: %s", problem)
        self.problem = problem
        deadline = time.monotonic() + RETRY_SECONDS
        while time.monotonic() < deadline and not self._stopping.is_set():
            self._answer()
            time.sleep(0.05)
