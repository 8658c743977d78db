"""Names and expressions as plans write them."""

from collections.abc import Iterable

from holdfast.runtime.expressions.text import format_expression, format_named
from holdfast.runtime.expressions.tree import Expression, NamedExpression
from holdfast.runtime.plan.steps import ExpressionText, StepProperties


def context(path: str) -> StepProperties:
    return StepProperties(query_context=path)


def expression_text(expression: Expression) -> ExpressionText:
    return ExpressionText(format_expression(expression))


def named_text(named: NamedExpression) -> ExpressionText:
    return ExpressionText(format_named(named))


def columns_text(columns: Iterable[NamedExpression]) -> tuple[ExpressionText, ...]:
    return tuple(map(named_text, columns))
