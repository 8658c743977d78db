"""What the coordinator is doing, for those who wait for it."""

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.wall_clock import WallClock

SHOWN_SECONDS = 5.0
"""What takes less is not worth a message."""


class Activity:
    """What the coordinator's thread does now, and for how long. It writes, any thread reads; neither waits."""

    def __init__(self, clock: WallClock, *, limit: float) -> None:
        """After `limit` seconds, whatever it does is a problem."""
        self._clock, self._limit = clock, limit
        self._current: tuple[str, float] | None = None

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        """The block is what it does."""
        before, self._current = self._current, (what, self._clock.monotonic())
        try:
            yield
        finally:
            self._current = before

    def busy(self) -> str | None:
        """What keeps it busy, if that takes long enough to be shown."""
        return self._longer_than(SHOWN_SECONDS)

    def stuck(self) -> str | None:
        """What keeps it busy, if that takes longer than requests wait."""
        return self._longer_than(self._limit)

    def _longer_than(self, seconds: float) -> str | None:
        current = self._current
        if current is None:
            return None
        what, began = current
        passed = self._clock.monotonic() - began
        return f"busy for {passed:.0f} s with {what}" if passed >= seconds else None
