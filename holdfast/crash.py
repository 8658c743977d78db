"""Named points where a test kills the process, to prove that a restart recovers.

`arm("name")` or `arm("name:n")`: the process receives SIGKILL when it reaches the point for the n-th time. A server
arms the point that the environment variable `HOLDFAST_CRASH` names.
"""

import os
import signal
from collections.abc import Callable
from typing import Literal, get_args

from holdfast.errors import ConfigError, nearest

CrashPoint = Literal[
    "before_store_commit",
    "after_store_commit",
    "before_produce",
    "after_produce",
    "before_transaction_commit",
    "after_transaction_commit",
    "before_command_append",
    "after_command_append",
    "before_topic_creation",
    "after_topic_creation",
    "before_compaction_slice",
    "after_compaction_slice",
    "before_time_reservation",
    "after_time_reservation",
    "before_hold_advance",
    "after_hold_advance",
]
CRASH_POINTS: tuple[CrashPoint, ...] = get_args(CrashPoint)

VARIABLE = "HOLDFAST_CRASH"


class ArmedPoint:
    """Kills the process when its point is reached for the n-th time."""

    def __init__(self, armed: str) -> None:
        name, _, count = armed.partition(":")
        if name not in CRASH_POINTS:
            raise ConfigError(
                f'crash point "{name}" does not exist',
                detail=f"It is set in the environment variable {VARIABLE}.",
                hint=nearest(name, CRASH_POINTS, plural="crash points"),
            )
        if count and not (count.isascii() and count.isdigit() and int(count) > 0):
            raise ConfigError(f'{VARIABLE} must be "name" or "name:n" with n of at least 1, not "{armed}"')
        self._name = name
        self._remaining = int(count or 1)

    def __call__(self, name: CrashPoint) -> None:
        if name == self._name:
            self._remaining -= 1
            if self._remaining == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def _unarmed(_name: CrashPoint) -> None:
    pass


_reached: Callable[[CrashPoint], None] = _unarmed


def arm(point: str | None) -> None:
    """Arm a point for the rest of this process; None disarms."""
    global _reached
    _reached = ArmedPoint(point) if point else _unarmed


def crash_point(name: CrashPoint) -> None:
    """Mark a point in the program; nothing happens unless it is armed."""
    _reached(name)
