"""From bound statements to plans. Pure: the same statement and number give the same plan."""

from holdfast.names import QueryId
from holdfast.planner.query import plan_steps
from holdfast.runtime.plan.ddl import CreateStream, CreateTable, DdlCommand, DropSource
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.runtime.plan.sources import SchemaText
from holdfast.sql.bound import BoundCreateAs, BoundCreateSource, BoundDrop, Target
from holdfast.sql.statements import ObjectKind

Plannable = BoundCreateSource | BoundCreateAs | BoundDrop
"""The statements that become commands with a plan."""


def plan(bound: Plannable, *, text: str, number: int) -> Plan:
    """The plan of a statement; `text` is what the user wrote, `number` makes its query id unique."""
    match bound:
        case BoundCreateSource():
            return Plan(statement_text=text, ddl_command=_create(bound.target), query_plan=None)
        case BoundCreateAs():
            query = QueryPlan(
                sources=(bound.query.source.name,),
                sink=bound.target.name,
                physical_plan=plan_steps(bound.query, bound.target),
                query_id=query_id(bound.target, number),
                runtime_id=None,
            )
            return Plan(statement_text=text, ddl_command=_create(bound.target), query_plan=query)
        case BoundDrop():
            drop = DropSource(source_name=bound.target.name)
            return Plan(statement_text=text, ddl_command=drop, query_plan=None)


def query_id(target: Target, number: int) -> QueryId:
    """`CSAS_NAME_n` or `CTAS_NAME_n`."""
    return QueryId(f"C{target.kind[0]}AS_{target.name.upper()}_{number}")


def _create(target: Target) -> DdlCommand:
    create = CreateStream if target.kind is ObjectKind.STREAM else CreateTable
    return create(
        source_name=target.name,
        schema=SchemaText(str(target.schema)),
        timestamp_column=target.timestamp,
        topic_name=target.topic,
        formats=target.formats,
        window_info=None,
        or_replace=target.or_replace,
        is_source=target.read_only,
    )
