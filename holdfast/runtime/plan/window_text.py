"""Windows as ksqlDB wrote them up to 7.2: `` TUMBLING ( SIZE 30 SECONDS , GRACE PERIOD 1 SECONDS ) ``."""

import re

from holdfast.errors import PlanError
from holdfast.runtime.plan.optional import ABSENT, Maybe
from holdfast.runtime.plan.windows import (
    HoppingWindow,
    SessionWindow,
    TimeUnit,
    TumblingWindow,
    WindowExpression,
    WindowText,
    WindowTime,
)

_WINDOW = re.compile(r"\s*(TUMBLING|HOPPING|SESSION)\s*\((.*)\)\s*", re.DOTALL)
_CLAUSE = re.compile(r"\s*(SIZE|ADVANCE\s+BY|RETENTION|GRACE\s+PERIOD)?\s*(\d+)\s+([A-Z]+)\s*")


def parse_window(text: WindowText) -> WindowExpression:
    """Parse a window. Raises `PlanError` for invalid text."""
    window = _WINDOW.fullmatch(text)
    if window is None:
        raise _invalid(text)
    clauses: dict[str, WindowTime] = {}
    for part in window.group(2).split(","):
        found = _CLAUSE.fullmatch(part)
        if found is None:
            raise _invalid(text)
        clauses[" ".join((found.group(1) or "GAP").split())] = _time(text, found.group(2), found.group(3))
    retention: Maybe[WindowTime] = clauses.pop("RETENTION", ABSENT)
    grace: Maybe[WindowTime] = clauses.pop("GRACE PERIOD", ABSENT)
    match window.group(1), clauses:
        case "TUMBLING", {"SIZE": size, **rest} if not rest:
            return TumblingWindow(size=size, retention=retention, grace_period=grace)
        case "HOPPING", {"SIZE": size, "ADVANCE BY": advance, **rest} if not rest:
            return HoppingWindow(size=size, advance_by=advance, retention=retention, grace_period=grace)
        case "SESSION", {"GAP": gap, **rest} if not rest:
            return SessionWindow(gap=gap, retention=retention, grace_period=grace)
        case _:
            raise _invalid(text)


def _time(text: WindowText, value: str, unit: str) -> WindowTime:
    try:
        return WindowTime(value=int(value), time_unit=TimeUnit(unit if unit.endswith("S") else f"{unit}S"))
    except ValueError:
        raise _invalid(text) from None


def _invalid(text: WindowText) -> PlanError:
    return PlanError("a window of the plan cannot be parsed", detail=f"Its text is {text.strip()!r}.")
