"""Groupings: give rows the key of GROUP BY. Rows with a null in that key belong to no group.

A grouped table is a stream of rows that a group gets and, where `lost` is true, of rows that it had and has no more.
"""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import Cast, ColumnRef, Expression
from holdfast.runtime.plan.steps import StreamGroupBy, StreamGroupByV1, TableGroupBy, TableGroupByV1
from holdfast.runtime.spark.meaning import Meaning
from holdfast.runtime.spark.relation import REST, Side, StreamRelation, TableRelation
from holdfast.runtime.spark.skipping import Skip, skipping
from holdfast.types import Column, Role, Scalar

Key = tuple[tuple[Column, ...], list[str]]
"""The columns of a key and their Spark SQL."""


def build_stream_group_by_key(source: StreamRelation) -> StreamRelation:
    return skipping(source, _grouped(source), Skip.NO_GROUP)


def build_stream_group_by(step: StreamGroupBy, source: StreamRelation, meaning: Meaning) -> StreamRelation:
    return _stream(source, *_columns(step.group_by_expressions, source.scope(), meaning))


def build_stream_group_by_v1(step: StreamGroupByV1, source: StreamRelation, meaning: Meaning) -> StreamRelation:
    """One expression is the key as it is; of several, the key is their texts in one."""
    return _stream(source, *_joined(step.group_by_expressions, source.scope(), meaning))


def build_table_group_by(
    step: TableGroupBy | TableGroupByV1, source: TableRelation, meaning: Meaning
) -> StreamRelation:
    """Each changed row leaves the group that it was in and comes into the one that it is in now."""
    keyed = _columns if isinstance(step, TableGroupBy) else _joined
    sides = []
    for side in Side:
        key, texts = keyed(step.group_by_expressions, source.scope(side), meaning)
        prefix = side.value
        named = {f"k{i}": text for i, text in enumerate(texts)}
        named |= {f"c{i}": f"{prefix}{i}" for i in range(len(source.value))}
        named |= {"present": f"{prefix}_present", "lost": str(side is Side.BEFORE)}
        fields = ", ".join(f"'{name}', {sql}" for name, sql in named.items())
        sides.append(f"named_struct({fields})")
    # The time is the change's on both sides; the order of changes in a tick is that of their times.
    rows = f"SELECT coalesce(a_ts, b_ts) AS ts, explode(array({', '.join(sides)})) AS row FROM ({source.sql})"
    sql = f"SELECT row.*, ts, 0 AS part, ts AS off, 0 AS bad FROM ({rows})"
    grouped = StreamRelation(sql, key, source.value)
    return replace(grouped, sql=f"SELECT * FROM ({sql}) WHERE {_grouped(grouped)}")


def _stream(source: StreamRelation, key: tuple[Column, ...], texts: Sequence[str]) -> StreamRelation:
    # A bad row has no group: an expression could make a key of its nulls, and take good rows with it.
    keys = [f"IF(bad > 0, NULL, {text}) AS k{i}" for i, text in enumerate(texts)]
    inner = f"SELECT {', '.join([*keys, *source.values, *REST])} FROM ({source.sql})"
    grouped = StreamRelation(inner, key, source.value)
    return skipping(grouped, _grouped(grouped), Skip.NO_GROUP)


def _columns(texts: Sequence[str], scope: Scope, meaning: Meaning) -> Key:
    """A column for each expression."""
    expressions = [parse_expression(text) for text in texts]
    key = tuple(Column(_name(e, i), meaning.type(e, scope), Role.KEY) for i, e in enumerate(expressions))
    return key, [meaning.spark(e, scope) for e in expressions]


def _joined(group_by: Sequence[str], scope: Scope, meaning: Meaning) -> Key:
    """The one expression as it is; of several, their texts in one."""
    expressions = [parse_expression(text) for text in group_by]
    texts = [meaning.spark(e, scope) for e in expressions]
    if len(expressions) == 1:
        type_, sql = meaning.type(expressions[0], scope), texts[0]
    else:
        casts = [meaning.spark(Cast(e, Scalar.STRING), scope) for e in expressions]
        missing = " OR ".join(f"({text}) IS NULL" for text in texts)
        type_, sql = Scalar.STRING, f"IF({missing}, NULL, concat_ws('|+|', {', '.join(casts)}))"
    return (Column("ROWKEY", type_, Role.KEY),), [sql]


def _grouped(source: StreamRelation) -> str:
    return " AND ".join(["present", *(f"{key} IS NOT NULL" for key in source.keys)])


def _name(expression: Expression, index: int) -> str:
    return expression.name if isinstance(expression, ColumnRef) else f"KSQL_COL_{index}"
