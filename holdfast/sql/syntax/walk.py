"""Walking and rewriting expressions, for the binder and the planner."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, cast

from holdfast.runtime.expressions.tree import (
    Binary,
    ColumnRef,
    Expression,
    Lambda,
    MapEntry,
    NamedExpression,
    Operator,
    When,
)

# Parts of an expression that are not expressions themselves but contain some.
_CONTAINERS = (When, MapEntry, NamedExpression)


def _is_node(value: object) -> bool:
    return isinstance(value, Expression | When | MapEntry | NamedExpression)


def children(node: object) -> Iterator[Expression]:
    """The direct subexpressions of an expression, in the order of the text."""
    for field in fields(cast(Any, node)):
        value = getattr(node, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Expression):
                yield item
            elif isinstance(item, _CONTAINERS):
                yield from children(item)


def walk(expression: Expression) -> Iterator[Expression]:
    """An expression and all of its subexpressions, outermost first."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def column_refs(expression: Expression, hidden: frozenset[str] = frozenset()) -> Iterator[ColumnRef]:
    """The columns that an expression refers to, in order, without the parameters of lambdas."""
    if isinstance(expression, ColumnRef):
        if expression.qualifier is not None or expression.name not in hidden:
            yield expression
        return
    inner = hidden | set(expression.parameters) if isinstance(expression, Lambda) else hidden
    for child in children(expression):
        yield from column_refs(child, inner)


def rewrite(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with `change` applied from the outside in; replacements are not visited."""
    changed = change(expression)
    if changed is not None:
        return changed
    return cast(Expression, _rebuild(expression, change))


def _rebuild(node: object, change: Callable[[Expression], Expression | None]) -> object:
    changes: dict[str, object] = {}
    for field in fields(cast(Any, node)):
        value = getattr(node, field.name)
        if isinstance(value, tuple) and any(map(_is_node, value)):
            changes[field.name] = tuple(_apply(item, change) for item in value)
        elif _is_node(value):
            changes[field.name] = _apply(value, change)
    return replace(cast(Any, node), **changes) if changes else node


def _apply(value: object, change: Callable[[Expression], Expression | None]) -> object:
    return rewrite(value, change) if isinstance(value, Expression) else _rebuild(value, change)


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """The operands of the AND operators at the top of a condition."""
    match condition:
        case None:
            return
        case Binary(operator=Operator.AND, left=left, right=right):
            yield from conjuncts(left)
            yield from conjuncts(right)
        case _:
            yield condition
