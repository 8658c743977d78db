"""The named objects of a topology: each becomes a statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from holdfast.names import literal, quote
from holdfast.runtime.serdes.delimited.dialect import NAMED
from holdfast.sql.syntax.statements import ObjectKind
from holdfast.streams.consumed import OffsetReset
from holdfast.streams.durations import span
from holdfast.streams.python_functions import PythonFunction
from holdfast.streams.serdes import DeclaredFormat
from holdfast.streams.windows import KeyWindow
from holdfast.types import SqlType

Columns = tuple[tuple[str, SqlType], ...]
"""Names and types."""
DELIMITER_NAMES = {character: name for name, character in NAMED.items()}


@dataclass(frozen=True, slots=True)
class TopologyStatement:
    """A statement that creates an object, and the session's properties for it. `name` is None for a function."""

    name: str | None
    text: str
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(kw_only=True, eq=False)
class TopologyNode:
    """A stream or a table with a name. `required` nodes exist even if no other node reads them."""

    name: str
    kind: ObjectKind
    key: Columns
    values: Columns
    key_format: DeclaredFormat
    value_format: DeclaredFormat
    window: KeyWindow | None = None
    topic: str | None = None
    required: bool = False

    @property
    def operation(self) -> str:
        """What it does, for descriptions."""
        raise NotImplementedError

    @property
    def inputs(self) -> Sequence["TopologyNode"]:
        raise NotImplementedError

    @property
    def functions(self) -> Sequence[PythonFunction]:
        return ()

    @property
    def offset_reset(self) -> OffsetReset | None:
        """The reset policy of the topics that it reads."""
        return None

    @property
    def statement(self) -> TopologyStatement:
        raise NotImplementedError


@dataclass(kw_only=True, eq=False)
class TopicNode(TopologyNode):
    """A stream or a table over a topic."""

    reads: str
    reset: OffsetReset | None = None
    retention: timedelta | None = None
    timestamp: str | None = None
    timestamp_format: str | None = None
    partitions: int | None = None
    of: TopologyNode | None = None
    """The table whose topic it reads; None for a topic of other programs."""

    @property
    def operation(self) -> str:
        return f"{self.kind.lower()} over topic {self.reads}"

    @property
    def inputs(self) -> Sequence[TopologyNode]:
        return () if self.of is None else (self.of,)

    @property
    def offset_reset(self) -> OffsetReset | None:
        return self.reset

    @property
    def statement(self) -> TopologyStatement:
        role = "KEY" if self.kind is ObjectKind.STREAM else "PRIMARY KEY"
        columns = [f"{quote(name)} {type_} {role}" for name, type_ in self.key]
        columns += [f"{quote(name)} {type_}" for name, type_ in self.values]
        properties = with_properties(self.reads, self.key_format, self.value_format, self.values, self.partitions)
        properties += self._window_properties()
        if self.timestamp is not None:
            properties.append(f"TIMESTAMP={literal(quote(self.timestamp))}")
        if self.timestamp_format is not None:
            properties.append(f"TIMESTAMP_FORMAT={literal(self.timestamp_format)}")
        text = f"CREATE {self.kind} {quote(self.name)} ({', '.join(columns)}) WITH ({', '.join(properties)});"
        return TopologyStatement(self.name, text, reset_property(self.reset if self.kind is ObjectKind.TABLE else None))

    def _window_properties(self) -> list[str]:
        if self.window is None:
            return []
        found = [f"WINDOW_TYPE='{self.window.type}'"]
        if self.window.size is not None:
            found.append(f"WINDOW_SIZE='{span(self.window.size)}'")
        if self.window.changelog:
            found.append("WINDOW_TOPIC='CHANGELOG'")
        if self.retention is not None:
            found.append(f"RETENTION='{span(self.retention)}'")
        return found


def with_properties(
    topic: str, key_format: DeclaredFormat, value_format: DeclaredFormat, values: Columns, partitions: int | None
) -> list[str]:
    """The properties of WITH that declare a topic and its formats."""
    found = [f"KAFKA_TOPIC={literal(topic)}"]
    for side, format_ in (("KEY", key_format), ("VALUE", value_format)):
        found.append(f"{side}_FORMAT='{format_.name}'")
        if format_.delimiter is not None:
            found.append(f"{side}_DELIMITER={literal(DELIMITER_NAMES.get(format_.delimiter, format_.delimiter))}")
    if len(values) == 1 and not value_format.wraps and value_format.name == "JSON":
        found.append("WRAP_SINGLE_VALUE=FALSE")
    if partitions is not None:
        found.append(f"PARTITIONS={partitions}")
    return found


def reset_property(reset: OffsetReset | None) -> Mapping[str, str]:
    return {} if reset is None else {"auto.offset.reset": reset.value}
