"""Named places where a test can have the process killed, to prove that a restart finds everything in order.

Armed by `HOLDFAST_CRASH=name` or `name:n`: the n-th time the place is reached, the process gets SIGKILL.
"""

import os
import signal
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
    """Kills the process when its place is reached for the n-th time."""

    def __init__(self, armed: str) -> None:
        name, _, count = armed.partition(":")
        if name not in CRASH_POINTS:
            raise ConfigError(
                f'crash point "{name}" does not exist',
                detail=f"It is in the environment variable {VARIABLE}.",
                hint=nearest(name, CRASH_POINTS, plural="crash points"),
            )
        if count and not (count.isascii() and count.isdigit() and int(count) > 0):
            raise ConfigError(f'{VARIABLE} must be "name" or "name:n" with n from 1, not "{armed}"')
        self._name = name
        self._left = int(count or 1)

    def __call__(self, name: CrashPoint) -> None:
        if name == self._name:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def pass_by(_name: CrashPoint) -> None:
    """The crash point of a process that is not armed."""


crash_point = ArmedPoint(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else pass_by
