"""Changes the key of rows, for PARTITION BY and joins."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.errors import NotSupported
from holdfast.planner.node import Node
from holdfast.runtime.expressions.tree import ColumnRef, Expression
from holdfast.runtime.plan.formats import FormatInfo
from holdfast.runtime.plan.steps import StreamSelectKey, TableSelectKey
from holdfast.sql.plan_text import context, expression_text
from holdfast.sql.query.projection import NameGenerator
from holdfast.types import Column, Role


def rekey(node: Node, expressions: Sequence[Expression], path: str, key_format: FormatInfo | None = None) -> Node:
    """The rows keyed by these expressions, in `key_format` if there is one; unchanged if they already have that key."""
    same = node.keyed_by(expressions)
    if same and key_format in (None, node.key_format):
        return node
    if node.window is not None:
        raise NotSupported(
            "a windowed stream or table cannot get another key",
            detail="The window is part of the key, and a new key would have no window.",
            position=expressions[0].position,
        )
    texts = tuple(map(expression_text, expressions))
    types = node.types(expressions)
    names = NameGenerator(column.name for column in node.value)
    key = tuple(
        Column(expression.name if isinstance(expression, ColumnRef) else names.of(expression), type_, Role.KEY)
        for expression, type_ in zip(expressions, types, strict=False)
    )
    known = {column.name for column in node.value}
    value = (*node.value, *(replace(column, role=Role.VALUE) for column in key if column.name not in known))
    if node.stream:
        format_ = node.grouped_format(expressions, key_format)
        step = StreamSelectKey(properties=context(path), source=node.step, key_expression=texts)
        return replace(node, step=step, key=key, value=value, key_format=format_)
    rekeyed = replace(node, key=key, value=value, key_format=key_format or node.key_format)
    table = TableSelectKey(
        properties=context(path), source=node.step, internal_formats=rekeyed.formats, key_expression=texts
    )
    return replace(rekeyed, step=table)
