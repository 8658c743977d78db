"""Changes of a subscription, and how it resumes after a lost connection. No I/O: shared by both clients."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from holdfast.client.errors import BadResponse, ServerError, Unreachable
from holdfast.client.response import Header, Notice, Part, Progress, Row, log_notice
from holdfast.client.session import OBJECTS

RETRY_SECONDS = 60.0
"""How long to retry an unreachable server."""
FIRST_DELAY, MAX_DELAY = 0.1, 2.0
SHUTTING_DOWN = 503
QUERY = re.compile(r"(SELECT|WITH)\b", re.IGNORECASE)

When = int | datetime


@dataclass(frozen=True, slots=True)
class Change:
    """A row that was added (`diff` is 1) or removed (-1) at a time."""

    time: int
    diff: int
    row: Row


@dataclass(slots=True)
class Resumption:
    """The progress of a subscription.

    Changes are returned once all changes of their time have arrived, so a lost connection is not visible: incomplete
    times are discarded and requested again.
    """

    target: str
    snapshot: bool = True
    as_of: When | None = None
    up_to: When | None = None
    resume_from: int | None = None
    """The time of a progress message: all changes before it were received."""
    objects: str | None = None
    """The ids of the objects that it reads: it resumes only on these."""
    on_notice: Callable[[Notice], None] = log_notice
    notice: str | None = None
    """Why nothing more comes for now."""
    _pending: list[Change] = field(default_factory=list)
    _names: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The statement that resumes here. After progress T, all changes before T are known, so it starts at T - 1."""
        target = self.target.strip().rstrip(";")
        if QUERY.match(target):
            target = f"({target})"
        resumes = self.resume_from is not None
        parts = [f"SUBSCRIBE TO {target} WITH (SNAPSHOT = {str(self.snapshot and not resumes).lower()})"]
        as_of = self.resume_from - 1 if self.resume_from is not None else self.as_of
        parts += [f"AS OF {time_literal(as_of)}"] if as_of is not None else []
        parts += [f"UP TO {time_literal(self.up_to)}"] if self.up_to is not None else []
        return " ".join(parts) + ";"

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the request that resumes here."""
        resumes = self.resume_from is not None and self.objects is not None
        return {OBJECTS: self.objects} if resumes and self.objects is not None else {}

    def connected(self, header: Header) -> None:
        """A response has begun."""
        self.objects = header.objects or self.objects
        if header.notice is not None:
            self._note(Notice(header.notice, current=False))
        else:
            self.notice = None

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
            case Notice():
                self._note(part)

    def _note(self, notice: Notice) -> None:
        """Report a notice; the same one after a lost connection is no news."""
        before, self.notice = self.notice, None if notice.current else notice.message
        if notice.message != before:
            self.on_notice(notice)

    def lost(self) -> None:
        """The connection is lost: discard the incomplete time."""
        self._pending = []


def time_literal(when: When) -> str:
    return str(millis(when))


def millis(when: When) -> int:
    if isinstance(when, int):
        return when
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


def is_transient(error: Exception) -> bool:
    """Whether a retry may succeed."""
    if isinstance(error, ServerError):
        return error.code // 100 == SHUTTING_DOWN
    return isinstance(error, Unreachable | BadResponse)


class Backoff:
    """The delay between retries; raises the error when the time for retries is over."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._left, self._next = seconds, seconds, FIRST_DELAY

    def reset(self) -> None:
        """Start again with the first delay, because data arrived."""
        self._left, self._next = self._seconds, FIRST_DELAY

    def next_delay(self, error: Exception | None) -> float:
        if error is not None and (not is_transient(error) or self._left <= 0):
            raise error
        delay, self._next = self._next, min(2 * self._next, MAX_DELAY)
        self._left -= delay
        return delay
