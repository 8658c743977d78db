"""Times in AS OF and UP TO: milliseconds, timestamps and `now()`, plus or minus a duration."""

from dataclasses import dataclass, replace

from holdfast.errors import BadTime, Position
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import (
    Binary,
    Call,
    Cast,
    DecimalLiteral,
    Expression,
    IntegerLiteral,
    Negate,
    Operator,
    StringLiteral,
)
from holdfast.sql.literals.duration import EXAMPLES, duration_ms
from holdfast.sql.literals.timestamp import millis
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.span import INTERVAL
from holdfast.types import Scalar

NOW = frozenset({"NOW", "MZ_NOW"})
LATEST = 2**63 - 1
"""The greatest time that a client can specify."""
FORMS = "Write milliseconds since the epoch, a timestamp such as '2024-05-31T23:59:59.999', or now()."


@dataclass(frozen=True, slots=True)
class Moment:
    """A time in milliseconds since the epoch or, with `from_now`, relative to now."""

    millis: int
    from_now: bool = False
    position: Position | None = None

    def at(self, now: int) -> int:
        return self.millis + now if self.from_now else self.millis


@dataclass(frozen=True, slots=True)
class BoundAsOf:
    """The time that a query reads at: exactly `moment`, or with `at_least` the first readable time from it on."""

    moment: Moment
    at_least: bool = False

    def dated(self, now: int) -> "BoundAsOf":
        """With `now()` replaced by a fixed time, because a time that a query waits for must not move."""
        return replace(self, moment=replace(self.moment, millis=self.moment.at(now), from_now=False))


def bind_as_of(as_of: sql.AsOf | None) -> BoundAsOf | None:
    return BoundAsOf(bind_moment(as_of.time), as_of.at_least) if as_of is not None else None


def bind_moment(expression: Expression) -> Moment:
    """The time that an expression denotes."""
    moment = replace(_moment(expression), position=expression.position)
    if not moment.from_now and not 0 <= moment.millis <= LATEST:
        raise BadTime(
            f"the time {moment.millis} is out of range",
            detail=f"A time is a number of milliseconds from 0 to {LATEST}.",
            position=expression.position,
        )
    return moment


def _moment(expression: Expression) -> Moment:
    match expression:
        case IntegerLiteral(value):
            return Moment(value)
        case DecimalLiteral(text) if not text.partition(".")[2].strip("0"):
            return Moment(int(text.partition(".")[0] or "0"))
        case Negate(IntegerLiteral(value)):
            return Moment(-value)
        case StringLiteral(text) | Cast(StringLiteral(text), Scalar.TIMESTAMP | Scalar.DATE | Scalar.STRING):
            return Moment(_timestamp(text, expression))
        case Cast(IntegerLiteral(value), Scalar.BIGINT):
            return Moment(value)
        case Call(name, ()) if name in NOW:
            return Moment(0, from_now=True)
        case Binary(Operator.ADD, left, right):
            return _shifted(left, right, 1)
        case Binary(Operator.SUBTRACT, left, right):
            return _shifted(left, right, -1)
        case _:
            raise BadTime(
                f"{format_expression(expression)} is not a valid time", hint=FORMS, position=expression.position
            )


def _shifted(base: Expression, shift: Expression, sign: int) -> Moment:
    moment = _moment(base)
    match shift:
        case Call(name, (StringLiteral(text),)) if name == INTERVAL:
            shift_ms = duration_ms(text)
            if shift_ms is None:
                raise BadTime(f"'{text}' is not a valid duration", hint=EXAMPLES, position=shift.position)
        case IntegerLiteral(value):
            shift_ms = value
        case _:
            raise BadTime(
                f"{format_expression(shift)} cannot be added to a time",
                hint="Write INTERVAL '1 hour', or a number of milliseconds.",
                position=shift.position,
            )
    return replace(moment, millis=moment.millis + sign * shift_ms)


def _timestamp(text: str, expression: Expression) -> int:
    stripped = text.strip()
    if stripped.isascii() and stripped.isdigit() and len(stripped) > 4:
        return int(stripped)
    found = millis(stripped.replace(" ", "T", 1))
    if found is None:
        raise BadTime(f"'{text}' is not a valid time", hint=FORMS, position=expression.position)
    return found
