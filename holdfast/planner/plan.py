"""From bound statements to plans. Pure: the same statement and number give the same plan."""

from holdfast.names import ObjectName, QueryId
from holdfast.planner.index import plan_index
from holdfast.planner.query import plan_insert, plan_steps
from holdfast.planner.upgrade import check_upgrade
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.runtime.plan.steps import Step
from holdfast.sql.bind.create_as import BoundCreateAs
from holdfast.sql.bind.ddl import ddl_kind
from holdfast.sql.bind.ddl_kind import BoundPlan
from holdfast.sql.bind.index import BoundCreateIndex
from holdfast.sql.bind.insert_select import BoundInsertSelect
from holdfast.sql.bind.target import Target
from holdfast.sql.query.continuous import BoundQuery


def plan(bound: BoundPlan, *, text: str, number: int) -> Plan:
    """The plan of a statement; `text` is what the user wrote, `number` makes its query id unique."""
    command = ddl_kind(bound).command
    assert command is not None
    return Plan(statement_text=text, ddl_command=command(bound, text), query_plan=_query_plan(bound, number))


def _query_plan(bound: BoundPlan, number: int) -> QueryPlan | None:
    match bound:
        case BoundCreateAs(target=target, query=query, replaces=replaces):
            id_ = replaces.id if replaces else query_id(target, number)
            planned = _query(query, target.name, plan_steps(query, target), id_)
            if replaces is not None and (before := decode(replaces.plan).query) is not None:
                check_upgrade(before, planned, bound.position)
            return planned
        case BoundInsertSelect(target=target, query=query):
            id_ = QueryId(bound.query_id or f"INSERTQUERY_{number}")
            return _query(query, target.name, plan_insert(query, target), id_)
        case BoundCreateIndex():
            return plan_index(bound, number)
        case _:
            return None


def _query(query: BoundQuery, sink: ObjectName, steps: Step, id_: QueryId) -> QueryPlan:
    return QueryPlan(
        sources=tuple(sorted(source.object.name for source in query.sources)),
        sink=sink,
        physical_plan=steps,
        query_id=id_,
        runtime_id=None,
    )


def query_id(target: Target, number: int) -> QueryId:
    """`CSAS_NAME_n`, `CTAS_NAME_n` or `CMVAS_NAME_n`."""
    initials = "".join(word[0] for word in target.kind.split())
    return QueryId(f"C{initials}AS_{target.name.upper()}_{number}")
