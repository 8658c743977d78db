"""The positions of a graph's nodes in a picture.

The steps of a plan are a tree, so this needs no general graph layout: data flows down, each step is centered below its
inputs, with its state beside it. The space above a source step is free up to the top, where the topics are;
no line crosses a node.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.explain.graph import EdgeKind, Graph, GraphEdge, GraphNode, NodeKind

BESIDE = 40.0
"""Gap between a step and its state."""
BETWEEN = 36.0
"""Gap between two nodes side by side."""
BELOW = 42.0
"""Gap between two nodes one above the other, for the line that connects them."""
STACKED = 14.0
"""Gap between two states of one step."""
CORNER = 16.0
"""Minimum distance of a line from a corner."""


@dataclass(frozen=True, slots=True)
class Size:
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Box:
    """A node's position and size, from its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def centre(self) -> float:
        return self.y + self.height / 2

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height


Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """The path of an edge through its points; it leaves and enters nodes downwards, or `sideways`."""

    edge: GraphEdge
    points: tuple[Point, ...]
    sideways: bool = False


@dataclass(frozen=True, slots=True)
class GraphLayout:
    width: float
    height: float
    boxes: Mapping[str, Box]
    lines: tuple[Line, ...]


def lay_out(graph: Graph, sizes: Mapping[str, Size]) -> GraphLayout:
    """The positions of all nodes; the picture's upper left corner is (0, 0)."""
    builder = _LayoutBuilder(graph, sizes)
    trunk = [node for node in graph.nodes if node.kind in (NodeKind.STEP, NodeKind.COMMAND)]
    if trunk:
        builder.place(trunk[-1].id)
    return builder.layout()


@dataclass(slots=True)
class _Tree:
    """A step with all nodes above it. Positions are relative: x from the left edge, y upwards from the bottom edge."""

    width: float
    height: float
    anchor: float
    positions: dict[str, Point] = field(default_factory=dict)

    def include(self, other: "_Tree", x: float, y: float) -> None:
        for id_, (left, low) in other.positions.items():
            self.positions[id_] = (left + x, low + y)


@dataclass(slots=True)
class _LayoutBuilder:
    graph: Graph
    sizes: Mapping[str, Size]
    boxes: dict[str, Box] = field(default_factory=dict)
    blocks: dict[str, float] = field(default_factory=dict)
    """The height of a step together with the nodes beside it."""
    aside: set[str] = field(default_factory=set)
    """The nodes beside their step."""

    def place(self, root: str) -> None:
        written = self.graph.out_of(root, EdgeKind.WRITES)
        tree = self._tree(root, self.graph.out_of(root, EdgeKind.HOLDS))
        topics = [node.id for node in self.graph.nodes if self._is_read(node)]
        top = max((self.sizes[id_].height for id_ in topics), default=-BELOW) + BELOW
        for id_, (x, low) in tree.positions.items():
            size = self.sizes[id_]
            self.boxes[id_] = Box(x, top + tree.height - low - size.height, size.width, size.height)
        self._place_topics(topics, top - BELOW)
        y = top + tree.height + BELOW
        for topic in written:
            size = self.sizes[topic]
            self.boxes[topic] = Box(self.boxes[root].middle - size.width / 2, y, size.width, size.height)
            y += size.height + STACKED

    def layout(self) -> GraphLayout:
        left = min((box.x for box in self.boxes.values()), default=0.0)
        moved = {id_: Box(box.x - left, box.y, box.width, box.height) for id_, box in self.boxes.items()}
        self.boxes = moved
        width = max((box.right for box in moved.values()), default=0.0)
        height = max((box.bottom for box in moved.values()), default=0.0)
        return GraphLayout(width, height, moved, tuple(map(self._line, self.graph.edges)))

    def _is_read(self, node: GraphNode) -> bool:
        return node.kind is NodeKind.TOPIC and bool(self.graph.out_of(node.id, EdgeKind.READS))

    def _tree(self, step: str, beside: Sequence[str]) -> _Tree:
        """`beside` are the nodes to the right of the step."""
        size = self.sizes[step]
        inputs = [self._tree(source, self._beside(source)) for source in self.graph.into(step, EdgeKind.ROWS)]
        stack = sum(self.sizes[id_].height for id_ in beside) + STACKED * (len(beside) - 1) if beside else 0.0
        height = self.blocks[step] = max(size.height, stack)
        self.aside.update(beside)
        result = _Tree(0.0, height, 0.0)
        x = 0.0
        anchors: list[float] = []
        for tree in inputs:
            result.include(tree, x, height + BELOW)
            anchors.append(x + tree.anchor)
            x += tree.width + BETWEEN
        above = x - BETWEEN if inputs else 0.0
        if inputs:
            result.height = height + BELOW + max(tree.height for tree in inputs)
        middle = (anchors[0] + anchors[-1]) / 2 if anchors else 0.0
        topics = [self.sizes[id_].width for id_ in self.graph.into(step, EdgeKind.READS)]
        left = middle - max([size.width, *topics]) / 2
        end = middle + max([size.width, *topics]) / 2
        result.positions[step] = (middle - size.width / 2, (height - size.height) / 2)
        low = (height + stack) / 2
        for id_ in beside:
            low -= self.sizes[id_].height
            result.positions[id_] = (middle + size.width / 2 + BESIDE, low)
            end = max(end, middle + size.width / 2 + BESIDE + self.sizes[id_].width)
            low -= STACKED
        shift = max(0.0, -left)
        result.positions = {id_: (x + shift, y) for id_, (x, y) in result.positions.items()}
        result.anchor = middle + shift
        result.width = max(above, end) + shift
        return result

    def _beside(self, step: str) -> list[str]:
        return self.graph.out_of(step, EdgeKind.HOLDS, EdgeKind.WRITES)

    def _place_topics(self, topics: Iterable[str], bottom: float) -> None:
        """Center each topic above its readers, or as close to the right of that as space allows."""

        def preferred(topic: str) -> float:
            readers = [self.boxes[id_].middle for id_ in self.graph.out_of(topic, EdgeKind.READS)]
            return sum(readers) / len(readers) - self.sizes[topic].width / 2

        free = float("-inf")
        for topic in sorted(topics, key=preferred):
            size = self.sizes[topic]
            x = max(preferred(topic), free)
            self.boxes[topic] = Box(x, bottom - size.height, size.width, size.height)
            free = x + size.width + BETWEEN

    def _line(self, edge: GraphEdge) -> Line:
        source, target = self.boxes[edge.source], self.boxes[edge.target]
        if edge.target in self.aside:
            y = min(max(target.centre, source.y + CORNER), source.bottom - CORNER)
            return Line(edge, ((source.right, y), (target.x, target.centre)), sideways=True)
        inputs = self.graph.into(edge.target, edge.kind)
        share = (inputs.index(edge.source) + 1) / (len(inputs) + 1)
        end = target.x + target.width * share
        turn = source.bottom if edge.kind is EdgeKind.READS else self._top(edge.target) - BELOW
        points = ((source.middle, source.bottom), (source.middle, turn), (end, turn + BELOW), (end, target.y))
        return Line(edge, tuple(dict.fromkeys(points)))

    def _top(self, id_: str) -> float:
        """The upper edge of a node and of the nodes beside it."""
        box = self.boxes[id_]
        return box.centre - self.blocks.get(id_, box.height) / 2
