"""Pictures of plans: well-formed, complete, and with nothing in the way of anything."""

import json
import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from runtime.plan.made_up import PLANS

from holdfast.explain.card import MAX_COLUMNS, MAX_LINE_LENGTH, cards
from holdfast.explain.dot import dot
from holdfast.explain.graph import EdgeKind, Graph, NodeKind, graph_of
from holdfast.explain.json import document
from holdfast.explain.layout import Box, GraphLayout, Line, Size, lay_out
from holdfast.explain.svg import svg
from holdfast.runtime.plan.codec import decode, encode
from holdfast.runtime.plan.document import Plan

from .plans import FOLDER, files, ours, plan_of, stored

SVG = "{http://www.w3.org/2000/svg}"
ALL = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
MOVE = re.compile(r"translate\((\S+) (\S+)\)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def check_layout(graph: Graph, layout: GraphLayout) -> None:
    """No node covers another, none sticks out, and no line runs through a node that it does not join."""
    assert set(layout.boxes) == {node.id for node in graph.nodes}
    for box in layout.boxes.values():
        assert box.x >= 0
        assert box.y >= 0
        assert box.right <= layout.width
        assert box.bottom <= layout.height
    for (a, first), (b, second) in combinations(layout.boxes.items(), 2):
        assert not overlap(first, second), (a, b)
    assert [line.edge for line in layout.lines] == graph.edges
    for line in layout.lines:
        for id_, box in layout.boxes.items():
            if id_ not in (line.edge.source, line.edge.target):
                assert not any(overlap(box, part) for part in parts(line)), (line.edge, id_)


def overlap(a: Box, b: Box) -> bool:
    return a.x < b.right and b.x < a.right and a.y < b.bottom and b.y < a.bottom


def parts(line: Line) -> list[Box]:
    """Boxes that hold the line: each curve between two points stays between them."""
    found = []
    for (x1, y1), (x2, y2) in zip(line.points, line.points[1:], strict=False):
        found.append(Box(min(x1, x2), min(y1, y2), abs(x2 - x1) or 0.5, abs(y2 - y1) or 0.5))
    return found


def check_svg(graph: Graph, text: str) -> None:
    """The file has every node and edge once, each node in a place of its own, and all inside the picture."""
    root = ElementTree.fromstring(text)
    nodes = {group.get("data-node"): group for group in root.iter(f"{SVG}g") if group.get("data-node")}
    assert set(nodes) == {node.id for node in graph.nodes}
    drawn = [(path.get("data-from"), path.get("data-to")) for path in root.iter(f"{SVG}path") if path.get("data-from")]
    assert drawn == [(edge.source, edge.target) for edge in graph.edges]
    _, _, width, height = map(float, str(root.get("viewBox")).split())
    (offset,) = [group for group in root.iter(f"{SVG}g") if not group.get("data-node")]
    left, top = moved(offset)
    for node in graph.nodes:
        group = nodes[node.id]
        x, y = moved(group)
        texts = list(group.iter(f"{SVG}text"))
        assert texts or not node.title.strip()
        for found in texts:
            assert 0 <= x + left + float(str(found.get("x"))) <= width
            assert 0 <= y + top + float(str(found.get("y"))) <= height


def moved(group: ElementTree.Element) -> tuple[float, float]:
    found = MOVE.fullmatch(str(group.get("transform")))
    assert found
    return float(found[1]), float(found[2])


def check_dot(graph: Graph, text: str) -> None:
    """Every node and edge has its line, and every quoted text ends."""
    lines = text.splitlines()
    assert (lines[0], lines[-1]) == ("digraph plan {", "}")
    assert sum(" -> " in re.sub(r'label="(?:[^"\\]|\\.)*"', "", line) for line in lines) == len(graph.edges)
    for node in graph.nodes:
        (line,) = [line for line in lines if line.startswith(f'  "{node.id}" [')]
        assert re.fullmatch(r'  "[\w-]+" \[.*, label="(?:[^"\\]|\\.)*"\];', line)
    for edge in graph.edges:
        assert any(line.startswith(f'  "{edge.source}" -> "{edge.target}"') for line in lines)


def check_document(graph: Graph, plan: Plan, text: str) -> None:
    """It has the plan as it is stored, and names only nodes that it has."""
    read = json.loads(text)
    assert read["plan"] == json.loads(encode(plan))
    steps, topics, states = (read["graph"][name] for name in ("steps", "topics", "state"))
    command = [read["graph"]["command"]] if read["graph"]["command"] else []
    assert {node["id"] for node in (*steps, *topics, *states, *command)} == {node.id for node in graph.nodes}
    joined = [(source, each["id"]) for each in steps for source in (*each["reads"], *each["inputs"])]
    joined += [(each["id"], target) for each in steps for target in (*each["writes"], *each["state"])]
    joined += [(source, each["id"]) for each in command for source in each["topics"]]
    joined += [(each["id"], target) for each in command for target in each["state"]]
    assert sorted(joined) == sorted((edge.source, edge.target) for edge in graph.edges)


def check(plan: Plan) -> None:
    graph = graph_of(plan)
    check_svg(graph, svg(graph))
    check_dot(graph, dot(graph))
    check_document(graph, plan, document(plan))
    for card in cards(graph).values():
        assert len(card.rows) <= MAX_COLUMNS
        assert all(len(line) <= MAX_LINE_LENGTH for line in card.lines)


def sized(graph: Graph, widths: list[float]) -> dict[str, Size]:
    return {node.id: Size(widths[i % len(widths)], widths[-1 - i % len(widths)]) for i, node in enumerate(graph.nodes)}


@pytest.mark.parametrize("name", ours())
def test_our_own_plans(name: str):
    check(ours()[name])


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no conformance data in {FOLDER}")
@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_plans_of_ksqldb(file: Path):
    for number, (_, plan) in enumerate(stored(file)):
        graph = graph_of(plan)
        check_layout(graph, lay_out(graph, sized(graph, [120 + number, 60, 300, 40])))
        if number < 4:
            check(plan)


@ALL
@given(PLANS)
def test_plans_that_are_made_up(plan: Plan):
    """Also texts that XML and DOT could trip over: quotes, brackets, control characters."""
    plan = decode(encode(plan))
    check(plan)
    graph = graph_of(plan)
    check_layout(graph, lay_out(graph, sized(graph, [210, 64, 80, 130, 55])))


def test_the_picture_that_is_drawn_is_the_one_that_was_checked():
    """The places in the file are those of a layout of the sizes that the texts need."""
    seen: list[GraphLayout] = []

    def spy(graph: Graph, sizes: Mapping[str, Size]) -> GraphLayout:
        seen.append(lay_out(graph, sizes))
        return seen[-1]

    for plan in ours().values():
        graph = graph_of(plan)
        text = svg(graph, spy)
        check_layout(graph, seen[-1])
        for id_, box in seen[-1].boxes.items():
            assert (
                f'data-node="{id_}" transform="translate({box.x:.1f} {box.y:.1f})"'.replace(".0 ", " ").replace(
                    ".0)", ")"
                )
                in text
            )


def test_a_picture_says_what_a_step_does():
    text = svg(graph_of(ours()["LARGE"]))
    root = ElementTree.fromstring(text)
    words = [found.text for found in root.iter(f"{SVG}text")]
    assert words[:2] == ["Create Stream LARGE on topic LARGE", "Query CSAS_LARGE_2"]
    assert "Filter: (AMOUNT > 100)" in words
    assert "= UCASE(CITY)" in words
    assert words.count("topic") == 2
    description = root.find(f"{SVG}desc")
    assert description is not None
    assert str(description.text).startswith("CREATE STREAM large AS SELECT")


def test_a_picture_has_colours_for_light_and_dark():
    style = ElementTree.fromstring(svg(graph_of(ours()["LARGE"]))).find(f"{SVG}style")
    assert style is not None
    light, dark = str(style.text).split("@media (prefers-color-scheme: dark)")
    coloured = re.compile(r"(\.holdfast-plan [^{]*) \{ [^}]*#")
    assert set(coloured.findall(light)) == set(coloured.findall(dark))


def test_long_lists_and_texts_are_cut_and_the_rest_is_counted():
    wide = ", ".join(f"c{i} STRING" for i in range(40))

    graph = graph_of(plan_of(f"CREATE STREAM wide ({wide}) WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', PARTITIONS=1);"))
    card = cards(graph)["command"]
    assert (len(card.rows), card.remainder) == (MAX_COLUMNS - 1, "… and 29 more")
    assert "C39 STRING" in svg(graph), "what is cut is in the tip"


def test_states_and_topics_of_a_document():
    read = json.loads(document(ours()["PER_CITY"]))["graph"]
    aggregate = next(each for each in read["steps"] if each["type"] == "streamAggregateV1")
    assert aggregate["schema"][-2:] == [
        {"name": "KSQL_AGG_VARIABLE_1", "type": "DOUBLE", "key": False, "expression": "SUM(AMOUNT)"},
        {"name": "KSQL_AGG_VARIABLE_2", "type": "BIGINT", "key": False, "expression": "COUNT(ROWTIME)"},
    ]
    assert [(each["name"], each["keptBy"]) for each in read["state"]] == [
        ("CTAS_PER_CITY_3/Aggregate/Aggregate", [aggregate["id"]]),
        ("PER_CITY", [read["steps"][-1]["id"]]),
    ]
    assert [(each["name"], bool(each["readBy"]), bool(each["writtenBy"])) for each in read["topics"]] == [
        ("orders", True, False),
        ("PER_CITY", False, True),
    ]


def test_topics_stand_above_and_below_and_states_beside():
    graph = graph_of(ours()["PER_CITY"])
    boxes = lay_out(graph, {node.id: Size(100, 50) for node in graph.nodes}).boxes
    for edge in graph.edges:
        source, target = boxes[edge.source], boxes[edge.target]
        if edge.kind is EdgeKind.HOLDS:
            assert target.x > source.right
            assert target.centre == source.centre
        else:
            assert target.y > source.bottom
            assert target.middle == source.middle
    assert [node.kind for node in graph.nodes if boxes[node.id].y == 0] == [NodeKind.TOPIC]
