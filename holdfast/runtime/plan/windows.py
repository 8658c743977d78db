"""Durations and windows as plans write them."""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar, NewType, Self

from holdfast.runtime.plan.optional import ABSENT, Maybe, value_of

WindowText = NewType("WindowText", str)
"""A window as ksqlDB wrote it up to 7.2: `` TUMBLING ( SIZE 30 SECONDS ) ``."""

DAY_MS = 86_400_000
MAX_SECONDS = 2**63
MIN_EXPONENT = -9
"""Java's limits: seconds in a long, and nanoseconds."""


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration that preserves the scale it was written with (`10.000000000`)."""

    seconds: Decimal

    def __post_init__(self) -> None:
        exponent = self.seconds.as_tuple().exponent
        fits = isinstance(exponent, int) and exponent >= MIN_EXPONENT and 0 <= self.seconds < MAX_SECONDS
        if not fits:
            raise ValueError("must be a number of seconds, not negative, with at most nine decimal places")

    @classmethod
    def of(cls, span: timedelta) -> Self:
        """A duration with ksqlDB's scale, nine decimal places."""
        nanos = span // timedelta(microseconds=1) * 1000
        return cls(Decimal(nanos).scaleb(MIN_EXPONENT))

    @property
    def millis(self) -> int:
        """Milliseconds, truncated like Java's `Duration.toMillis`."""
        return int(self.seconds.scaleb(3))

    @property
    def timedelta(self) -> timedelta:
        return timedelta(milliseconds=self.millis)


class WindowType(StrEnum):
    """The kind of window in a key."""

    TUMBLING = "TUMBLING"
    HOPPING = "HOPPING"
    SESSION = "SESSION"


class OutputRefinement(StrEnum):
    """Whether a windowed result emits each change or only the last one, when its window closes."""

    CHANGES = "CHANGES"
    FINAL = "FINAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowInfo:
    """How the keys of a topic are windowed; session windows have no `size`."""

    type: WindowType
    size: Maybe[Duration] = ABSENT
    emit_strategy: Maybe[OutputRefinement] = ABSENT


class WindowTopic(StrEnum):
    """What a windowed topic is to the application that writes it, which determines the layout of its keys.

    TOPIC has results: keys end with the start of a time window, or the end and start of a session. CHANGELOG is the log
    of a window store: keys of time windows have a sequence number after the start.
    """

    TOPIC = "TOPIC"
    CHANGELOG = "CHANGELOG"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStoreSettings:
    """How a table over a windowed topic reads and retains its windows, with the rules of Kafka Streams' stores.

    A window is dropped, and leaves the table, when its start (the end of a session) is `retention` or more before the
    greatest one so far in its partition.
    """

    topic: WindowTopic = WindowTopic.TOPIC
    retention: Duration


class TimeUnit(StrEnum):
    """Java's units of time."""

    NANOSECONDS = "NANOSECONDS"
    MICROSECONDS = "MICROSECONDS"
    MILLISECONDS = "MILLISECONDS"
    SECONDS = "SECONDS"
    MINUTES = "MINUTES"
    HOURS = "HOURS"
    DAYS = "DAYS"


NANOS_PER_UNIT = {
    TimeUnit.NANOSECONDS: 1,
    TimeUnit.MICROSECONDS: 1_000,
    TimeUnit.MILLISECONDS: 1_000_000,
    TimeUnit.SECONDS: 1_000_000_000,
    TimeUnit.MINUTES: 60_000_000_000,
    TimeUnit.HOURS: 3_600_000_000_000,
    TimeUnit.DAYS: 86_400_000_000_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTime:
    """A time span in the unit that the statement used."""

    value: int
    time_unit: TimeUnit

    @property
    def millis(self) -> int:
        """Milliseconds, truncated."""
        return self.value * NANOS_PER_UNIT[self.time_unit] // 1_000_000

    @property
    def timedelta(self) -> timedelta:
        return timedelta(milliseconds=self.millis)


@dataclass(frozen=True, slots=True, kw_only=True)
class TumblingWindow:
    """Adjacent windows of a fixed `size`."""

    TAG: ClassVar[str] = "TUMBLING"
    size: WindowTime
    retention: Maybe[WindowTime] = ABSENT
    grace_period: Maybe[WindowTime] = ABSENT
    emit_strategy: Maybe[OutputRefinement] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class HoppingWindow:
    """Windows of a fixed `size` that start every `advance_by`."""

    TAG: ClassVar[str] = "HOPPING"
    size: WindowTime
    advance_by: WindowTime
    retention: Maybe[WindowTime] = ABSENT
    grace_period: Maybe[WindowTime] = ABSENT
    emit_strategy: Maybe[OutputRefinement] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWindow:
    """Windows that grow while records follow each other within `gap`."""

    TAG: ClassVar[str] = "SESSION"
    gap: WindowTime
    retention: Maybe[WindowTime] = ABSENT
    grace_period: Maybe[WindowTime] = ABSENT
    emit_strategy: Maybe[OutputRefinement] = ABSENT


WindowExpression = TumblingWindow | HoppingWindow | SessionWindow


def length_of(window: WindowExpression) -> int:
    """The size of a window, or the gap that ends it, in milliseconds."""
    return window.gap.millis if isinstance(window, SessionWindow) else window.size.millis


def grace_of(window: WindowExpression) -> int:
    """How long after its end a window accepts late rows, in milliseconds."""
    grace, retention = value_of(window.grace_period), value_of(window.retention)
    if grace is not None:
        return grace.millis
    retained = DAY_MS if retention is None else min(DAY_MS, retention.millis)
    return max(retained - length_of(window), 0)


def shape(window: WindowExpression | WindowInfo) -> WindowInfo:
    """The type and size of a window, which determine the form of its keys."""
    if isinstance(window, WindowInfo):
        return WindowInfo(type=window.type, size=window.size)
    size = ABSENT if isinstance(window, SessionWindow) else Duration.of(window.size.timedelta)
    return WindowInfo(type=WindowType(window.TAG), size=size)
