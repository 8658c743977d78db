"""Timestamps written as text: `ROWTIME > '2024-05-01T10'` compares with milliseconds."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from holdfast.errors import TypeMismatch
from holdfast.runtime.expressions.tree import Between, Binary, ColumnRef, Expression, IntegerLiteral, StringLiteral
from holdfast.sql.syntax.walk import rewrite

TIME_COLUMNS = frozenset({"ROWTIME", "WINDOWSTART", "WINDOWEND"})

_TEXT = re.compile(
    r"(?P<year>\d{4})(-(?P<month>\d{1,2})(-(?P<day>\d{1,2})"
    r"(T((?P<hour>\d{1,2})(:(?P<minute>\d{1,2})(:(?P<second>\d{1,2})(\.(?P<millis>\d{1,3}))?)?)?)?)?)?)?"
    r"(?P<zone>Z|[+-]\d{2}:?\d{2})?\Z"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def millis(text: str) -> int | None:
    """The milliseconds since the epoch of a timestamp. Trailing parts are optional; UTC unless it has a zone."""
    match = _TEXT.match(text)
    if match is None:
        return None
    part = match.groupdict()
    try:
        moment = datetime(
            int(part["year"]),
            int(part["month"] or 1),
            int(part["day"] or 1),
            int(part["hour"] or 0),
            int(part["minute"] or 0),
            int(part["second"] or 0),
            int((part["millis"] or "0").ljust(3, "0")) * 1000,
            _zone(part["zone"]),
        )
    except ValueError:
        return None
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _zone(text: str | None) -> timezone:
    if text is None or text == "Z":
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-offset if text[0] == "-" else offset)


def replace_time_literals(expression: Expression) -> Expression:
    """Replace string literals that are compared with ROWTIME, WINDOWSTART or WINDOWEND by milliseconds."""
    return rewrite(expression, _change)


def _change(expression: Expression) -> Expression | None:
    match expression:
        case Binary(_, ColumnRef() as column, StringLiteral() as text) if column.name in TIME_COLUMNS:
            return replace(expression, right=_number(text))
        case Binary(_, StringLiteral() as text, ColumnRef() as column) if column.name in TIME_COLUMNS:
            return replace(expression, left=_number(text))
        case Between(ColumnRef() as column) if column.name in TIME_COLUMNS:
            return replace(expression, low=_bound(expression.low), high=_bound(expression.high))
    return None


def _bound(expression: Expression) -> Expression:
    return _number(expression) if isinstance(expression, StringLiteral) else expression


def _number(text: StringLiteral) -> IntegerLiteral:
    value = millis(text.value)
    if value is None:
        raise TypeMismatch(
            f"'{text.value}' is not a timestamp",
            hint="Write it as '2024-05-31T23:59:59.999'; trailing parts are optional.",
            position=text.position,
        )
    return IntegerLiteral(value, text.position)
