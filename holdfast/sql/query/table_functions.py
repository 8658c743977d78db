"""Table functions: calls such as EXPLODE that turn one row into many."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.errors import BindError, NotSupported
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression
from holdfast.runtime.functions.registry import is_table_function
from holdfast.sql.query.projection import BoundColumn
from holdfast.sql.syntax.walk import rewrite, walk

RESULT = "KSQL_SYNTH_"
"""Prefix of the columns with the results of table functions, numbered in the order of the select list."""


def table_functions(expression: Expression) -> list[Call]:
    """The calls to table functions inside an expression."""
    return [node for node in walk(expression) if isinstance(node, Call) and is_table_function(node.name)]


def bind_table_functions(
    projection: Sequence[BoundColumn], *, stream: bool, aggregated: bool
) -> tuple[tuple[BoundColumn, ...], tuple[Call, ...]]:
    """The projection over the rows that table functions produce, and the calls to those functions."""
    calls: list[Call] = []

    def change(node: Expression) -> Expression | None:
        if not isinstance(node, Call) or not is_table_function(node.name):
            return None
        _check(node, stream=stream, aggregated=aggregated)
        calls.append(node)
        return ColumnRef(f"{RESULT}{len(calls) - 1}", None, node.position)

    columns = tuple(replace(column, expression=rewrite(column.expression, change)) for column in projection)
    return columns, tuple(calls)


def refuse_table_functions(expression: Expression, *, clause: str) -> None:
    for call in table_functions(expression):
        raise BindError(
            f"{clause} cannot contain the table function {call.shown}",
            hint="Table functions are only allowed in the select list.",
            position=call.position,
        )


def aggregated_rows(call: Call) -> NotSupported:
    return NotSupported(
        f"the table function {call.shown} cannot be used in an aggregation",
        hint="Create a stream of its rows first, and aggregate that stream.",
        position=call.position,
    )


def _check(call: Call, *, stream: bool, aggregated: bool) -> None:
    for argument in call.arguments:
        for inner in table_functions(argument):
            raise BindError(f"table functions cannot be nested: {inner.shown} in {call.shown}", position=inner.position)
    if aggregated:
        raise aggregated_rows(call)
    if not stream:
        raise NotSupported(
            f"the table function {call.shown} is only allowed on streams, not on tables", position=call.position
        )
