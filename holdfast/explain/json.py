"""A plan as JSON for programs: the stored document and its graph."""

from holdfast.explain.columns import Columns
from holdfast.explain.graph import EdgeKind, Graph, GraphNode, NodeKind, graph_of
from holdfast.runtime.plan import json_text
from holdfast.runtime.plan.codec import encode
from holdfast.runtime.plan.document import Plan
from holdfast.runtime.plan.json_text import JsonValue


def document(plan: Plan) -> str:
    """`{"plan": …, "graph": …}`, indented; `plan` is what the command topic contains."""
    graph = graph_of(plan)
    return json_text.indented({"plan": json_text.read(encode(plan)), "graph": _graph(graph, plan)}) + "\n"


def _graph(graph: Graph, plan: Plan) -> dict[str, JsonValue]:
    return {
        "title": graph.title,
        "queryId": plan.query.query_id if plan.query is not None else None,
        "command": next((_command(node, graph) for node in graph.of(NodeKind.COMMAND)), None),
        "steps": [_step(node, graph) for node in graph.of(NodeKind.STEP)],
        "topics": [_topic(node, graph) for node in graph.of(NodeKind.TOPIC)],
        "state": [_state(node, graph) for node in graph.of(NodeKind.STATE)],
    }


def _command(node: GraphNode, graph: Graph) -> JsonValue:
    return {
        "id": node.id,
        "title": node.title,
        "topics": _ids(graph.into(node.id, EdgeKind.READS)),
        "state": _ids(graph.out_of(node.id, EdgeKind.HOLDS)),
        "schema": _schema(node.columns),
    }


def _step(node: GraphNode, graph: Graph) -> JsonValue:
    assert node.step is not None
    return {
        "id": node.id,
        "type": node.step.TAG,
        "title": node.title,
        "context": node.name,
        "inputs": _ids(graph.into(node.id, EdgeKind.ROWS)),
        "reads": _ids(graph.into(node.id, EdgeKind.READS)),
        "writes": _ids(graph.out_of(node.id, EdgeKind.WRITES)),
        "state": _ids(graph.out_of(node.id, EdgeKind.HOLDS)),
        "rekeys": node.rekeys,
        "details": dict(node.details),
        "schema": _schema(node.columns),
    }


def _topic(node: GraphNode, graph: Graph) -> JsonValue:
    return {
        "id": node.id,
        "name": node.name,
        "formats": dict(node.details)["Formats"],
        "readBy": _ids(graph.out_of(node.id, EdgeKind.READS)),
        "writtenBy": _ids(graph.into(node.id, EdgeKind.WRITES)),
    }


def _state(node: GraphNode, graph: Graph) -> JsonValue:
    return {
        "id": node.id,
        "name": node.name,
        "title": node.title,
        "keptBy": _ids(graph.into(node.id, EdgeKind.HOLDS)),
    }


def _schema(columns: Columns) -> JsonValue:
    """The columns, key columns first; a type that this release cannot determine is null."""
    return [
        {
            "name": column.name,
            "type": None if column.type is None else str(column.type),
            "key": column.key,
            "expression": column.expression,
        }
        for column in columns
    ]


def _ids(ids: list[str]) -> list[JsonValue]:
    return [*ids]
