"""Groupings: give rows the key of GROUP BY. Rows with a null in that key belong to no group.

A grouped table is a stream of rows added to groups and, where `lost` is true, of rows removed from groups.
"""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.runtime import physical_columns as col
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import Cast, ColumnRef, Expression
from holdfast.runtime.physical_columns import Side
from holdfast.runtime.plan.steps import StreamGroupBy, StreamGroupByV1, TableGroupBy, TableGroupByV1
from holdfast.runtime.spark.expression_compiler import ExpressionCompiler
from holdfast.runtime.spark.relation import REST, StreamRelation, TableRelation
from holdfast.runtime.spark.skips import Skip, skip_unless
from holdfast.types import Column, Role, Scalar

Key = tuple[tuple[Column, ...], list[str]]
"""The columns of a key and their Spark SQL."""


def build_stream_group_by_key(source: StreamRelation) -> StreamRelation:
    return skip_unless(source, _has_group(source), Skip.NO_GROUP)


def build_stream_group_by(step: StreamGroupBy, source: StreamRelation, compiler: ExpressionCompiler) -> StreamRelation:
    return _stream(source, *_columns(step.group_by_expressions, source.scope(), compiler))


def build_stream_group_by_v1(
    step: StreamGroupByV1, source: StreamRelation, compiler: ExpressionCompiler
) -> StreamRelation:
    """A single expression is the key itself; several are concatenated as text."""
    return _stream(source, *_concatenated(step.group_by_expressions, source.scope(), compiler))


def build_table_group_by(
    step: TableGroupBy | TableGroupByV1, source: TableRelation, compiler: ExpressionCompiler
) -> StreamRelation:
    """Each changed row is removed from its old group and added to its new one."""
    keyed = _columns if isinstance(step, TableGroupBy) else _concatenated
    sides = []
    for side in Side:
        key, texts = keyed(step.group_by_expressions, source.scope(side), compiler)
        named = {col.key(i): text for i, text in enumerate(texts)}
        named |= {col.value(i): side.column(i) for i in range(len(source.value))}
        named |= {"present": side.present, "lost": str(side is Side.BEFORE)}
        fields = ", ".join(f"'{name}', {sql}" for name, sql in named.items())
        sides.append(f"named_struct({fields})")
    # Both sides have the time of the change; the changes of a tick are ordered by time.
    rows = f"SELECT coalesce(a_ts, b_ts) AS ts, explode(array({', '.join(sides)})) AS row FROM ({source.sql})"
    sql = f"SELECT row.*, ts, 0 AS part, ts AS off, 0 AS bad FROM ({rows})"
    grouped = StreamRelation(sql, key, source.value)
    return replace(grouped, sql=f"SELECT * FROM ({sql}) WHERE {_has_group(grouped)}")


def _stream(source: StreamRelation, key: tuple[Column, ...], texts: Sequence[str]) -> StreamRelation:
    # A bad row gets no key: an expression could compute one from its nulls and add it to a group of good rows.
    keys = [f"IF(bad > 0, NULL, {text}) AS {col.key(i)}" for i, text in enumerate(texts)]
    inner = f"SELECT {', '.join([*keys, *source.values, *REST])} FROM ({source.sql})"
    grouped = StreamRelation(inner, key, source.value)
    return skip_unless(grouped, _has_group(grouped), Skip.NO_GROUP)


def _columns(texts: Sequence[str], scope: Scope, compiler: ExpressionCompiler) -> Key:
    """One key column per expression."""
    expressions = [parse_expression(text) for text in texts]
    key = tuple(Column(_name(e, i), compiler.type(e, scope), Role.KEY) for i, e in enumerate(expressions))
    return key, [compiler.spark(e, scope) for e in expressions]


def _concatenated(group_by: Sequence[str], scope: Scope, compiler: ExpressionCompiler) -> Key:
    """One key column: a single expression itself, or several concatenated as text."""
    expressions = [parse_expression(text) for text in group_by]
    texts = [compiler.spark(e, scope) for e in expressions]
    if len(expressions) == 1:
        type_, sql = compiler.type(expressions[0], scope), texts[0]
    else:
        casts = [compiler.spark(Cast(e, Scalar.STRING), scope) for e in expressions]
        missing = " OR ".join(f"({text}) IS NULL" for text in texts)
        type_, sql = Scalar.STRING, f"IF({missing}, NULL, concat_ws('|+|', {', '.join(casts)}))"
    return (Column("ROWKEY", type_, Role.KEY),), [sql]


def _has_group(source: StreamRelation) -> str:
    return " AND ".join(["present", *(f"{key} IS NOT NULL" for key in source.keys)])


def _name(expression: Expression, index: int) -> str:
    return expression.name if isinstance(expression, ColumnRef) else f"KSQL_COL_{index}"
