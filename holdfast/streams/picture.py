"""The picture of a topology: its topics, objects and stores."""

from collections.abc import Iterator, Sequence

from holdfast.explain.columns import GraphColumn
from holdfast.explain.graph import EdgeKind, Graph, GraphEdge, GraphNode, NodeKind
from holdfast.explain.layers import lay_out_layers
from holdfast.explain.svg import svg
from holdfast.sql.syntax.statements import ObjectKind
from holdfast.streams.description import store_kind
from holdfast.streams.nodes import TopicNode, TopologyNode


def draw(application: str, nodes: Sequence[TopologyNode]) -> str:
    """A drawing of the objects, as SVG."""
    graph = Graph(f"Application {application}", f"{len(nodes)} objects", "\n".join(n.statement.text for n in nodes))
    for node in nodes:
        for added in _nodes(node):
            if all(each.id != added.id for each in graph.nodes):
                graph.nodes.append(added)
        graph.edges += _edges(node)
    return svg(graph, lay_out_layers)


def _nodes(node: TopologyNode) -> Iterator[GraphNode]:
    """An object, with its topic before it or after it, and its store."""
    topic = _topic(node)
    if topic is not None and isinstance(node, TopicNode):
        yield topic
    columns = tuple(GraphColumn(name, type_, key=True) for name, type_ in node.key)
    columns += tuple(GraphColumn(name, type_) for name, type_ in node.values)
    title, details = node.operation.capitalize(), (("Kind", node.kind.lower()),)
    yield GraphNode(id=node.name, kind=NodeKind.STEP, title=title, name=node.name, details=details, columns=columns)
    if topic is not None and not isinstance(node, TopicNode):
        yield topic
    if node.kind is ObjectKind.TABLE:
        of = (("Of", node.name),)
        yield GraphNode(
            id=f"{node.name}/store", kind=NodeKind.STATE, title=store_kind(node), name=node.name, details=of
        )


def _edges(node: TopologyNode) -> Iterator[GraphEdge]:
    if isinstance(node, TopicNode):
        yield GraphEdge(f"topic/{node.reads}", node.name, EdgeKind.READS)
    else:
        yield from (GraphEdge(each.name, node.name, EdgeKind.ROWS) for each in node.inputs)
        if node.topic is not None:
            yield GraphEdge(node.name, f"topic/{node.topic}", EdgeKind.WRITES)
    if node.kind is ObjectKind.TABLE:
        yield GraphEdge(node.name, f"{node.name}/store", EdgeKind.HOLDS)


def _topic(node: TopologyNode) -> GraphNode | None:
    if node.topic is None:
        return None
    formats = (("Formats", f"{node.key_format.name} keys, {node.value_format.name} values"),)
    return GraphNode(id=f"topic/{node.topic}", kind=NodeKind.TOPIC, title=node.topic, name=node.topic, details=formats)
