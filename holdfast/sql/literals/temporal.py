"""String literals used as a DATE, a TIME or a TIMESTAMP; invalid ones are refused when a statement is bound."""

import re
from collections.abc import Callable, Iterator
from datetime import date

from holdfast.errors import TypeMismatch
from holdfast.runtime.compiler.inference import ARITHMETIC, LOGICAL
from holdfast.runtime.expressions.casts import moment_literal
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.tree import (
    Between,
    Binary,
    Case,
    Cast,
    Expression,
    InList,
    Lambda,
    Operator,
    StringLiteral,
)
from holdfast.sql.syntax.walk import children
from holdfast.types import Scalar, SqlType

Infer = Callable[[Expression], SqlType | None]

EXAMPLES: dict[SqlType, str] = {
    Scalar.DATE: "'2024-05-31'",
    Scalar.TIME: "'23:59:59.999'",
    Scalar.TIMESTAMP: "'2024-05-31T23:59:59.999'",
}
_DAY = r"[+-]?(?P<year>\d{4,6})(-(?P<month>\d{1,2})(-(?P<day>\d{1,2}))?)?"
_CLOCK = r"([01]?\d|2[0-3])(:[0-5]?\d(:[0-5]?\d(\.\d*)?)?)?"
_ZONE = r"\s*([A-Z+-].*)?"
# What Spark's casts accept in addition to ISO format, with any time zone.
_SPARK_FORMATS: dict[SqlType, re.Pattern[str]] = {
    Scalar.DATE: re.compile(rf"{_DAY}([T ].*)?"),
    Scalar.TIME: re.compile(rf"{_CLOCK}{_ZONE}"),
    Scalar.TIMESTAMP: re.compile(rf"{_DAY}([T ]{_CLOCK}{_ZONE})?"),
}


def check_moments(expression: Expression, infer: Infer) -> None:
    """Refuse a string literal that is cast to or compared with a DATE, TIME or TIMESTAMP but is not a valid one."""
    for text, target in _literals(expression, infer):
        if target in EXAMPLES and not _is_valid(text.value, target):
            raise TypeMismatch(
                f"'{text.value}' is not a {target}", hint=f"Write it as {EXAMPLES[target]}.", position=text.position
            )


def _literals(node: Expression, infer: Infer) -> Iterator[tuple[StringLiteral, SqlType | None]]:
    """The string literals of an expression and their target types, except those inside lambdas."""
    if isinstance(node, Lambda):
        return
    match node:
        case Cast(StringLiteral() as text, target):
            yield text, target
        case Binary(operator, left, right) if operator not in (*ARITHMETIC, *LOGICAL, Operator.CONCAT):
            yield from _compared(left, (right,), infer)
            yield from _compared(right, (left,), infer)
        case Between(operand, low, high):
            yield from _compared(operand, (low, high), infer)
        case InList(operand, items):
            yield from _compared(operand, items, infer)
        case Case(operand, branches) if operand is not None:
            yield from _compared(operand, tuple(branch.condition for branch in branches), infer)
    for child in children(node):
        yield from _literals(child, infer)


def _compared(
    operand: Expression, others: tuple[Expression, ...], infer: Infer
) -> Iterator[tuple[StringLiteral, SqlType | None]]:
    for other in others:
        if isinstance(other, StringLiteral):
            yield other, infer(operand)


def _is_valid(text: str, target: SqlType) -> bool:
    if moment_literal(text, target, Dialect.SPARK) is not None:
        return True
    match = _SPARK_FORMATS[target].fullmatch(text.strip())
    return match is not None and _is_day(match.groupdict())


def _is_day(part: dict[str, str | None]) -> bool:
    """Whether the day exists; True for years that Python's dates do not cover."""
    if part.get("year") is None or len(part["year"] or "") > len("9999"):
        return True
    try:
        date(int(part["year"] or 1) or 1, int(part["month"] or 1), int(part["day"] or 1))
    except ValueError:
        return False
    return True
