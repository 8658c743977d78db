"""Wakes those who wait for the next tick."""

from collections.abc import Callable
from threading import Condition


class Wakeup:
    """A counter that others wait for to grow, in a thread of theirs or by being called."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._count = 0
        self._listeners: list[Callable[[], None]] = []

    def ring(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a function called with every ring, on the thread that rings: it must be quick. Gives how to end it."""
        with self._changed:
            self._listeners.append(listener)

        def end() -> None:
            with self._changed:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return end

    @property
    def count(self) -> int:
        return self._count

    def wait(self, seen: int, timeout: float) -> int:
        """Return as soon as the count is above `seen`, or the time is up; gives the count."""
        with self._changed:
            self._changed.wait_for(lambda: self._count > seen, timeout)
            return self._count
