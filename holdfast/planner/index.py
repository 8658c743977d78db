"""The plan of an index: the rows of its object, or of the query of its view, arranged by expressions over them."""

from holdfast.names import ObjectName, QueryId
from holdfast.planner.query import plan_result
from holdfast.planner.source import plan_source
from holdfast.planner.texts import context, expression_text
from holdfast.runtime.plan.ddl import CreateIndex
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.runtime.plan.sources import SchemaText
from holdfast.runtime.plan.steps import TableIndex
from holdfast.sql.bound_index import BoundCreateIndex


def plan_index(bound: BoundCreateIndex, *, text: str, number: int) -> Plan:
    expressions = tuple(map(expression_text, bound.expressions))
    query = bound.query
    return Plan(
        statement_text=text,
        ddl_command=CreateIndex(
            index_name=bound.name,
            source_name=bound.on.name,
            schema=SchemaText(str(bound.on.schema)),
            window_info=bound.on.window,
            expressions=expressions,
        ),
        query_plan=QueryPlan(
            sources=(bound.on.name,) if query is None else tuple(sorted(s.object.name for s in query.sources)),
            sink=bound.name,
            physical_plan=TableIndex(
                properties=context(bound.name),
                source=plan_source(bound.on).step if query is None else plan_result(query),
                index_expressions=expressions,
            ),
            query_id=index_query(bound.name, number),
            runtime_id=None,
        ),
    )


def index_query(name: ObjectName, number: int) -> QueryId:
    """The id of the query that keeps an index: `INDEX_NAME_n`."""
    return QueryId(f"INDEX_{name.upper()}_{number}")
