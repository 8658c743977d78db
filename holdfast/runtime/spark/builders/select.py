"""Projections: compute the value columns, rename the key columns."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.errors import PlanError
from holdfast.names import show
from holdfast.runtime.expressions.parse import parse_named
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import NamedExpression
from holdfast.runtime.plan.presence import given
from holdfast.runtime.plan.steps import StreamSelect, TableSelect
from holdfast.runtime.spark.meaning import Meaning
from holdfast.runtime.spark.relation import Side, StreamRelation, TableRelation
from holdfast.types import Column


def build_stream_select(step: StreamSelect, source: StreamRelation, meaning: Meaning) -> StreamRelation:
    selected = [parse_named(text) for text in step.select_expressions]
    scope = source.scope()
    kept = given(step.selected_keys)
    keys = [(f"k{i}", c) for i, c in enumerate(source.key) if kept is None or c.name in kept]
    windows = source.keys[len(source.key) :]
    projected = [f"{name} AS k{i}" for i, name in enumerate([*(name for name, _ in keys), *windows])]
    projected += [f"{meaning.spark(item.expression, scope)} AS c{i}" for i, item in enumerate(selected)]
    sql = f"SELECT {', '.join([*projected, *source.rest])} FROM ({source.sql})"
    key = renamed([c for _, c in keys], given(step.key_column_names))
    return replace(source, sql=sql, key=key, value=columns(selected, scope, meaning))


def build_table_select(step: TableSelect, source: TableRelation, meaning: Meaning) -> TableRelation:
    selected = [parse_named(text) for text in step.select_expressions]
    projected = list(source.keys)
    for side in Side:
        scope, prefix = source.scope(side), side.value
        rendered = [f"{meaning.spark(item.expression, scope)} AS {prefix}{i}" for i, item in enumerate(selected)]
        projected += [f"{prefix}_present", *rendered, f"{prefix}_ts"]
    sql = f"SELECT {', '.join(projected)} FROM ({source.sql})"
    key = renamed(source.key, given(step.key_column_names))
    return TableRelation(sql, key, columns(selected, source.scope(Side.AFTER), meaning), source.window)


def columns(selected: Sequence[NamedExpression], scope: Scope, meaning: Meaning) -> tuple[Column, ...]:
    """The value columns that a select list gives."""
    return tuple(Column(item.name, meaning.type(item.expression, scope)) for item in selected)


def renamed(key: Sequence[Column], names: Sequence[str] | None) -> tuple[Column, ...]:
    """The key columns under the names that a step gives them, when it gives any."""
    if not names:
        return tuple(key)
    if len(names) != len(key):
        given_names, there = ", ".join(map(show, names)), ", ".join(show(column.name) for column in key)
        raise PlanError(
            f"a step names {len(names)} key columns where there are {len(key)}",
            detail=f"It names {given_names}; the key is {there or 'nothing'}.",
        )
    return tuple(replace(column, name=name) for column, name in zip(key, names, strict=True))
