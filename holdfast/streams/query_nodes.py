"""Nodes that a query maintains: selections, joins and aggregations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from holdfast.errors import TopologyError
from holdfast.names import quote
from holdfast.runtime.expressions.text import format_expression
from holdfast.sql.properties.session import ANY_VALUE_FORMAT
from holdfast.sql.syntax.statements import ObjectKind
from holdfast.streams.consumed import OffsetReset
from holdfast.streams.nodes import TopologyNode, TopologyStatement, reset_property, with_properties
from holdfast.streams.python_functions import PythonFunction
from holdfast.streams.serdes import KAFKA
from holdfast.streams.topology_rows import Field, JoinInput, TopologyRows
from holdfast.streams.windows import SessionWindows, TimeWindows


@dataclass(kw_only=True, eq=False)
class QueryNode(TopologyNode):
    """An object that a query maintains. A table without a topic is a materialized view."""

    relation: TopologyRows
    partitions: int | None = None

    @property
    def operation(self) -> str:
        return "join" if isinstance(self.relation.input, JoinInput) else "select"

    @property
    def inputs(self) -> Sequence[TopologyNode]:
        return self.relation.input.nodes

    @property
    def functions(self) -> Sequence[PythonFunction]:
        return self.relation.functions

    @property
    def select(self) -> str:
        return self.relation.select

    @property
    def statement(self) -> TopologyStatement:
        kind, with_ = "MATERIALIZED VIEW", ""
        if self.topic is not None:
            properties = with_properties(self.topic, self.key_format, self.value_format, self.values, self.partitions)
            kind, with_ = str(self.kind), f" WITH ({', '.join(properties)})"
        text = f"CREATE {kind} {quote(self.name)}{with_} AS {self.select};"
        return TopologyStatement(self.name, text, {**reset_property(self._reset), **self._format_property})

    @property
    def _format_property(self) -> Mapping[str, str]:
        """Kafka's own format holds one column, which ksqlDB would not let a query group or join."""
        reads_kafka = any(node.topic is not None and node.value_format.name == KAFKA.name for node in self.inputs)
        combines = isinstance(self, AggregateNode) or isinstance(self.relation.input, JoinInput)
        return {ANY_VALUE_FORMAT: "true"} if reads_kafka and combines else {}

    @property
    def _reset(self) -> OffsetReset | None:
        """The reset policy of its topics."""
        found = {node.offset_reset for node in self.inputs if node.kind is ObjectKind.STREAM}
        if len(found) > 1:
            raise TopologyError(
                f'the inputs of "{self.name}" have different reset policies',
                detail="A query starts to read all of its inputs in the same way.",
                hint="Set the same policy with Consumed.with_offset_reset.",
            )
        return next(iter(found), None)


@dataclass(kw_only=True, eq=False)
class AggregateNode(QueryNode):
    """A table that aggregates the groups of a relation."""

    group_by: tuple[Field, ...]
    results: tuple[Field, ...]
    windows: TimeWindows | SessionWindows | None = None
    retention: timedelta | None = None
    final: bool = False
    """Whether a window has a result only when it closes."""

    @property
    def operation(self) -> str:
        return "aggregate, final results" if self.final else "aggregate"

    @property
    def select(self) -> str:
        items = ", ".join(each.item for each in (*self.group_by, *self.results))
        parts = [f"SELECT {items} FROM {self.relation.input.text}"]
        if self.windows is not None:
            parts.append(self.windows.clause(self.retention))
        parts += self.relation.where_clause
        parts.append(f"GROUP BY {', '.join(expressions(self.group_by))}")
        if self.final:
            parts.append("EMIT FINAL")
        return " ".join(parts)


def expressions(fields: Iterable[Field]) -> list[str]:
    return [format_expression(each.expression) for each in fields]
