"""Time spans: `10 SECONDS` of windows, joins and timeouts, and the word INTERVAL before or after a duration."""

from holdfast.errors import BadTime, Position
from holdfast.runtime.plan.windows import TimeUnit, WindowTime

INTERVAL = "INTERVAL"
UNITS = {unit.value.removesuffix("S"): unit for unit in TimeUnit if unit.value not in ("NANOSECONDS", "MICROSECONDS")}
LONGEST = WindowTime(value=3_650_000, time_unit=TimeUnit.DAYS)
"""Ten thousand years, so that a time plus a span stays well within a BIGINT of milliseconds."""


def span_of(value: int, unit: TimeUnit, position: Position | None) -> WindowTime:
    """A span that can be added to a time without overflow."""
    span = WindowTime(value=value, time_unit=unit)
    if span.millis > LONGEST.millis:
        raise BadTime(
            f"{value} {unit} is too long",
            hint=f"Write at most {LONGEST.value} {LONGEST.time_unit}.",
            position=position,
        )
    return span
