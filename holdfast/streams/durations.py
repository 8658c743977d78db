"""Durations: checked, and as SQL writes them."""

from datetime import timedelta
from typing import Any

from holdfast.errors import TopologyError

MILLISECOND = timedelta(milliseconds=1)
UNITS = (
    ("DAY", timedelta(days=1)),
    ("HOUR", timedelta(hours=1)),
    ("MINUTE", timedelta(minutes=1)),
    ("SECOND", timedelta(seconds=1)),
    ("MILLISECOND", MILLISECOND),
)


def positive(duration: Any, name: str) -> timedelta:
    """A duration of at least a millisecond; `name` is that of the argument."""
    checked = not_negative(duration, name)
    if not checked:
        raise TopologyError(f"{name} must be positive, not zero", hint="It is at least one millisecond.")
    return checked


def not_negative(duration: Any, name: str) -> timedelta:
    """A duration in whole milliseconds."""
    if duration is None:
        raise TopologyError(f"{name} is missing", hint=f"Write {name}=timedelta(minutes=5), for instance.")
    if not isinstance(duration, timedelta):
        raise TopologyError(
            f"{name} must be a timedelta, not {type(duration).__name__}",
            hint=f"Write {name}=timedelta(minutes=5), for instance.",
        )
    if duration < timedelta(0):
        raise TopologyError(f"{name} must be positive, not {duration / MILLISECOND:g} ms")
    if duration % MILLISECOND:
        raise TopologyError(f"{name} must be whole milliseconds, not {duration / MILLISECOND:g} ms")
    return duration


def millis(duration: timedelta) -> int:
    return duration // MILLISECOND


def span(duration: timedelta) -> str:
    """A duration in its greatest whole unit: `90 SECONDS`."""
    unit, length = next((u for u in UNITS if not duration % u[1]), UNITS[-1])
    count = duration // length if duration else 0
    return f"{count} {unit if count == 1 else f'{unit}S'}" if duration else "0 SECONDS"
