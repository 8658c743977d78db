"""EXPLAIN: the plan of a query that runs, or of a statement that need not, for people and programs."""

from typing import assert_never

from holdfast.errors import NotSupported
from holdfast.names import QueryId
from holdfast.planner.plan import Plannable, plan
from holdfast.planner.query import plan_select
from holdfast.runtime.graph.document import document
from holdfast.runtime.graph.dot import dot
from holdfast.runtime.graph.graph import graph_of
from holdfast.runtime.graph.svg import svg
from holdfast.runtime.plan.codec import decode, encode
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.runtime.plan.explain import explain
from holdfast.sql.bound import BoundSelect, BoundStatement
from holdfast.sql.bound_read import BoundRead
from holdfast.sql.statements import ExplainFormat


def explain_plan(encoded: bytes, format_: ExplainFormat) -> str:
    """A stored plan in a format."""
    decoded = decode(encoded)
    match format_:
        case ExplainFormat.TEXT:
            return explain(decoded)
        case ExplainFormat.JSON:
            return document(decoded)
        case ExplainFormat.DOT:
            return dot(graph_of(decoded))
        case ExplainFormat.SVG:
            return svg(graph_of(decoded))
        case _:
            assert_never(format_)


def explain_statement(bound: BoundStatement, text: str, format_: ExplainFormat) -> str:
    """The plan that a statement would have, in a format; through its stored form, as it would run."""
    match bound:
        case BoundSelect():
            found = _select(bound, text)
        case BoundRead():
            return _read(bound, format_)
        case _ if isinstance(bound, Plannable):
            found = plan(bound, text=text, number=0)
        case _:
            raise NotSupported("EXPLAIN is for queries", hint="Explain a SELECT or a CREATE … AS SELECT.")
    return explain_plan(encode(found), format_)


def _read(bound: BoundRead, format_: ExplainFormat) -> str:
    """A query that is computed where it is read has no steps: it is one statement of an engine."""
    if format_ is not ExplainFormat.TEXT:
        raise NotSupported(
            f"a query that reads cannot be explained as {format_}",
            hint="Leave the format out; it has one statement, and no steps to draw.",
        )
    tables = "".join(f"\n   [ {name} ] | Table: {table.name}" for name, table in bound.relations)
    return f" > [ READ ] | Engine: {bound.dialect.value}{tables}\n   [ SQL ] | {bound.sql}\n"


def _select(bound: BoundSelect, text: str) -> Plan:
    """The plan of a client's query: it is not stored, and has no sink."""
    query = QueryPlan(
        sources=(bound.relation.name,),
        sink=None,
        physical_plan=plan_select(bound),
        query_id=QueryId(f"{bound.kind}_{bound.relation.name}"),
        runtime_id=None,
    )
    return Plan(statement_text=text, ddl_command=None, query_plan=query)
