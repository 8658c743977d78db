"""The steps of a GROUP BY: prepare the columns it needs, group, aggregate, filter, project.

Columns that the aggregation needs keep their names; other arguments of aggregates become `KSQL_INTERNAL_COL_n`, where
n is their position among the prepared columns. Results are `KSQL_AGG_VARIABLE_n`, one for each call, in the order of
the select list and then of HAVING.
"""

from collections.abc import Iterable, Sequence

from holdfast.planner.node import Node
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression, NamedExpression
from holdfast.runtime.functions.registry import is_aggregate
from holdfast.runtime.plan.formats import FormatInfo
from holdfast.runtime.plan.steps import (
    ExpressionText,
    Step,
    StreamAggregate,
    StreamGroupBy,
    StreamGroupByKey,
    StreamSelect,
    StreamWindowedAggregate,
    TableAggregate,
    TableFilter,
    TableGroupBy,
    TableSelect,
)
from holdfast.sql.plan_text import columns_text, context, expression_text, named_text
from holdfast.sql.properties.formats import KAFKA, NO_PROPERTIES, NONE, build_formats
from holdfast.sql.query.continuous import BoundQuery
from holdfast.sql.query.relation import WINDOW_BOUNDS
from holdfast.sql.syntax.walk import column_refs, rewrite, walk

INTERNAL_COLUMN = "KSQL_INTERNAL_COL_"
AGGREGATE_VARIABLE = "KSQL_AGG_VARIABLE_"

Grouped = StreamGroupByKey | StreamGroupBy | TableGroupBy


def plan_aggregation(node: Node, query: BoundQuery) -> Step:
    """The steps from the filtered rows to the projected table."""
    expressions = [column.expression for column in query.projection]
    results = [*expressions, query.having] if query.having is not None else expressions
    calls = [call for expression in results for call in _calls(expression)]
    required = _required(query)
    prepared = _prepared(required, calls)
    names = {named.expression: named.name for named in prepared}
    grouped = _group(_prepare(node, prepared), node, query)
    functions = tuple(expression_text(_over_prepared(call, names)) for call in calls)
    aggregated = _aggregate(grouped, query, tuple(required), functions)
    variables = iter(range(len(calls)))
    selected = {
        column.name: NamedExpression(column.name, _with_variables(column.expression, variables))
        for column in query.projection
    }
    if query.having is not None:
        aggregated = TableFilter(
            properties=context("Aggregate/HavingFilter"),
            source=aggregated,
            filter_expression=expression_text(_with_variables(query.having, variables)),
        )
    return TableSelect(
        properties=context("Aggregate/Project"),
        source=aggregated,
        key_column_names=query.keys,
        select_expressions=columns_text(selected[column.name] for column in query.values),
        internal_formats=grouped.internal_formats,
    )


def _prepare(node: Node, prepared: Sequence[NamedExpression]) -> Step:
    properties, expressions = context("Aggregate/Prepare"), tuple(map(named_text, prepared))
    if node.stream:
        return StreamSelect(
            properties=properties,
            source=node.step,
            key_column_names=node.key_names,
            selected_keys=None,
            select_expressions=expressions,
        )
    return TableSelect(
        properties=properties,
        source=node.step,
        key_column_names=node.key_names,
        select_expressions=expressions,
        internal_formats=node.formats,
    )


def _group(prepared: Step, node: Node, query: BoundQuery) -> Grouped:
    """The grouped rows. A stream that already has the key is not repartitioned, unless it is windowed."""
    properties = context("Aggregate/GroupBy")
    if node.stream and node.window is None and node.keyed_by(query.group_by):
        return StreamGroupByKey(properties=properties, source=prepared, internal_formats=node.formats)
    key_format = node.grouped_format(query.group_by, _default_for(node.key_format))
    formats = build_formats(key_format, node.value_format, key_columns=len(query.group_by))
    group = StreamGroupBy if node.stream else TableGroupBy
    return group(
        properties=properties,
        source=prepared,
        internal_formats=formats,
        group_by_expressions=tuple(map(expression_text, query.group_by)),
    )


def _default_for(key_format: FormatInfo) -> FormatInfo:
    return FormatInfo(format=KAFKA, properties=NO_PROPERTIES) if key_format.format == NONE else key_format


def _aggregate(
    grouped: Grouped, query: BoundQuery, required: tuple[str, ...], functions: tuple[ExpressionText, ...]
) -> Step:
    properties, formats = context("Aggregate/Aggregate"), grouped.internal_formats
    if query.window is not None:
        return StreamWindowedAggregate(
            properties=properties,
            source=grouped,
            internal_formats=formats,
            non_aggregate_columns=required,
            aggregation_functions=functions,
            window_expression=query.window,
        )
    aggregate = TableAggregate if isinstance(grouped, TableGroupBy) else StreamAggregate
    return aggregate(
        properties=properties,
        source=grouped,
        internal_formats=formats,
        non_aggregate_columns=required,
        aggregation_functions=functions,
    )


def _calls(expression: Expression) -> Iterable[Call]:
    return (node for node in walk(expression) if isinstance(node, Call) and is_aggregate(node.name))


def _required(query: BoundQuery) -> list[str]:
    """The source columns that the aggregation needs, in the order in which the query names them."""
    parts = [column.expression for column in query.projection]
    parts += [query.where] if query.where is not None else []
    parts += query.group_by
    parts += [query.having] if query.having is not None else []
    names = dict.fromkeys(ref.name for part in parts for ref in column_refs(part))
    return [name for name in names if query.window is None or name not in WINDOW_BOUNDS]


def _prepared(required: Sequence[str], calls: Sequence[Call]) -> list[NamedExpression]:
    prepared = [NamedExpression(name, ColumnRef(name)) for name in required]
    seen: set[Expression] = {named.expression for named in prepared}
    for argument in (argument for call in calls for argument in call.arguments):
        if argument not in seen:
            seen.add(argument)
            prepared.append(NamedExpression(f"{INTERNAL_COLUMN}{len(prepared)}", argument))
    return prepared


def _over_prepared(call: Call, names: dict[Expression, str]) -> Call:
    """The call over the prepared columns; constant arguments after the first stay unchanged."""
    first, *rest = call.arguments
    others = [a if not any(column_refs(a)) else ColumnRef(names[a]) for a in rest]
    return Call(call.name, (ColumnRef(names[first]), *others))


def _with_variables(expression: Expression, variables: "Iterable[int]") -> Expression:
    """The expression with each aggregate replaced by the next variable."""
    numbers = iter(variables)

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Call) and is_aggregate(node.name):
            return ColumnRef(f"{AGGREGATE_VARIABLE}{next(numbers)}")
        return None

    return rewrite(expression, change)
