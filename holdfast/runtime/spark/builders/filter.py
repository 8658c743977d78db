"""Filters: keep the rows for which an expression is true."""

from dataclasses import replace

from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.plan.steps import StreamFilter, TableFilter
from holdfast.runtime.spark.meaning import Meaning
from holdfast.runtime.spark.relation import Side, StreamRelation, TableRelation


def build_stream_filter(step: StreamFilter, source: StreamRelation, meaning: Meaning) -> StreamRelation:
    """Bad rows pass, to be counted at the end; a record without a value fits nothing."""
    condition = meaning.spark(parse_expression(step.filter_expression), source.scope())
    return replace(source, sql=f"SELECT * FROM ({source.sql}) WHERE bad > 0 OR (present AND ({condition}))")


def build_table_filter(step: TableFilter, source: TableRelation, meaning: Meaning) -> TableRelation:
    """A side of the delta whose row does not fit is absent, so that a row which stops fitting is deleted."""
    expression = parse_expression(step.filter_expression)
    sides = []
    for side in Side:
        condition = meaning.spark(expression, source.scope(side))
        prefix = side.value
        values = "".join(f", {prefix}{i}" for i in range(len(source.value)))
        sides.append(f"{prefix}_present AND coalesce({condition}, false) AS {prefix}_present{values}, {prefix}_ts")
    sql = f"SELECT {', '.join([*source.keys, *sides])} FROM ({source.sql})"
    return replace(source, sql=sql)
