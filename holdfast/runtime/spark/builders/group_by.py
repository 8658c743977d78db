"""Groupings: give a stream the key of GROUP BY. Rows with a null in that key belong to no group."""

from dataclasses import replace

from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.tree import Cast, ColumnRef, Expression
from holdfast.runtime.plan.steps import StreamGroupBy, StreamGroupByV1
from holdfast.runtime.spark.meaning import Meaning
from holdfast.runtime.spark.relation import REST, StreamRelation
from holdfast.types import Column, Role, Scalar


def build_stream_group_by_key(source: StreamRelation) -> StreamRelation:
    return replace(source, sql=f"SELECT * FROM ({source.sql}) WHERE {_grouped(source)}")


def build_stream_group_by(step: StreamGroupBy, source: StreamRelation, meaning: Meaning) -> StreamRelation:
    expressions = [parse_expression(text) for text in step.group_by_expressions]
    scope = source.scope()
    key = tuple(Column(_name(e, i), meaning.type(e, scope), Role.KEY) for i, e in enumerate(expressions))
    # A bad row has no group: an expression could make a key of its nulls, and take good rows with it.
    keys = [f"IF(bad > 0, NULL, {meaning.spark(e, scope)}) AS k{i}" for i, e in enumerate(expressions)]
    inner = f"SELECT {', '.join([*keys, *source.values, *REST])} FROM ({source.sql})"
    grouped = StreamRelation(inner, key, source.value)
    return StreamRelation(f"SELECT * FROM ({inner}) WHERE {_grouped(grouped)}", key, source.value)


def build_stream_group_by_v1(step: StreamGroupByV1, source: StreamRelation, meaning: Meaning) -> StreamRelation:
    """One expression is the key as it is; of several, the key is their texts in one."""
    expressions = [parse_expression(text) for text in step.group_by_expressions]
    scope = source.scope()
    texts = [meaning.spark(e, scope) for e in expressions]
    if len(expressions) == 1:
        type_, sql = meaning.type(expressions[0], scope), texts[0]
    else:
        casts = [meaning.spark(Cast(e, Scalar.STRING), scope) for e in expressions]
        missing = " OR ".join(f"({text}) IS NULL" for text in texts)
        type_, sql = Scalar.STRING, f"IF({missing}, NULL, concat_ws('|+|', {', '.join(casts)}))"
    inner = f"SELECT IF(bad > 0, NULL, {sql}) AS k0, {', '.join([*source.values, *REST])}"
    grouped = StreamRelation(f"{inner} FROM ({source.sql})", (Column("ROWKEY", type_, Role.KEY),), source.value)
    return StreamRelation(f"SELECT * FROM ({grouped.sql}) WHERE {_grouped(grouped)}", grouped.key, source.value)


def _grouped(source: StreamRelation) -> str:
    return f"bad > 0 OR (present AND {' AND '.join(f'{k} IS NOT NULL' for k in source.keys)})"


def _name(expression: Expression, index: int) -> str:
    return expression.name if isinstance(expression, ColumnRef) else f"KSQL_COL_{index}"
