"""The contents of a node in a picture: a selection of details, for understanding a plan at a glance."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap

from holdfast.explain.columns import Columns, GraphColumn
from holdfast.explain.graph import EdgeKind, Graph, GraphNode, NodeKind
from holdfast.names import show

SHOWN = frozenset(
    {
        "Add Columns",
        "Emit",
        "Filter",
        "Foreign Key",
        "Formats",
        "Grace Period",
        "Stored From",
        "Timestamp",
        "Type",
        "Window",
        "Within",
    }
)
"""The details of the text form that a picture shows; expressions are shown with their columns."""

MAX_LINE_LENGTH = 56
MAX_LINES = 4
MAX_COLUMNS = 12
MAX_NAME_LENGTH = 32
MAX_TYPE_LENGTH = 28
MAX_EXPRESSION_LENGTH = 44

UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class CardRow:
    """A column: its name, type and what it is computed from."""

    name: str
    type: str
    key: bool
    expression: str

    @property
    def text(self) -> str:
        key = " KEY" if self.key else ""
        computed = f" = {self.expression}" if self.expression else ""
        return f"{self.name} {self.type}".rstrip() + key + computed


@dataclass(frozen=True, slots=True)
class Card:
    """The texts of a node, each short and printable. `more` counts the columns that are not in `rows`."""

    title: str
    subtitle: str
    lines: tuple[str, ...] = ()
    rows: tuple[CardRow, ...] = ()
    more: int = 0

    @property
    def remainder(self) -> str:
        return f"… and {self.more} more" if self.more else ""


def cards(graph: Graph) -> Mapping[str, Card]:
    """The card of every node, by its id."""
    nodes = {node.id: node for node in graph.nodes}
    return {node.id: _card(node, [nodes[id_] for id_ in graph.into(node.id, EdgeKind.ROWS)]) for node in graph.nodes}


def printable(text: str) -> str:
    """A text on one line, in characters that XML and terminals can show."""
    return SPACES.sub(" ", UNPRINTABLE.sub("\ufffd", text)).strip()


def shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _card(node: GraphNode, inputs: list[GraphNode]) -> Card:
    title = shortened(printable(node.title), MAX_NAME_LENGTH + 8)
    if node.kind is NodeKind.STATE:
        return Card(title, shortened(printable(dict(node.details)["Of"]), MAX_NAME_LENGTH))
    lines = [f"{label}: {text}" for label, text in node.details if _shows(node, label)]
    if node.kind is NodeKind.TOPIC:
        return Card(title, "topic", _lines([text for _, text in node.details]))
    columns = _columns(node, inputs)
    shown = columns if len(columns) <= MAX_COLUMNS else columns[: MAX_COLUMNS - 1]
    return Card(
        title,
        shortened(printable(node.name), MAX_LINE_LENGTH),
        _lines(lines),
        tuple(map(_row, shown)),
        len(columns) - len(shown),
    )


def _shows(node: GraphNode, label: str) -> bool:
    # The topic's node shows the formats.
    return label in SHOWN and not (label == "Formats" and node.kind is not NodeKind.TOPIC)


def _columns(node: GraphNode, inputs: list[GraphNode]) -> Columns:
    """The columns that a step changes: none if they equal its input's, only the key if the step changes the key."""
    if node.rekeys:
        return tuple(column for column in node.columns if column.key)
    if len(inputs) == 1 and _shape(node.columns) == _shape(inputs[0].columns):
        return ()
    return node.columns


def _shape(columns: Columns) -> list[tuple[str, object, bool, str | None]]:
    return [(column.name, column.type, column.key, None) for column in columns]


def _lines(texts: list[str]) -> tuple[str, ...]:
    found: list[str] = []
    for text in texts:
        lines = wrap(printable(text), MAX_LINE_LENGTH)
        if len(lines) > MAX_LINES:
            lines = [*lines[: MAX_LINES - 1], shortened(f"{lines[MAX_LINES - 1]} …", MAX_LINE_LENGTH)]
        found += lines
    return tuple(found)


def _row(column: GraphColumn) -> CardRow:
    return CardRow(
        shortened(printable(show(column.name)), MAX_NAME_LENGTH),
        shortened(str(column.type or ""), MAX_TYPE_LENGTH),
        column.key,
        shortened(printable(column.expression or ""), MAX_EXPRESSION_LENGTH),
    )
