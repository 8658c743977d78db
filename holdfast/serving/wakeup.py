"""Wakes those who wait for the next tick."""

from threading import Condition


class Wakeup:
    """A counter that others wait for to grow."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._count = 0

    def ring(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    @property
    def count(self) -> int:
        return self._count

    def wait(self, seen: int, timeout: float) -> int:
        """Return as soon as the count is above `seen`, or the time is up; gives the count."""
        with self._changed:
            self._changed.wait_for(lambda: self._count > seen, timeout)
            return self._count
