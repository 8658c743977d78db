"""The WINDOW clause, and whether a result is windowed."""

from dataclasses import replace

from holdfast.errors import BindError
from holdfast.runtime.plan.presence import given
from holdfast.runtime.plan.windows import (
    Duration,
    HoppingWindow,
    OutputRefinement,
    SessionWindow,
    TimeUnit,
    WindowExpression,
    WindowInfo,
    WindowTime,
    WindowType,
)
from holdfast.sql import statements as sql
from holdfast.sql.bound_query import BoundQuery

NO_GRACE = WindowTime(value=0, time_unit=TimeUnit.MILLISECONDS)


def window_of(select: sql.Select) -> WindowExpression | None:
    """The window of a query; EMIT FINAL closes it without grace unless one is given."""
    final = select.emit is sql.Emit.FINAL
    if select.window is None:
        if final:
            raise BindError(
                "EMIT FINAL needs a WINDOW",
                detail="It gives a row when its window closes.",
                position=select.position,
            )
        return None
    window = select.window.window
    if not select.group_by:
        raise BindError(
            "WINDOW needs a GROUP BY",
            hint="Windows are of groups: add GROUP BY, or leave WINDOW out.",
            position=select.window.position,
        )
    _check_spans(window, select.window)
    if final:
        grace = window.grace_period or NO_GRACE
        return replace(window, grace_period=grace, emit_strategy=OutputRefinement.FINAL)
    return window


def _check_spans(window: WindowExpression, written: sql.Window) -> None:
    length = window.gap if isinstance(window, SessionWindow) else window.size
    what = "gap" if isinstance(window, SessionWindow) else "SIZE"
    if length.millis <= 0:
        raise BindError(
            f"the {what} of a window must be more than 0",
            hint="Write 1 MILLISECOND at the least.",
            position=written.position,
        )
    grace, retention = given(window.grace_period) or NO_GRACE, given(window.retention)
    if retention is not None and retention.millis < length.millis + grace.millis:
        raise BindError(
            "the RETENTION of a window must be at least its SIZE and its GRACE PERIOD together",
            detail="A window that takes rows has to be kept.",
            position=written.position,
        )
    if isinstance(window, HoppingWindow) and not 0 < window.advance_by.millis <= window.size.millis:
        raise BindError(
            "a hopping window must advance by more than 0 and by at most its SIZE",
            detail="Else windows would never end, or rows would be in none.",
            hint="ADVANCE BY the SIZE itself is a TUMBLING window.",
            position=written.position,
        )


def result_window(query: BoundQuery) -> WindowInfo | None:
    """How the keys of a query's result are windowed: by its own window, else as those of its source."""
    if query.window is None:
        return None if query.aggregates else query.source.window
    size = None if isinstance(query.window, SessionWindow) else Duration.of(query.window.size.timedelta)
    emit = query.window.emit_strategy or OutputRefinement.CHANGES
    return WindowInfo(type=WindowType(query.window.TAG), size=size, emit_strategy=emit)
