"""The query plan of an index: the rows of its object, or of its view's query, arranged by the index expressions."""

from holdfast.names import ObjectName, QueryId
from holdfast.planner.query import plan_result
from holdfast.planner.source import plan_source
from holdfast.runtime.plan.document import QueryPlan
from holdfast.runtime.plan.steps import TableIndex
from holdfast.sql.bind.index import BoundCreateIndex
from holdfast.sql.plan_text import context, expression_text


def plan_index(bound: BoundCreateIndex, number: int) -> QueryPlan:
    query = bound.query
    return QueryPlan(
        sources=(bound.on.name,) if query is None else tuple(sorted(s.object.name for s in query.sources)),
        sink=bound.name,
        physical_plan=TableIndex(
            properties=context(bound.name),
            source=plan_source(bound.on).step if query is None else plan_result(query),
            index_expressions=tuple(map(expression_text, bound.expressions)),
        ),
        query_id=index_query(bound.name, number),
        runtime_id=None,
    )


def index_query(name: ObjectName, number: int) -> QueryId:
    """The id of the query that maintains an index: `INDEX_NAME_n`."""
    return QueryId(f"INDEX_{name.upper()}_{number}")
