"""What a node shows in a picture: less than is known, so that a plan is understood at a glance."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap

from holdfast.names import show
from holdfast.runtime.graph.columns import Columns, GraphColumn
from holdfast.runtime.graph.graph import EdgeKind, Graph, Node, NodeKind

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
"""The details that a picture shows, of those that the text has. What columns come from stands with the columns."""

LONGEST_LINE = 56
MOST_LINES = 4
MOST_COLUMNS = 12
LONGEST_NAME = 32
LONGEST_TYPE = 28
LONGEST_EXPRESSION = 44

UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Row:
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
    """A node's texts, each short and printable. `more` counts the columns that are not among `rows`."""

    title: str
    subtitle: str
    lines: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    more: int = 0

    @property
    def remainder(self) -> str:
        return f"… and {self.more} more" if self.more else ""


def cards(graph: Graph) -> Mapping[str, Card]:
    """The card of every node, by its id."""
    nodes = {node.id: node for node in graph.nodes}
    return {node.id: _card(node, [nodes[id_] for id_ in graph.into(node.id, EdgeKind.ROWS)]) for node in graph.nodes}


def printable(text: str) -> str:
    """A text on one line, in characters that every reader of XML and every terminal takes."""
    return SPACES.sub(" ", UNPRINTABLE.sub("\ufffd", text)).strip()


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _card(node: Node, inputs: list[Node]) -> Card:
    title = shortened(printable(node.title), LONGEST_NAME + 8)
    if node.kind is NodeKind.STATE:
        return Card(title, shortened(printable(dict(node.details)["Of"]), LONGEST_NAME))
    lines = [f"{label}: {text}" for label, text in node.details if _shows(node, label)]
    if node.kind is NodeKind.TOPIC:
        return Card(title, "topic", _lines([text for _, text in node.details]))
    columns = _columns(node, inputs)
    shown = columns if len(columns) <= MOST_COLUMNS else columns[: MOST_COLUMNS - 1]
    return Card(
        title,
        shortened(printable(node.name), LONGEST_LINE),
        _lines(lines),
        tuple(map(_row, shown)),
        len(columns) - len(shown),
    )


def _shows(node: Node, label: str) -> bool:
    # A topic has its formats on its own node.
    return label in SHOWN and not (label == "Formats" and node.kind is not NodeKind.TOPIC)


def _columns(node: Node, inputs: list[Node]) -> Columns:
    """The columns that a step makes: none when they are those of its input, the new key when only that is new."""
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
        lines = wrap(printable(text), LONGEST_LINE)
        if len(lines) > MOST_LINES:
            lines = [*lines[: MOST_LINES - 1], shortened(f"{lines[MOST_LINES - 1]} …", LONGEST_LINE)]
        found += lines
    return tuple(found)


def _row(column: GraphColumn) -> Row:
    return Row(
        shortened(printable(show(column.name)), LONGEST_NAME),
        shortened(str(column.type or ""), LONGEST_TYPE),
        column.key,
        shortened(printable(column.expression or ""), LONGEST_EXPRESSION),
    )
