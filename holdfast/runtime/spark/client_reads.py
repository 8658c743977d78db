"""Reads of clients on Spark: they share its process with the ticks, and must not be mistaken for what ends it."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from subprocess import Popen
from threading import Lock
from time import monotonic

from holdfast.errors import JobTimeout, ReadError, SparkRestarted

MAX_EXITS = 2
WINDOW_SECONDS = 600.0
"""After this many exits of Spark's process within this time, each beside a read, reads are refused for a while."""
REFUSED_SECONDS = 60.0

Process = Popen[bytes] | None


class ClientReads:
    """Which reads run, and in which processes of Spark one was running at the end. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        """Protects the fields that follow."""
        self._running = 0
        self._ended: Process = None
        self._exits = deque[float](maxlen=MAX_EXITS)
        self._refused_until = float("-inf")

    @contextmanager
    def one(self, process: Process, has_exited: Callable[[Process], bool]) -> Iterator[None]:
        """Run a read in the block, in this process of Spark; `ReadError` while reads are refused."""
        with self._lock:
            left = self._refused_until - self._clock()
            if left > 0:
                raise ReadError(
                    "reads on Spark are refused for a moment",
                    detail=f"Spark's process ended {MAX_EXITS} times while such reads ran, and with it the ticks "
                    "beside them. The usual cause is a lack of memory.",
                    hint=f"Try again in {left:.0f} s and ask for less, or give Spark more memory "
                    "(-s spark.driver.memory=4g).",
                )
            self._running += 1
        try:
            yield
        except (SparkRestarted, JobTimeout):
            if has_exited(process):
                self._note(process)
            raise
        finally:
            with self._lock:
                self._running -= 1

    def ran_in(self, process: Process) -> bool:
        """Whether a read may be why this process has ended."""
        with self._lock:
            return self._running > 0 or (process is not None and self._ended is process)

    def _note(self, process: Process) -> None:
        with self._lock:
            if process is self._ended:
                return
            self._ended = process
            self._exits.append(self._clock())
            if len(self._exits) == MAX_EXITS and self._exits[-1] - self._exits[0] <= WINDOW_SECONDS:
                self._refused_until = self._clock() + REFUSED_SECONDS
                self._exits.clear()
