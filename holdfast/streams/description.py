"""The description of a topology as text."""

from collections.abc import Iterator, Sequence

from holdfast.client.stores.store_type import StoreKind
from holdfast.sql.syntax.statements import ObjectKind
from holdfast.streams.durations import span
from holdfast.streams.nodes import Columns, TopologyNode


def describe(application: str, nodes: Sequence[TopologyNode]) -> str:
    """One paragraph per object, each after those that it reads."""
    paragraphs = ["\n".join(_lines(node, nodes)) for node in nodes]
    return "\n\n".join([f"Application: {application}", *paragraphs]) + "\n"


def _lines(node: TopologyNode, nodes: Sequence[TopologyNode]) -> Iterator[str]:
    yield f"{node.kind.title()}: {node.name} ({node.operation})"
    yield f"  rows: {_columns(node.key, node.values)}{_window(node)}"
    if node.kind is ObjectKind.TABLE:
        yield f"  store: {store_kind(node)}"
    if node.topic is not None:
        yield f"  topic: {node.topic} ({node.key_format.name} keys, {node.value_format.name} values)"
    for each in node.inputs:
        yield f"  <-- {each.name}"
    for each in nodes:
        if node in each.inputs:
            yield f"  --> {each.name}"
    for line in node.statement.text.splitlines():
        yield f"  {line}"


def store_kind(node: TopologyNode) -> StoreKind:
    """The kind of a table's store."""
    if node.window is None:
        return StoreKind.KEY_VALUE
    return StoreKind.SESSION if node.window.size is None else StoreKind.WINDOW


def _window(node: TopologyNode) -> str:
    if node.window is None:
        return ""
    return ", per session" if node.window.size is None else f", per window of {span(node.window.size)}"


def _columns(key: Columns, values: Columns) -> str:
    keys, columns = (", ".join(f"{name} {type_}" for name, type_ in side) for side in (key, values))
    return f"({keys}) -> ({columns})"
