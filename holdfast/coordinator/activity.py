"""The current activity of the coordinator, for requests that wait for it and for the health check."""

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.wall_clock import WallClock

SHOWN_SECONDS = 5.0
"""Shorter activities are not shown."""


class Activity:
    """The current activity of the coordinator's thread and its duration. Any thread may read it without waiting."""

    def __init__(self, clock: WallClock, *, limit: float) -> None:
        """An activity longer than `limit` seconds counts as stuck."""
        self._clock, self._limit = clock, limit
        self._current: tuple[str, float] | None = None

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        """Make `what` the current activity while the block runs."""
        before, self._current = self._current, (what, self._clock.monotonic())
        try:
            yield
        finally:
            self._current = before

    def busy(self) -> str | None:
        """The current activity, if it has lasted long enough to be shown."""
        return self._longer_than(SHOWN_SECONDS)

    def stuck(self) -> str | None:
        """The current activity, if it has lasted longer than the limit."""
        return self._longer_than(self._limit)

    def _longer_than(self, seconds: float) -> str | None:
        current = self._current
        if current is None:
            return None
        what, began = current
        passed = self._clock.monotonic() - began
        return f"busy for {passed:.0f} s with {what}" if passed >= seconds else None
