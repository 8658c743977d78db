"""The WINDOW clause."""

from dataclasses import replace

from holdfast.errors import BindError
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.windows import (
    DAY_MS,
    HoppingWindow,
    OutputRefinement,
    SessionWindow,
    TimeUnit,
    WindowExpression,
    WindowTime,
    grace_of,
    length_of,
)
from holdfast.sql.syntax import statements as sql

NO_GRACE = WindowTime(value=0, time_unit=TimeUnit.MILLISECONDS)


def window_of(select: sql.Select) -> WindowExpression | None:
    """The window of a query. With EMIT FINAL, the default grace period is zero."""
    final = select.emit is sql.Emit.FINAL
    if select.window is None:
        if final:
            raise BindError(
                "EMIT FINAL needs a WINDOW",
                detail="It emits a row when its window closes.",
                position=select.position,
            )
        return None
    window = select.window.window
    if not select.group_by:
        raise BindError(
            "WINDOW needs a GROUP BY",
            hint="Add GROUP BY, or leave out WINDOW.",
            position=select.window.position,
        )
    _check_spans(window, select.window)
    if final:
        grace = window.grace_period or NO_GRACE
        window = replace(window, grace_period=grace, emit_strategy=OutputRefinement.FINAL)
    return window if value_of(window.retention) is not None else replace(window, retention=default_retention(window))


def default_retention(window: WindowExpression) -> WindowTime:
    """The RETENTION of a window that has none: its size (of a session, the gap), its grace period and a day."""
    millis = length_of(window) + grace_of(window) + DAY_MS
    units = (
        (TimeUnit.DAYS, DAY_MS),
        (TimeUnit.HOURS, 3_600_000),
        (TimeUnit.MINUTES, 60_000),
        (TimeUnit.SECONDS, 1_000),
    )
    unit, length = next((each for each in units if millis % each[1] == 0), (TimeUnit.MILLISECONDS, 1))
    return WindowTime(value=millis // length, time_unit=unit)


def _check_spans(window: WindowExpression, written: sql.Window) -> None:
    length = window.gap if isinstance(window, SessionWindow) else window.size
    what = "gap" if isinstance(window, SessionWindow) else "SIZE"
    if length.millis <= 0:
        raise BindError(
            f"the {what} of a window must be greater than zero",
            hint="Write at least 1 MILLISECOND.",
            position=written.position,
        )
    grace, retention = value_of(window.grace_period) or NO_GRACE, value_of(window.retention)
    if retention is not None and retention.millis < length.millis + grace.millis:
        raise BindError(
            "the RETENTION of a window must be at least the sum of its SIZE and its GRACE PERIOD",
            detail="A window must be retained as long as it accepts rows.",
            position=written.position,
        )
    if isinstance(window, HoppingWindow) and not 0 < window.advance_by.millis <= window.size.millis:
        raise BindError(
            "a hopping window must advance by more than 0 and by at most its SIZE",
            detail="Otherwise windows would never end, or some rows would be in no window.",
            hint="If they are equal, write a TUMBLING window.",
            position=written.position,
        )
