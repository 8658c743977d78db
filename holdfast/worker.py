"""A thread that repeats its work, and retries after a failure."""

import logging
from collections.abc import Callable
from threading import Event, Thread

from holdfast.errors import HoldfastError

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
"""The pause after a failure doubles up to this."""


class Worker:
    """Calls `work` whenever it is woken, and at least every `interval` seconds, in a thread of its own.

    An error does not end the thread: it is logged, shown in `problem` until `work` succeeds again, and followed by a
    pause that grows with every failure. `work` ends the thread by returning False.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], bool | None],
        *,
        interval: Callable[[], float] | float,
        longest_pause: float = LONGEST_PAUSE_SECONDS,
    ) -> None:
        self._name, self._work, self._longest_pause = name, work, longest_pause
        self._interval = interval if callable(interval) else lambda: interval
        self._wake, self._stopping = Event(), Event()
        self._failures = 0
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self.problem: str | None = None

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Call `work` soon. This does not shorten the pause after a failure."""
        self._wake.set()

    def stop(self, timeout: float | None = None) -> None:
        """End after the current call and one last requested call. Waits up to `timeout` seconds for the thread."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            self._wake.wait(self._interval())
            stopping = self._stopping.is_set()
            self._wake.clear()
            try:
                if self._work() is False:
                    return
                self.problem, self._failures = None, 0
            except Exception as error:
                self._report(error)
                if self._stopping.wait(self._pause()):
                    return
                self._wake.set()
            if stopping:
                return

    def _report(self, error: Exception) -> None:
        if isinstance(error, HoldfastError):
            problem = str(error)
            log.warning("thread failed: name=%s error=%s", self._name, problem)
        else:
            problem = f"{type(error).__name__}: {error}"
            log.exception("thread failed unexpectedly: name=%s", self._name)
        self.problem = problem

    def _pause(self) -> float:
        self._failures = min(self._failures + 1, 10)
        return min(FIRST_PAUSE_SECONDS * 2.0 ** (self._failures - 1), self._longest_pause)
