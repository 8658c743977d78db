"""The status of a query as users see it. Its `Placement` relative to the ticks is in the store."""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    BUILDING = "BUILDING"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    WAITING = "WAITING"
    """Too much is pending for its sink topic. It continues by itself from where it stopped."""
    ERROR = "ERROR"
    INCOMPATIBLE = "INCOMPATIBLE"
    """This release cannot build its plan. A release that can will continue from the same position."""


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` is the completed fraction of a building query's backfill; `reason` says why a query failed or waits."""

    status: Status
    done: float = 0.0
    reason: str | None = None
