"""The steps of a query, in the vocabulary and shape of ksqlDB's plans."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from holdfast.catalog.objects import Stream
from holdfast.planner.aggregation import plan_aggregation
from holdfast.planner.join import plan_join
from holdfast.planner.node import Node
from holdfast.planner.rekey import rekey
from holdfast.planner.source import plan_source
from holdfast.runtime.expressions.tree import ColumnRef, Expression, NamedExpression
from holdfast.runtime.plan.steps import (
    Step,
    StreamFilter,
    StreamFlatMap,
    StreamSelect,
    StreamSink,
    TableFilter,
    TableKeep,
    TableSelect,
    TableSink,
)
from holdfast.sql.bind.target import Target
from holdfast.sql.plan_text import columns_text, context, expression_text
from holdfast.sql.query.continuous import BoundQuery
from holdfast.sql.query.joins import BoundJoin
from holdfast.sql.query.projection import BoundColumn
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.statements import ObjectKind


def plan_steps(query: BoundQuery, target: Target) -> Step:
    """The steps from the sources to the target's topic, or to a materialized view, which has none."""
    if target.topic is None:
        return TableKeep(properties=context(target.name), source=plan_result(query))
    sink = StreamSink if target.kind is ObjectKind.STREAM else TableSink
    return sink(
        properties=context(target.name),
        source=plan_result(query),
        formats=target.formats,
        topic_name=target.topic,
        timestamp_column=target.timestamp,
    )


def plan_insert(query: BoundQuery, target: Stream) -> Step:
    """The steps from the sources' topics to that of an existing stream."""
    return StreamSink(
        properties=context(target.name),
        source=plan_result(query),
        formats=target.formats,
        topic_name=target.topic,
        timestamp_column=None,
    )


def plan_select(select: BoundSelect) -> Step:
    """The steps of a client's query, which has no sink. Rows keep the key of their source, selected or not."""
    source = select.relation
    node = _filter(plan_source(source), select.where)
    shown = {column.expression: column.name for column in reversed(select.columns)}
    keys = {key.name: shown.get(ColumnRef(key.name), key.name) for key in source.schema.key}
    named = {(name, ColumnRef(key)) for key, name in keys.items()}
    values = [column for column in select.columns if (column.name, column.expression) not in named]
    return _project(node, tuple(keys.values()), values)


def plan_result(query: BoundQuery) -> Step:
    """The steps from the sources to the rows of a query, without a sink."""
    node = plan_join(query.input) if isinstance(query.input, BoundJoin) else plan_source(query.input.object)
    node = _filter(node, query.where)
    if query.partition_by:
        node = rekey(node, query.partition_by, "PartitionBy")
    if query.table_functions:
        node = _flat_map(node, query)
    if query.aggregates:
        return plan_aggregation(node, query)
    return _project(node, query.keys, query.values)


def _filter(node: Node, where: Expression | None) -> Node:
    if where is None:
        return node
    filter_ = StreamFilter if node.stream else TableFilter
    step = filter_(properties=context("WhereFilter"), source=node.step, filter_expression=expression_text(where))
    return replace(node, step=step)


def _flat_map(node: Node, query: BoundQuery) -> Node:
    calls = tuple(map(expression_text, query.table_functions))
    return replace(node, step=StreamFlatMap(properties=context("FlatMap"), source=node.step, table_functions=calls))


def _project(node: Node, keys: Sequence[str], values: Iterable[BoundColumn]) -> Step:
    expressions = columns_text(NamedExpression(column.name, column.expression) for column in values)
    if node.stream:
        return StreamSelect(
            properties=context("Project"),
            source=node.step,
            key_column_names=tuple(keys),
            selected_keys=None,
            select_expressions=expressions,
        )
    return TableSelect(
        properties=context("Project"),
        source=node.step,
        key_column_names=tuple(keys),
        select_expressions=expressions,
        internal_formats=node.formats,
    )
