"""The colours of pictures, for light and dark mode."""

from holdfast.explain.graph import GraphNode, NodeKind
from holdfast.runtime.plan.steps import (
    JoinStep,
    SinkStep,
    SourceStep,
    StreamAggregate,
    StreamWindowedAggregate,
    TableAggregate,
    TableKeep,
    TableSuppress,
)

STATEFUL = (StreamAggregate, StreamWindowedAggregate, TableAggregate, TableSuppress)


def family(node: GraphNode) -> str:
    """The class of a node's colour."""
    if node.kind is not NodeKind.STEP:
        return "plain"
    if isinstance(node.step, SourceStep):
        return "source"
    if isinstance(node.step, SinkStep | TableKeep):
        return "sink"
    if isinstance(node.step, JoinStep):
        return "join"
    return "stateful" if isinstance(node.step, STATEFUL) else "plain"


LIGHT = {
    "paper": "#ffffff",
    "ink": "#1f2937",
    "muted": "#64748b",
    "type": "#0f766e",
    "key": "#b45309",
    "line": "#64748b",
    "frame": "#cbd5e1",
    "box": "#ffffff",
    "plain": "#f1f5f9",
    "source": "#dbeafe",
    "sink": "#dcfce7",
    "join": "#ede9fe",
    "stateful": "#fef3c7",
    "topic": "#e0f2fe",
    "topic-frame": "#38bdf8",
    "state": "#fffbeb",
    "state-frame": "#f59e0b",
}
DARK = {
    "paper": "#0d1117",
    "ink": "#e6edf3",
    "muted": "#9aa7b5",
    "type": "#5eead4",
    "key": "#fbbf24",
    "line": "#8b98a9",
    "frame": "#3d4654",
    "box": "#161b22",
    "plain": "#242c38",
    "source": "#17304f",
    "sink": "#14392a",
    "join": "#33285a",
    "stateful": "#453313",
    "topic": "#0c2a3a",
    "topic-frame": "#0ea5e9",
    "state": "#2e240f",
    "state-frame": "#d97706",
}

MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

# Separate properties: not every SVG viewer supports the shorthand `font`.
FONTS = f"""
.holdfast-plan text {{ font-family: {MONO}; font-size: 12px; }}
.holdfast-plan .title {{ font-family: {SANS}; font-size: 13px; font-weight: bold; }}
.holdfast-plan .heading {{ font-family: {SANS}; font-size: 17px; font-weight: bold; }}
.holdfast-plan .note {{ font-family: {SANS}; font-size: 11px; }}
.holdfast-plan .middle {{ text-anchor: middle; }}
.holdfast-plan .edge {{ fill: none; stroke-width: 1.5; }}
.holdfast-plan .edge.moved {{ stroke-dasharray: 6 4; }}
"""


def _colours(palette: dict[str, str]) -> str:
    rules = {
        ".paper": f"fill: {palette['paper']}",
        "text": f"fill: {palette['ink']}",
        ".muted, .holdfast-plan .note": f"fill: {palette['muted']}",
        ".type": f"fill: {palette['type']}",
        ".key": f"fill: {palette['key']}",
        ".edge": f"stroke: {palette['line']}",
        ".tip": f"fill: {palette['line']}",
        ".box": f"fill: {palette['box']}",
        ".frame": f"stroke: {palette['frame']}",
        "rect.frame": "fill: none",
        ".ruler": f"stroke: {palette['frame']}",
        ".head": f"fill: {palette['plain']}",
        ".topic .frame": f"stroke: {palette['topic-frame']}; fill: {palette['topic']}",
        ".state .frame": f"stroke: {palette['state-frame']}; fill: {palette['state']}",
    }
    rules |= {f".{name} .head": f"fill: {palette[name]}" for name in ("source", "sink", "join", "stateful")}
    return "\n".join(f".holdfast-plan {selector} {{ {rule}; }}" for selector, rule in rules.items())


STYLE = f"\n{FONTS.strip()}\n{_colours(LIGHT)}\n@media (prefers-color-scheme: dark) {{\n{_colours(DARK)}\n}}\n"
