"""Walking and rewriting expressions, for the binder and the planner."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache
from typing import Any, cast, get_args

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
_EXPRESSIONS: tuple[type[Any], ...] = get_args(Expression)


# Binding a statement looks at thousands of values: what depends on their class alone is computed once.
@cache
def _is_expression(kind: type[Any]) -> bool:
    return issubclass(kind, _EXPRESSIONS)


@cache
def _is_container(kind: type[Any]) -> bool:
    return issubclass(kind, _CONTAINERS)


def _is_node(value: object) -> bool:
    kind: Any = type(value)
    return _is_expression(kind) or _is_container(kind)


@cache
def _field_names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.name != "position")


def children(node: object) -> Iterator[Expression]:
    """The direct subexpressions of an expression, in the order of the text."""
    for name in _field_names(cast(Any, type(node))):
        value = getattr(node, name)
        for item in value if isinstance(value, tuple) else (value,):
            kind: Any = type(item)
            if _is_expression(kind):
                yield item
            elif _is_container(kind):
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
    for name in _field_names(cast(Any, type(node))):
        value = getattr(node, name)
        if isinstance(value, tuple) and any(map(_is_node, value)):
            changes[name] = tuple(_apply(item, change) for item in value)
        elif _is_node(value):
            changed = _apply(value, change)
            if changed is not value:
                changes[name] = changed
    return replace(cast(Any, node), **changes) if changes else node


def _apply(value: object, change: Callable[[Expression], Expression | None]) -> object:
    kind: Any = type(value)
    if _is_expression(kind):
        return rewrite(cast(Expression, value), change)
    return _rebuild(value, change)


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
