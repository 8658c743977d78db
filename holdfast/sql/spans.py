"""Spans of time as windows, joins and timeouts have them: `10 SECONDS`."""

from holdfast.errors import BadTime, Position
from holdfast.runtime.plan.windows import TimeUnit, WindowTime

UNITS = {unit.value.removesuffix("S"): unit for unit in TimeUnit if unit.value not in ("NANOSECONDS", "MICROSECONDS")}
LONGEST = WindowTime(value=3_650_000, time_unit=TimeUnit.DAYS)
"""Ten thousand years: sums of times and spans then stay far inside a BIGINT of milliseconds."""


def span_of(value: int, unit: TimeUnit, position: Position | None) -> WindowTime:
    """A span that every engine can add to a time."""
    span = WindowTime(value=value, time_unit=unit)
    if span.millis > LONGEST.millis:
        raise BadTime(
            f"{value} {unit} is too long a time",
            hint=f"Write at most {LONGEST.value} {LONGEST.time_unit}.",
            position=position,
        )
    return span
