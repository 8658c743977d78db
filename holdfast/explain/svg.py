"""A plan as a self-contained SVG picture: no external program, font or script.

Colours follow the viewer's light or dark mode.
"""

from collections.abc import Callable, Mapping
from unicodedata import east_asian_width
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from holdfast.explain.card import Card, CardRow, cards, printable
from holdfast.explain.graph import Graph, GraphNode, NodeKind
from holdfast.explain.layout import BELOW, Box, GraphLayout, Line, Size, lay_out
from holdfast.explain.style import STYLE, family

NAMESPACE = "http://www.w3.org/2000/svg"

MARGIN = 24.0
PADDING = 12.0
HEADER = 42.0
"""Height of the coloured part of a step, with its title."""
LINE = 17.0
CHARACTER = 7.3
"""The width of a character in the monospaced font of the details."""
TITLE_CHARACTER = 9.4
HEADING_CHARACTER = 12.2
"""Estimates that fit most text in the proportional fonts of titles and headings."""
GAP = 14.0
"""Gap between the columns of a table."""
CAP = 7.0
"""Half the height of a cylinder's lid."""
ROUND = 8.0
TITLE_HEIGHT = 60.0


def svg(graph: Graph, layout: Callable[[Graph, Mapping[str, Size]], GraphLayout] = lay_out) -> str:
    """The picture of a graph, as the text of an SVG file.

    `layout` positions the nodes; the default suits plans, which are trees.
    """
    shown = cards(graph)
    placed = layout(graph, {node.id: _size(node, shown[node.id]) for node in graph.nodes})
    heading = printable(graph.title)
    content_width = max(placed.width, _width(heading, HEADING_CHARACTER), _width(printable(graph.subtitle), CHARACTER))
    width, height = content_width + 2 * MARGIN, placed.height + TITLE_HEIGHT + 2 * MARGIN
    root = Element(
        "svg",
        {
            "xmlns": NAMESPACE,
            "class": "holdfast-plan",
            "role": "img",
            "width": _number(width),
            "height": _number(height),
            "viewBox": f"0 0 {_number(width)} {_number(height)}",
        },
    )
    SubElement(root, "title").text = heading
    SubElement(root, "desc").text = printable(graph.statement)
    SubElement(root, "style").text = STYLE
    _arrows(root)
    SubElement(root, "rect", {"class": "paper", "width": "100%", "height": "100%"})
    _text(root, MARGIN, MARGIN + 16, heading, "heading")
    _text(root, MARGIN, MARGIN + 36, printable(graph.subtitle), "muted")
    left = MARGIN + (content_width - placed.width) / 2
    drawing = SubElement(root, "g", {"transform": f"translate({_number(left)} {_number(MARGIN + TITLE_HEIGHT)})"})
    rekeys = {node.id for node in graph.nodes if node.rekeys}
    for line in placed.lines:
        _line(drawing, line, moved=line.edge.source in rekeys)
    for node in graph.nodes:
        _node(drawing, node, shown[node.id], placed.boxes[node.id])
    indent(root, " ")
    return tostring(root, encoding="unicode") + "\n"


# ---- sizes


def _size(node: GraphNode, card: Card) -> Size:
    title = max(_width(card.title, TITLE_CHARACTER), _width(card.subtitle, CHARACTER))
    lines = max((_width(line) for line in card.lines), default=0.0)
    match node.kind:
        case NodeKind.TOPIC:
            return Size(max(title, lines) + 2 * PADDING + 4 * CAP, HEADER + LINE * len(card.lines) + 6)
        case NodeKind.STATE:
            return Size(max(title + 2 * PADDING, 104.0), HEADER + 3 * CAP)
        case _:
            table = sum(_table_widths(card).values()) + 2 * GAP if card.rows else 0.0
            width = max(title, lines, table, _width(card.remainder), 150.0) + 2 * PADDING
            rows = len(card.lines) + len(card.rows) + bool(card.remainder)
            ruler = 7 if card.lines and card.rows else 0
            return Size(width, HEADER + (rows * LINE + 2 * PADDING - 6 + ruler if rows else 0))


def _table_widths(card: Card) -> dict[str, float]:
    return {
        "name": max((_width(row.name) for row in card.rows), default=0.0),
        "type": max((_width(row.type + (" KEY" if row.key else "")) for row in card.rows), default=0.0),
        "expression": max((_width(f"= {row.expression}") for row in card.rows if row.expression), default=-GAP),
    }


def _width(text: str, character: float = CHARACTER) -> float:
    return character * sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


# ---- nodes


def _node(parent: Element, node: GraphNode, card: Card, box: Box) -> None:
    group = SubElement(
        parent,
        "g",
        {
            "class": f"node {node.kind} {family(node)}",
            "data-node": node.id,
            "transform": f"translate({_number(box.x)} {_number(box.y)})",
        },
    )
    SubElement(group, "title").text = _tooltip(node)
    match node.kind:
        case NodeKind.TOPIC:
            _topic(group, card, box)
        case NodeKind.STATE:
            _state(group, card, box)
        case _:
            _step(group, card, box)


def _tooltip(node: GraphNode) -> str:
    """The tooltip of a node: all that is known about it."""
    lines = [node.title, node.name, *(f"{label}: {text}" for label, text in node.details)]
    lines += [
        f"{c.name} {c.type or ''}{' KEY' if c.key else ''}{f' = {c.expression}' if c.expression else ''}"
        for c in node.columns
    ]
    return "\n".join(filter(None, map(printable, lines)))


def _step(group: Element, card: Card, box: Box) -> None:
    width, height = box.width, box.height
    frame = {"width": _number(width), "height": _number(height), "rx": _number(ROUND)}
    SubElement(group, "rect", {"class": "box", **frame})
    SubElement(group, "path", {"class": "head", "d": _head(width, closed=height <= HEADER)})
    SubElement(group, "rect", {"class": "frame", **frame})
    _text(group, PADDING, 18, card.title, "title")
    _text(group, PADDING, 34, card.subtitle, "muted")
    y = HEADER + PADDING + 8
    for line in card.lines:
        _text(group, PADDING, y, line, "detail")
        y += LINE
    if card.lines and card.rows:
        ruler = {"class": "ruler", "x1": _number(PADDING), "x2": _number(width - PADDING)}
        SubElement(group, "line", {**ruler, "y1": _number(y - 8), "y2": _number(y - 8)})
        y += 7
    widths = _table_widths(card)
    for row in card.rows:
        _row(group, row, widths, y)
        y += LINE
    _text(group, PADDING, y, card.remainder, "muted")


def _head(width: float, *, closed: bool) -> str:
    """The outline of a step's coloured part; without a body below it, all corners are rounded."""
    corner = f"{ROUND:g} {ROUND:g} 0 0 1"
    top = f"M 0 {ROUND:g} a {corner} {ROUND:g} {-ROUND:g} H {_number(width - ROUND)} a {corner} {ROUND:g} {ROUND:g}"
    if not closed:
        return f"{top} V {HEADER:g} H 0 Z"
    return f"{top} V {HEADER - ROUND:g} a {corner} {-ROUND:g} {ROUND:g} H {ROUND:g} a {corner} {-ROUND:g} {-ROUND:g} Z"


def _row(group: Element, row: CardRow, widths: Mapping[str, float], y: float) -> None:
    _text(group, PADDING, y, row.name, "key" if row.key else "name")
    x = PADDING + widths["name"] + GAP
    _text(group, x, y, row.type, "type")
    if row.key:
        _text(group, x + _width(f"{row.type} " if row.type else ""), y, "KEY", "key")
    if row.expression:
        _text(group, x + widths["type"] + GAP, y, f"= {row.expression}", "expression")


def _topic(group: Element, card: Card, box: Box) -> None:
    """A pipe: a horizontal cylinder."""
    width, height = box.width, box.height
    radius = height / 2
    pipe = (
        f"M {CAP:g} 0 H {_number(width - CAP)} a {CAP:g} {_number(radius)} 0 0 1 0 {_number(height)} H {CAP:g} "
        f"a {CAP:g} {_number(radius)} 0 0 1 0 {_number(-height)} Z"
    )
    SubElement(group, "path", {"class": "box frame", "d": pipe})
    end = f"M {_number(width - CAP)} 0 a {CAP:g} {_number(radius)} 0 0 0 0 {_number(height)}"
    SubElement(group, "path", {"class": "frame", "d": end})
    x = PADDING + CAP
    _text(group, x, 20, card.title, "title")
    _text(group, x, 36, card.subtitle, "muted")
    for number, line in enumerate(card.lines):
        _text(group, x, 36 + LINE * (number + 1), line, "detail")


def _state(group: Element, card: Card, box: Box) -> None:
    """An upright cylinder."""
    width, height = box.width, box.height
    radius = _number(width / 2)
    can = (
        f"M 0 {CAP:g} a {radius} {CAP:g} 0 0 1 {_number(width)} 0 V {_number(height - CAP)} "
        f"a {radius} {CAP:g} 0 0 1 {_number(-width)} 0 Z"
    )
    SubElement(group, "path", {"class": "box frame", "d": can})
    lid = f"M 0 {CAP:g} a {radius} {CAP:g} 0 0 0 {_number(width)} 0"
    SubElement(group, "path", {"class": "frame", "d": lid})
    _text(group, width / 2, 2 * CAP + 17, card.title, "title middle")
    _text(group, width / 2, 2 * CAP + 33, card.subtitle, "muted middle")


# ---- lines


def _line(parent: Element, line: Line, *, moved: bool) -> None:
    edge = line.edge
    (x, y), *rest = line.points
    path = [f"M {_number(x)} {_number(y)}"]
    for next_x, next_y in rest:
        straight = next_y == y if line.sideways else next_x == x
        if straight:
            path.append(f"L {_number(next_x)} {_number(next_y)}")
        elif line.sideways:
            half = _number((x + next_x) / 2)
            path.append(f"C {half} {_number(y)} {half} {_number(next_y)} {_number(next_x)} {_number(next_y)}")
        else:
            half = _number((y + next_y) / 2)
            path.append(f"C {_number(x)} {half} {_number(next_x)} {half} {_number(next_x)} {_number(next_y)}")
        x, y = next_x, next_y
    attributes = {"class": f"edge {edge.kind}{' moved' if moved else ''}", "d": " ".join(path)}
    attributes |= {"data-from": edge.source, "data-to": edge.target, "marker-end": "url(#holdfast-arrow)"}
    if line.sideways:
        attributes["marker-start"] = "url(#holdfast-arrow-back)"
    SubElement(parent, "path", attributes)
    if moved:
        x, y = line.points[0]
        _text(parent, x + 10, y + BELOW / 2, "to their new key", "note")


def _arrows(root: Element) -> None:
    """Two arrowheads, because many SVG viewers do not support `auto-start-reverse`."""
    definitions = SubElement(root, "defs")
    size = {"viewBox": "0 0 8 8", "refY": "4", "markerWidth": "7", "markerHeight": "7", "orient": "auto"}
    for name, tip, at in (("arrow", "M 0 0 L 8 4 L 0 8 Z", "7"), ("arrow-back", "M 8 0 L 0 4 L 8 8 Z", "1")):
        marker = SubElement(definitions, "marker", {"id": f"holdfast-{name}", "refX": at, **size})
        SubElement(marker, "path", {"class": "tip", "d": tip})


def _text(parent: Element, x: float, y: float, text: str, class_: str) -> None:
    if text:
        SubElement(parent, "text", {"class": class_, "x": _number(x), "y": _number(y)}).text = text


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
