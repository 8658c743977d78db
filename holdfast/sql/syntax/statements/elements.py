"""Parts of statements: names, properties, column definitions."""

from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.errors import Position
from holdfast.types import SqlType


class ObjectKind(StrEnum):
    """The kinds of relation that a statement can create or drop."""

    STREAM = "STREAM"
    TABLE = "TABLE"
    MATERIALIZED_VIEW = "MATERIALIZED VIEW"


class Marker(StrEnum):
    """The constraint written after a column's type."""

    NONE = ""
    KEY = "KEY"
    PRIMARY_KEY = "PRIMARY KEY"
    HEADERS = "HEADERS"


@dataclass(frozen=True, slots=True)
class Identifier:
    """A name after folding: upper case unless it was quoted."""

    text: str
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Property:
    """One entry of a WITH clause; the name is upper case."""

    name: str
    value: str | int | bool | None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """One column of a CREATE; `header` is the key of `HEADER('key')`."""

    name: str
    type: SqlType
    marker: Marker = Marker.NONE
    header: str | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause that continuous queries do not support, by its name: `ORDER BY`, `DISTINCT`."""

    name: str
    position: Position | None = field(default=None, compare=False, repr=False)
