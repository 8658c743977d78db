"""Stops what takes too long: one thread for all reads, which costs a read less than a timer of its own."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Condition, Thread


class Deadlines:
    """Each is the same number of seconds after its start, so the oldest comes first."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._changed = Condition()
        self._waiting: dict[int, tuple[float, Callable[[], None]]] = {}
        self._tokens = count()
        self._thread: Thread | None = None
        self._closed = False

    @contextmanager
    def over(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call `stop` when the block takes too long."""
        with self._changed:
            token = next(self._tokens)
            self._waiting[token] = (time.monotonic() + self.seconds, stop)
            if self._thread is None:
                self._thread = Thread(target=self._watch, name="read deadlines", daemon=True)
                self._thread.start()
            elif len(self._waiting) == 1:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._waiting.pop(token, None)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                due = [token for token, (deadline, _) in self._waiting.items() if deadline <= now]
                for token in due:
                    self._waiting.pop(token)[1]()
                first = next(iter(self._waiting.values()), None)
                self._changed.wait(None if first is None else first[0] - now)
