"""A topology: the statements that create its objects, and its description."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.streams.description import describe
from holdfast.streams.nodes import TopologyNode, TopologyStatement
from holdfast.streams.picture import draw


@dataclass(frozen=True, slots=True)
class Topology:
    """The objects of an application, each after those that it reads."""

    application_id: str
    nodes: tuple[TopologyNode, ...]

    @property
    def created(self) -> Sequence[TopologyNode]:
        """The nodes that are created: sources, results, named tables, and what those read."""
        wanted: set[int] = set()
        for node in reversed(self.nodes):
            if node.required or id(node) in wanted:
                wanted.update((id(node), *map(id, node.inputs)))
        return [node for node in self.nodes if id(node) in wanted]

    @property
    def statements(self) -> Sequence[TopologyStatement]:
        """The statements, in order: functions, then objects."""
        functions = dict.fromkeys(function for node in self.created for function in node.functions)
        return [
            *(TopologyStatement(None, function.statement) for function in functions),
            *(node.statement for node in self.created),
        ]

    @property
    def sql(self) -> str:
        """The statements as a script."""
        return "\n".join(statement.text for statement in self.statements)

    def describe(self) -> str:
        """The objects with their inputs, topics and stores, and the statement of each."""
        return describe(self.application_id, self.created)

    def picture(self) -> str:
        """A drawing of the objects and topics, as SVG."""
        return draw(self.application_id, self.created)
