"""What a subscription gives, and where it goes on after a lost connection; no I/O: two transports share it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from holdfast.client.answer import Part, Progress, Row
from holdfast.client.errors import BadAnswer, ServerError, Unreachable

RETRY_SECONDS = 60.0
"""How long a server that is away is waited for."""
FIRST_WAIT, LONGEST_WAIT = 0.1, 2.0
SHUTTING_DOWN = 503
QUERY = re.compile(r"(SELECT|WITH)\b", re.IGNORECASE)

When = int | datetime


@dataclass(frozen=True, slots=True)
class Change:
    """A row that came (`diff` is 1) or went (-1) at a time."""

    time: int
    diff: int
    row: Row


@dataclass(slots=True)
class Place:
    """How far a subscription has come.

    What the server sent is given away once all of its time is there, so a lost connection is not to be seen from
    outside: what was half there is forgotten, and asked for again.
    """

    target: str
    snapshot: bool = True
    as_of: When | None = None
    up_to: When | None = None
    resume_from: int | None = None
    """The time of a progress: all changes before it are known."""
    _pending: list[Change] = field(default_factory=list)
    _names: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The statement that goes on from here. Of progress at T, all before T is known, so it begins at T - 1."""
        target = self.target.strip().rstrip(";")
        if QUERY.match(target):
            target = f"({target})"
        known = self.resume_from is not None
        parts = [f"SUBSCRIBE TO {target} WITH (SNAPSHOT = {str(self.snapshot and not known).lower()})"]
        as_of = self.resume_from - 1 if self.resume_from is not None else self.as_of
        parts += [f"AS OF {written(as_of)}"] if as_of is not None else []
        parts += [f"UP TO {written(self.up_to)}"] if self.up_to is not None else []
        return " ".join(parts) + ";"

    @property
    def ended(self) -> bool:
        """Whether UP TO was reached."""
        return self.up_to is not None and self.resume_from is not None and self.resume_from >= millis(self.up_to)

    def take(self, part: Part) -> Iterator[Change | Progress]:
        match part:
            case Row(values=(time, diff, *values)):
                if len(self._names) != len(values):
                    self._names = part.names[2:]
                self._pending.append(Change(time, diff, Row(tuple(values), self._names)))
            case Progress(time):
                pending, self._pending = self._pending, []
                yield from pending
                self.resume_from = time
                yield part

    def lost(self) -> None:
        """The connection is gone, and with it what was half there."""
        self._pending = []


def written(when: When) -> str:
    return str(millis(when))


def millis(when: When) -> int:
    if isinstance(when, int):
        return when
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


def passes(error: Exception) -> bool:
    """Whether it may be better in a moment."""
    if isinstance(error, ServerError):
        return error.code // 100 == SHUTTING_DOWN
    return isinstance(error, Unreachable | BadAnswer)


class Patience:
    """How long to wait before the next try; gives up by raising what went wrong."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._left, self._next = seconds, seconds, FIRST_WAIT

    def again(self) -> None:
        """Something came: all is well."""
        self._left, self._next = self._seconds, FIRST_WAIT

    def wait(self, error: Exception | None) -> float:
        if error is not None and (not passes(error) or self._left <= 0):
            raise error
        wait, self._next = self._next, min(2 * self._next, LONGEST_WAIT)
        self._left -= wait
        return wait
