"""Windows of aggregations and joins."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NoReturn, Self

from holdfast.client.stores.store_type import StoreKind
from holdfast.errors import NotSupported, TopologyError
from holdfast.streams.durations import ZERO, millis, not_negative, positive, span

_STORES = {
    "size": (StoreKind.WINDOW, "its window size"),
    "gap": (StoreKind.SESSION, "the session inactivity gap"),
}


@dataclass(frozen=True, slots=True)
class KeyWindow:
    """The window in a key: a time window of a size, or a session, which has none."""

    size: timedelta | None = None
    changelog: bool = False
    """Whether the keys are those of a store's changelog."""

    @property
    def type(self) -> str:
        return "SESSION" if self.size is None else "TUMBLING"


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Windows of a fixed size: adjacent, or with an advance that makes them overlap."""

    size: timedelta
    advance: timedelta | None = None
    grace_period: timedelta | None = None

    @classmethod
    def of(cls, size: timedelta) -> Self:
        """Adjacent windows of this size."""
        return cls(positive(size, "size"))

    def advance_by(self, advance: timedelta) -> Self:
        """Windows that start this often: hopping windows."""
        checked = positive(advance, "advance")
        if checked > self.size:
            raise TopologyError(
                f"advance must not be longer than the size of the windows, {span(self.size)}",
                detail="Some records would be in no window.",
            )
        return replace(self, advance=checked if checked != self.size else None)

    def grace(self, grace: timedelta) -> Self:
        """Accept records that are this late. Without it, until a day after the window's start."""
        return replace(self, grace_period=not_negative(grace, "grace"))

    @property
    def key_window(self) -> KeyWindow:
        return KeyWindow(self.size)

    def clause(self, retention: timedelta | None) -> str:
        kind = "TUMBLING" if self.advance is None else "HOPPING"
        advance = "" if self.advance is None else f", ADVANCE BY {span(self.advance)}"
        return f"WINDOW {kind} (SIZE {span(self.size)}{advance}{_options(retention, self.grace_period)})"

    def check_retention(self, store: str, retention: timedelta) -> None:
        check_window_retention(store, self.size, self.grace_period or ZERO, retention)


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Windows that grow while records follow each other within a gap."""

    gap: timedelta
    grace_period: timedelta | None = None

    @classmethod
    def with_gap(cls, gap: timedelta) -> Self:
        """Sessions that end after this much time without a record."""
        return cls(positive(gap, "gap"))

    def grace(self, grace: timedelta) -> Self:
        """Accept records that are this late."""
        return replace(self, grace_period=not_negative(grace, "grace"))

    @property
    def key_window(self) -> KeyWindow:
        return KeyWindow()

    def clause(self, retention: timedelta | None) -> str:
        return f"WINDOW SESSION ({span(self.gap)}{_options(retention, self.grace_period)})"

    def check_retention(self, store: str, retention: timedelta) -> None:
        _check_retention(store, "gap", self.gap, self.grace_period or ZERO, retention)


class SlidingWindows:
    """Sliding windows of Kafka Streams, which are refused."""

    @classmethod
    def of_time_difference(cls, difference: timedelta) -> NoReturn:
        raise NotSupported(
            "sliding windows are not supported",
            detail="Their bounds are those of the records in them.",
            hint=f"Use windows that overlap: TimeWindows.of({difference!r}).advance_by(…).",
        )


@dataclass(frozen=True, slots=True)
class JoinWindows:
    """How far apart the times of two joined records may be."""

    before_left: timedelta
    after_left: timedelta
    grace_period: timedelta | None = None

    @classmethod
    def of(cls, difference: timedelta) -> Self:
        """At most this far apart, in both directions."""
        checked = not_negative(difference, "difference")
        return cls(checked, checked)

    def before(self, difference: timedelta) -> Self:
        """The right record may be this much earlier than the left one."""
        return replace(self, before_left=not_negative(difference, "before"))

    def after(self, difference: timedelta) -> Self:
        """The right record may be this much later than the left one."""
        return replace(self, after_left=not_negative(difference, "after"))

    def grace(self, grace: timedelta) -> Self:
        """Emit records without a match only once no match can arrive, with records that are at most this late."""
        return replace(self, grace_period=not_negative(grace, "grace"))

    @property
    def clause(self) -> str:
        before, after = span(self.before_left), span(self.after_left)
        within = before if before == after else f"({before}, {after})"
        grace = "" if self.grace_period is None else f" GRACE PERIOD {span(self.grace_period)}"
        return f" WITHIN {within}{grace}"


@dataclass(frozen=True, slots=True)
class Suppressed:
    """What `suppress` emits of the results of windows."""

    @classmethod
    def until_window_closes(cls) -> Self:
        """Only the final result of each window."""
        return cls()

    @classmethod
    def until_time_limit(cls, _limit: timedelta) -> NoReturn:
        raise NotSupported(
            "results cannot be suppressed for a duration",
            detail="A tick already emits each result once, with its last value.",
            hint="Use Suppressed.until_window_closes() for the final results of windows.",
        )


def check_window_retention(store: str, size: timedelta, grace: timedelta, retention: timedelta) -> None:
    """Refuse a retention that drops time windows while they accept records."""
    _check_retention(store, "size", size, grace, retention)


def _check_retention(store: str, name: str, length: timedelta, grace: timedelta, retention: timedelta) -> None:
    """`name` is that of the length in Kafka Streams: `size`, or `gap` of sessions."""
    least = length + grace
    if retention >= least:
        return
    kind, text = _STORES[name]
    raise TopologyError(
        f"The retention period of the {kind} {store} must be no smaller than {text} plus the grace period. "
        f"Got {name}=[{millis(length)}], grace=[{millis(grace)}], retention=[{millis(retention)}]",
        hint=f"Write with_retention(timedelta(…)) of at least {millis(least)} ms.",
    )


def _options(retention: timedelta | None, grace: timedelta | None) -> str:
    retained = "" if retention is None else f", RETENTION {span(retention)}"
    return retained + ("" if grace is None else f", GRACE PERIOD {span(grace)}")
