"""The machine's clocks, and a clock that a test moves."""

import time
from contextlib import suppress
from pathlib import Path


class WallClock:
    """The clocks of the machine."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch. May step back."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds since some moment. Never steps back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def seconds_since_boot() -> float:
    """A clock that never steps back, and also counts the time in which the machine slept, where it has one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class SteppedClock(WallClock):
    """The clocks of the machine, with an offset in milliseconds that is read from a file: tests step it."""

    def __init__(self, offset: Path) -> None:
        self._offset = offset

    def now_ms(self) -> int:
        with suppress(OSError, ValueError):  # The file is missing, or being written.
            return super().now_ms() + int(self._offset.read_text())
        return super().now_ms()


class MovableClock(WallClock):
    """The clocks of the machine, moved ahead by `advance`."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def now_ms(self) -> int:
        return super().now_ms() + int(self._ahead * 1_000)

    def monotonic(self) -> float:
        return super().monotonic() + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += seconds


class ManualClock(WallClock):
    """A clock that moves only by `advance` and `sleep`."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._micros = 0
        """Whole, so that many small steps add up exactly."""

    def now_ms(self) -> int:
        return self._now_ms + self._micros // 1_000

    def monotonic(self) -> float:
        return self._micros / 1_000_000

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self._micros += round(seconds * 1_000_000)
