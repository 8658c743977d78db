"""A plan as a graph in the DOT language, for Graphviz and compatible tools."""

from collections.abc import Iterator

from holdfast.explain.card import Card, cards, printable
from holdfast.explain.graph import EdgeKind, Graph, GraphEdge, GraphNode, NodeKind
from holdfast.explain.style import LIGHT, family

SETTINGS = """\
  graph [rankdir=TB, labelloc=t, labeljust=l, fontname="Helvetica", fontsize=14, nodesep=0.5, ranksep=0.5];
  node [fontname="Courier", fontsize=10, style=filled, shape=box, margin="0.15,0.08"];
  edge [fontname="Helvetica", fontsize=9];"""


def dot(graph: Graph) -> str:
    """The graph as the text of a DOT file."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    shown = cards(graph)
    yield "digraph plan {"
    yield SETTINGS
    heading = [printable(text) for text in (graph.title, graph.subtitle) if text]
    yield f"  label={_quoted(*heading)};"
    for node in graph.nodes:
        yield f'  "{node.id}" [{_shape(node)}, label={_quoted(*_texts(shown[node.id]))}];'
    nodes = {node.id: node for node in graph.nodes}
    for edge in graph.edges:
        yield f'  "{edge.source}" -> "{edge.target}"{_settings(edge, nodes[edge.source])};'
    for node in graph.of(NodeKind.STATE):
        owner = graph.into(node.id, EdgeKind.HOLDS)[0]
        yield f'  {{ rank=same; "{owner}"; "{node.id}"; }}'
    yield "}"


def _texts(card: Card) -> list[str]:
    texts = [card.title, card.subtitle, *card.lines, *(row.text for row in card.rows), card.remainder]
    return [text for text in texts if text]


def _shape(node: GraphNode) -> str:
    match node.kind:
        case NodeKind.TOPIC:
            return f'shape=cds, margin="0.25,0.12", fillcolor="{LIGHT["topic"]}", color="{LIGHT["topic-frame"]}"'
        case NodeKind.STATE:
            return f'shape=cylinder, fillcolor="{LIGHT["state"]}", color="{LIGHT["state-frame"]}"'
        case _:
            return f'style="filled,rounded", fillcolor="{LIGHT[family(node)]}", color="{LIGHT["frame"]}"'


def _settings(edge: GraphEdge, source: GraphNode) -> str:
    if edge.kind is EdgeKind.HOLDS:
        return " [dir=both]"
    return ' [style=dashed, label="to their new key"]' if source.rekeys else ""


def _quoted(*lines: str) -> str:
    """A quoted label with left-aligned lines."""
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in lines]
    return '"' + "".join(f"{line}\\l" for line in escaped) + '"'
