"""Projections: compute the value columns, rename the key columns."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.errors import PlanError
from holdfast.names import show
from holdfast.runtime import physical_columns as col
from holdfast.runtime.expressions.parse import parse_named
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import NamedExpression
from holdfast.runtime.physical_columns import Side
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.steps import StreamSelect, TableSelect
from holdfast.runtime.spark.expression_compiler import ExpressionCompiler
from holdfast.runtime.spark.relation import StreamRelation, TableRelation
from holdfast.types import Column


def build_stream_select(step: StreamSelect, source: StreamRelation, compiler: ExpressionCompiler) -> StreamRelation:
    selected = [parse_named(text) for text in step.select_expressions]
    scope = source.scope()
    selected_keys = value_of(step.selected_keys)
    keys = [(col.key(i), c) for i, c in enumerate(source.key) if selected_keys is None or c.name in selected_keys]
    windows = source.keys[len(source.key) :]
    projected = [f"{name} AS {col.key(i)}" for i, name in enumerate([*(name for name, _ in keys), *windows])]
    projected += [f"{compiler.spark(item.expression, scope)} AS {col.value(i)}" for i, item in enumerate(selected)]
    sql = f"SELECT {', '.join([*projected, *source.rest])} FROM ({source.sql})"
    key = renamed([c for _, c in keys], value_of(step.key_column_names))
    return replace(source, sql=sql, key=key, value=columns(selected, scope, compiler))


def build_table_select(step: TableSelect, source: TableRelation, compiler: ExpressionCompiler) -> TableRelation:
    selected = [parse_named(text) for text in step.select_expressions]
    projected = list(source.keys)
    for side in Side:
        scope = source.scope(side)
        rendered = [f"{compiler.spark(item.expression, scope)} AS {side.column(i)}" for i, item in enumerate(selected)]
        projected += [side.present, *rendered, side.row_time]
    sql = f"SELECT {', '.join(projected)} FROM ({source.sql})"
    key = renamed(source.key, value_of(step.key_column_names))
    return TableRelation(sql, key, columns(selected, source.scope(Side.AFTER), compiler), source.window)


def columns(selected: Sequence[NamedExpression], scope: Scope, compiler: ExpressionCompiler) -> tuple[Column, ...]:
    """The value columns of a select list."""
    return tuple(Column(item.name, compiler.type(item.expression, scope)) for item in selected)


def renamed(key: Sequence[Column], names: Sequence[str] | None) -> tuple[Column, ...]:
    """The key columns, renamed if the step has names for them."""
    if not names:
        return tuple(key)
    if len(names) != len(key):
        new_names, old_names = ", ".join(map(show, names)), ", ".join(show(column.name) for column in key)
        raise PlanError(
            f"a step has {len(names)} names for a key of {len(key)} columns",
            detail=f"The names are {new_names}; the key columns are {old_names or 'none'}.",
        )
    return tuple(replace(column, name=name) for column, name in zip(key, names, strict=True))
