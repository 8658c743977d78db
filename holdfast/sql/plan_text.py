"""Names and expressions as plans write them."""

from collections.abc import Iterable
from dataclasses import replace

from holdfast.runtime.expressions.text import format_expression, format_named
from holdfast.runtime.expressions.tree import (
    Between,
    Binary,
    DoubleLiteral,
    Expression,
    InList,
    Like,
    NamedExpression,
    Not,
    Operator,
)
from holdfast.runtime.plan.steps import ExpressionText, StepProperties
from holdfast.sql.syntax.walk import rewrite


def context(path: str) -> StepProperties:
    return StepProperties(query_context=path)


def expression_text(expression: Expression) -> ExpressionText:
    return ExpressionText(format_expression(canonical(expression)))


def named_text(named: NamedExpression) -> ExpressionText:
    return ExpressionText(format_named(NamedExpression(named.name, canonical(named.expression))))


def columns_text(columns: Iterable[NamedExpression]) -> tuple[ExpressionText, ...]:
    return tuple(map(named_text, columns))


def canonical(expression: Expression) -> Expression:
    """The canonical form in plans: `NOT (a IN …)`, doubles as Java writes them."""

    def change(node: Expression) -> Expression | None:
        match node:
            case Between(negated=True) | InList(negated=True) | Like(negated=True):
                return Not(rewrite(replace(node, negated=False), change), node.position)
            case Binary(Operator.IS_NOT_DISTINCT):
                return Not(rewrite(replace(node, operator=Operator.IS_DISTINCT), change), node.position)
            case DoubleLiteral(text):
                return replace(node, text=java_double(float(text)))
        return None

    return rewrite(expression, change)


def java_double(value: float) -> str:
    """A double as `Double.toString` writes it: the fewest digits that parse to the same value, at least two."""
    shortest = repr(value) if len(repr(value).partition("e")[0].replace(".", "")) > 1 else f"{value:.1e}"
    sign, digits, exponent = _decimal(shortest)
    if 1e-3 <= abs(value) < 1e7 or value == 0:
        digits = digits.rjust(1 - exponent, "0") if exponent < 0 else digits.ljust(exponent + 2, "0")
        point = max(exponent, 0) + 1
        return f"{sign}{digits[:point]}.{digits[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _decimal(text: str) -> tuple[str, str, int]:
    """The sign, the digits and the exponent of the first digit."""
    sign = "-" if text.startswith("-") else ""
    mantissa, _, power = text.lstrip("-").partition("e")
    integer, _, fraction = mantissa.partition(".")
    digits = (integer + fraction).lstrip("0")
    exponent = len(integer) - 1 + int(power or 0) - (len(integer + fraction) - len(digits))
    return sign, digits.rstrip("0") or "0", exponent if digits else 0
