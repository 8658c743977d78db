"""Giving rows another key: PARTITION BY, and what a join needs."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.errors import NotSupported
from holdfast.planner.node import Node
from holdfast.planner.texts import context, expression_text
from holdfast.runtime.expressions.tree import ColumnRef, Expression
from holdfast.runtime.plan.formats import FormatInfo
from holdfast.runtime.plan.steps import StreamSelectKey, TableSelectKey
from holdfast.sql.projection import Names
from holdfast.types import Column, Role


def rekey(node: Node, expressions: Sequence[Expression], path: str, key_format: FormatInfo | None = None) -> Node:
    """The rows under the key of these expressions, in `key_format` if one is asked for; as they are if they fit."""
    same = node.keyed_by(expressions)
    if same and key_format in (None, node.key_format):
        return node
    if node.window is not None:
        raise NotSupported(
            "a windowed stream or table cannot get another key",
            detail="The window is a part of its key, and a new key would have to come with one.",
            position=expressions[0].position,
        )
    texts = tuple(map(expression_text, expressions))
    types = node.types(expressions)
    names = Names(column.name for column in node.value)
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
    moved = replace(node, key=key, value=value, key_format=key_format or node.key_format)
    table = TableSelectKey(
        properties=context(path), source=node.step, internal_formats=moved.formats, key_expression=texts
    )
    return replace(moved, step=table)
