"""EXPLAIN: the plan of a running query, or of a statement that is not run."""

from typing import assert_never

from holdfast.errors import NotSupported
from holdfast.explain.dot import dot
from holdfast.explain.graph import graph_of
from holdfast.explain.json import document
from holdfast.explain.svg import svg
from holdfast.explain.text import explain
from holdfast.names import QueryId
from holdfast.planner.plan import plan
from holdfast.planner.query import plan_select
from holdfast.runtime.plan.codec import decode, encode
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.sql.bind.ddl_kind import BoundPlan
from holdfast.sql.bind.statement import BoundStatement
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.statements import ExplainFormat


def explain_plan(encoded: bytes, format_: ExplainFormat) -> str:
    """Explain a stored plan in a format."""
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
    """Explain a statement without running it; its plan is encoded and decoded, as for execution."""
    match bound:
        case BoundSelect():
            found = _select(bound, text)
        case BoundRead():
            return _read(bound, format_)
        case _ if isinstance(bound, BoundPlan):
            found = plan(bound, text=text, number=0)
        case _:
            raise NotSupported(
                "EXPLAIN is only supported for queries", hint="Explain a SELECT or a CREATE … AS SELECT."
            )
    return explain_plan(encode(found), format_)


def _read(bound: BoundRead, format_: ExplainFormat) -> str:
    """A pull query has no steps: it is a single SQL statement of one engine."""
    if format_ is not ExplainFormat.TEXT:
        raise NotSupported(
            f"a pull query cannot be explained as {format_}",
            hint="Omit the format: a pull query is one SQL statement without steps to draw.",
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
