"""Lays out graphs that are not trees in rows: each node is below everything that it depends on."""

from collections import defaultdict
from collections.abc import Mapping

from holdfast.explain.graph import Graph
from holdfast.explain.layout import BELOW, BETWEEN, Box, GraphLayout, Line, Size


def lay_out_layers(graph: Graph, sizes: Mapping[str, Size]) -> GraphLayout:
    """The positions of all nodes, which are in dataflow order; rows are centered."""
    layers: dict[int, list[str]] = defaultdict(list)
    layer_of: dict[str, int] = {}
    for node in graph.nodes:
        above = (layer_of[source] + 1 for source in graph.into(node.id, *{e.kind for e in graph.edges}))
        layer_of[node.id] = max(above, default=0)
        layers[layer_of[node.id]].append(node.id)
    widths = {n: sum(sizes[id_].width for id_ in ids) + BETWEEN * (len(ids) - 1) for n, ids in layers.items()}
    width = max(widths.values(), default=0.0)
    boxes: dict[str, Box] = {}
    y = 0.0
    for number in sorted(layers):
        x = (width - widths[number]) / 2
        for id_ in layers[number]:
            boxes[id_] = Box(x, y, sizes[id_].width, sizes[id_].height)
            x += sizes[id_].width + BETWEEN
        y += max(sizes[id_].height for id_ in layers[number]) + BELOW
    lines = tuple(
        Line(edge, ((source.middle, source.bottom), (target.middle, target.y)))
        for edge in graph.edges
        for source, target in [(boxes[edge.source], boxes[edge.target])]
    )
    return GraphLayout(width, max(y - BELOW, 0.0), boxes, lines)
