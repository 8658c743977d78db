"""Durations: checked, and as SQL writes them."""

from datetime import timedelta
from typing import Any

from holdfast.errors import TopologyError
from holdfast.sql.literals.duration import span_text

MILLISECOND = timedelta(milliseconds=1)
ZERO = timedelta(0)


def positive(duration: Any, name: str) -> timedelta:
    """A duration of at least a millisecond; `name` is that of the argument."""
    checked = _whole(duration, name)
    if checked <= ZERO:
        found = f"{checked / MILLISECOND:g} ms" if checked else "zero"
        raise TopologyError(f"{name} must be positive, not {found}", hint="It is at least one millisecond.")
    return checked


def not_negative(duration: Any, name: str) -> timedelta:
    """A duration in whole milliseconds, which may be zero."""
    checked = _whole(duration, name)
    if checked < ZERO:
        raise TopologyError(f"{name} must not be negative: {checked / MILLISECOND:g} ms")
    return checked


def _whole(duration: Any, name: str) -> timedelta:
    if duration is None:
        raise TopologyError(f"{name} is missing", hint=f"Write {name}=timedelta(minutes=5), for instance.")
    if not isinstance(duration, timedelta):
        raise TopologyError(
            f"{name} must be a timedelta, not {type(duration).__name__}",
            hint=f"Write {name}=timedelta(minutes=5), for instance.",
        )
    if duration % MILLISECOND:
        raise TopologyError(f"{name} must be whole milliseconds, not {duration / MILLISECOND:g} ms")
    return duration


def millis(duration: timedelta) -> int:
    return duration // MILLISECOND


def span(duration: timedelta) -> str:
    """A duration in its greatest whole unit: `90 SECONDS`."""
    return span_text(millis(duration)) if duration else "0 SECONDS"
