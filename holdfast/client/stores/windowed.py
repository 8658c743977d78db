"""Keys with a window."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

K = TypeVar("K")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """The bounds of a window, in milliseconds since the epoch.

    The end of a time window is exclusive; the end of a session is the time of its last record.
    """

    start: int
    end: int

    @property
    def start_time(self) -> datetime:
        return EPOCH + timedelta(milliseconds=self.start)

    @property
    def end_time(self) -> datetime:
        return EPOCH + timedelta(milliseconds=self.end)


@dataclass(frozen=True, slots=True)
class Windowed(Generic[K]):
    """A key and its window."""

    key: K
    window: Window
