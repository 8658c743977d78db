"""Which columns an expression reads."""

from dataclasses import fields, is_dataclass

from holdfast.runtime.expressions.tree import ColumnRef, Expression, Lambda


def references(expression: Expression) -> frozenset[str]:
    """The names of all columns in an expression, without the parameters of lambdas."""
    found: set[str] = set()
    _collect(expression, found)
    return frozenset(found)


def _collect(node: object, found: set[str]) -> None:
    if isinstance(node, ColumnRef):
        found.add(node.name)
    elif isinstance(node, Lambda):
        found |= references(node.body) - set(node.parameters)
    elif isinstance(node, tuple):
        for item in node:
            _collect(item, found)
    elif is_dataclass(node):
        for field in fields(node):
            _collect(getattr(node, field.name), found)
