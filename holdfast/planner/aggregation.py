"""The steps of a GROUP BY: prepare the columns it needs, group, aggregate, filter, project.

Columns that the aggregation needs keep their names; other arguments of aggregates become `KSQL_INTERNAL_COL_n`, where
n is their place among the prepared columns. Results are `KSQL_AGG_VARIABLE_n`, one for each call, in the order of the
select list and then of HAVING.
"""

from collections.abc import Iterable, Sequence

from holdfast.planner.texts import columns_text, context, expression_text, named_text
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression, NamedExpression
from holdfast.runtime.expressions.typing import type_of
from holdfast.runtime.functions.registry import is_aggregate
from holdfast.runtime.plan.formats import Formats
from holdfast.runtime.plan.steps import (
    Step,
    StreamAggregate,
    StreamGroupBy,
    StreamGroupByKey,
    StreamSelect,
    TableFilter,
    TableSelect,
)
from holdfast.sql.bound import BoundQuery
from holdfast.sql.formats import build_formats, internal_key_format
from holdfast.sql.relation import PSEUDO_COLUMNS
from holdfast.sql.walk import column_refs, rewrite, walk

INTERNAL_COLUMN = "KSQL_INTERNAL_COL_"
AGGREGATE_VARIABLE = "KSQL_AGG_VARIABLE_"


def plan_aggregation(source: Step, query: BoundQuery) -> Step:
    """The steps from the filtered stream to the projected table."""
    expressions = [column.expression for column in query.projection]
    results = [*expressions, query.having] if query.having is not None else expressions
    calls = [call for expression in results for call in _calls(expression)]
    required = _required(query)
    prepared = _prepared(required, calls)
    names = {named.expression: named.name for named in prepared}
    formats = _internal_formats(query)
    prepare = StreamSelect(
        properties=context("Aggregate/Prepare"),
        source=source,
        key_column_names=tuple(column.name for column in query.source.schema.key),
        selected_keys=None,
        select_expressions=tuple(map(named_text, prepared)),
    )
    aggregated: Step = StreamAggregate(
        properties=context("Aggregate/Aggregate"),
        source=_group(prepare, query, formats),
        internal_formats=formats,
        non_aggregate_columns=tuple(required),
        aggregation_functions=tuple(expression_text(_over_prepared(call, names)) for call in calls),
    )
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
        internal_formats=formats,
    )


def _group(prepare: Step, query: BoundQuery, formats: Formats) -> Step:
    properties = context("Aggregate/GroupBy")
    key = [ColumnRef(column.name) for column in query.source.schema.key]
    if len(key) == 1 and list(query.group_by) == key:
        return StreamGroupByKey(properties=properties, source=prepare, internal_formats=formats)
    return StreamGroupBy(
        properties=properties,
        source=prepare,
        internal_formats=formats,
        group_by_expressions=tuple(map(expression_text, query.group_by)),
    )


def _internal_formats(query: BoundQuery) -> Formats:
    columns = {column.name: column.type for column in query.source.schema.columns}
    scope = Scope.of(ScopeColumn(name, type_) for name, type_ in {**PSEUDO_COLUMNS, **columns}.items())
    types = [type_of(expression, scope) for expression in query.group_by]
    source = query.source.formats
    return build_formats(
        internal_key_format(source.key_format.format, types),
        source.value_format.format,
        key_columns=len(types),
    )


def _calls(expression: Expression) -> Iterable[Call]:
    return (node for node in walk(expression) if isinstance(node, Call) and is_aggregate(node.name))


def _required(query: BoundQuery) -> list[str]:
    """The source columns that the aggregation needs, in the order in which the query names them."""
    parts = [column.expression for column in query.projection]
    parts += [query.where] if query.where is not None else []
    parts += query.group_by
    parts += [query.having] if query.having is not None else []
    return list(dict.fromkeys(ref.name for part in parts for ref in column_refs(part)))


def _prepared(required: Sequence[str], calls: Sequence[Call]) -> list[NamedExpression]:
    prepared = [NamedExpression(name, ColumnRef(name)) for name in required]
    seen: set[Expression] = {named.expression for named in prepared}
    for argument in (argument for call in calls for argument in call.arguments):
        if argument not in seen:
            seen.add(argument)
            prepared.append(NamedExpression(f"{INTERNAL_COLUMN}{len(prepared)}", argument))
    return prepared


def _over_prepared(call: Call, names: dict[Expression, str]) -> Call:
    """The call over the prepared columns; arguments after the first that are constants stay as they are."""
    first, *rest = call.arguments
    others = [a if not any(column_refs(a)) else ColumnRef(names[a]) for a in rest]
    return Call(call.name, (ColumnRef(names[first]), *others))


def _with_variables(expression: Expression, variables: "Iterable[int]") -> Expression:
    """The expression with the next variable in place of each aggregate."""
    numbers = iter(variables)

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Call) and is_aggregate(node.name):
            return ColumnRef(f"{AGGREGATE_VARIABLE}{next(numbers)}")
        return None

    return rewrite(expression, change)
