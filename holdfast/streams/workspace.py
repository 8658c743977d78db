"""The nodes of a topology while it is built: their names, and rows that become nodes where that is needed."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import TopologyError
from holdfast.sql.syntax.statements import ObjectKind
from holdfast.streams.nodes import TopicNode, TopologyNode
from holdfast.streams.produced import Produced
from holdfast.streams.query_nodes import QueryNode
from holdfast.streams.serdes import DeclaredFormat, Serde, WindowedSerde
from holdfast.streams.topology_rows import TopologyRows

_NAME = re.compile(r"[A-Za-z0-9._-]+\Z")


@dataclass(slots=True)
class Workspace:
    """Collects nodes in the order of their creation; a node reads only earlier ones. `table` makes a KTable."""

    application: str
    table: Callable[["Workspace", TopologyRows], Any]
    nodes: list[TopologyNode] = field(default_factory=list)
    _count: int = 0

    def name(self, operation: str) -> str:
        """A name for a node without one: the same each time the program runs."""
        self._count += 1
        return f"{self.application}-{operation}-{self._count}"

    def add(self, node: TopologyNode) -> TopologyNode:
        if not _NAME.match(node.name):
            raise TopologyError(
                f'"{node.name}" cannot be the name of a store or a node',
                hint='Use letters, digits, ".", "_" and "-": it may become the name of a topic.',
            )
        if any(each.name == node.name for each in self.nodes):
            raise TopologyError(f'two nodes are called "{node.name}"', hint="Give one of them another name.")
        self.nodes.append(node)
        return node

    def node(
        self, relation: TopologyRows, *, name: str | None = None, topic: bool = False, required: bool = False
    ) -> TopologyNode:
        """The object with these rows: the one that has them already, or a new one."""
        existing = relation.node
        if existing is not None and name is None:
            if topic and existing.topic is None:
                existing.topic = existing.name
            return existing
        key, values = relation.columns
        node_name = name or self.name("join" if len(relation.input.nodes) > 1 else "select")
        node = QueryNode(
            name=node_name,
            kind=relation.kind,
            key=key,
            values=values,
            key_format=relation.key_format,
            value_format=relation.value_format,
            window=relation.window,
            topic=node_name if topic or relation.kind is ObjectKind.STREAM else None,
            required=required,
            relation=relation,
        )
        return self.add(node)

    def changes(self, table: TopologyNode) -> TopologyNode:
        """The changes of a table as a stream: over its topic, which a table of a query gets for it."""
        if table.topic is None:
            table.topic = table.name
        for node in self.nodes:
            if isinstance(node, TopicNode) and node.of is table:
                return node
        return self.add(
            TopicNode(
                name=self.name("to-stream"),
                kind=ObjectKind.STREAM,
                key=table.key,
                values=table.values,
                key_format=table.key_format,
                value_format=table.value_format,
                window=table.window,
                topic=table.topic,
                reads=table.topic,
                of=table,
            )
        )

    def write(self, relation: TopologyRows, topic: str, produced: Produced[Any, Any], name: str | None) -> None:
        """Write rows to a topic: that of the query which gives them, or of another one."""
        node = relation.node
        named = produced.name or name
        if not isinstance(node, QueryNode) or node.topic is not None or named is not None:
            node = self._sink(relation, named or self.name("to"))
        node.topic, node.required, node.partitions = topic, True, produced.partitions
        if produced.key_serde is not None:
            node.key_format = self._format(produced.key_serde, node)
        if produced.value_serde is not None:
            node.value_format = produced.value_serde.format

    def _sink(self, relation: TopologyRows, name: str) -> QueryNode:
        node = self.node(relation, name=name)
        assert isinstance(node, QueryNode)
        return node

    def _format(self, serde: Serde[Any], node: TopologyNode) -> DeclaredFormat:
        window = node.window
        if isinstance(serde, WindowedSerde) and (window is None or serde.size != window.size or serde.changelog):
            raise TopologyError(
                f'the key serde of "{node.name}" has other windows than its rows', hint="Give the raw serde of the key."
            )
        return serde.format
