"""Filters: keep the rows for which an expression is true."""

from dataclasses import replace

from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.physical_columns import Side
from holdfast.runtime.plan.steps import StreamFilter, TableFilter
from holdfast.runtime.spark.expression_compiler import ExpressionCompiler
from holdfast.runtime.spark.relation import StreamRelation, TableRelation


def build_stream_filter(step: StreamFilter, source: StreamRelation, compiler: ExpressionCompiler) -> StreamRelation:
    """Bad rows pass, to be counted at the end; a record without a value never passes."""
    condition = compiler.spark(parse_expression(step.filter_expression), source.scope())
    return replace(source, sql=f"SELECT * FROM ({source.sql}) WHERE bad > 0 OR (present AND ({condition}))")


def build_table_filter(step: TableFilter, source: TableRelation, compiler: ExpressionCompiler) -> TableRelation:
    """A side of the delta whose row does not match is absent, so that a row that stops matching is deleted."""
    expression = parse_expression(step.filter_expression)
    sides = []
    for side in Side:
        condition = compiler.spark(expression, source.scope(side))
        values = "".join(f", {side.column(i)}" for i in range(len(source.value)))
        sides.append(f"{side.present} AND coalesce({condition}, false) AS {side.present}{values}, {side.row_time}")
    sql = f"SELECT {', '.join([*source.keys, *sides])} FROM ({source.sql})"
    return replace(source, sql=sql)
