"""SQL types and their text form.

Plans store types in this form (``ARRAY<STRUCT<`A` INTEGER>>``); `holdfast.runtime.expressions.parse` parses it.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum

from holdfast.names import quote


class Scalar(StrEnum):
    """A type without parameters; the value is its text."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BYTES = "BYTES"
    TIME = "TIME"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"


@dataclass(frozen=True, slots=True)
class Decimal:
    """A fixed-point number with `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    """A list of elements of one type."""

    element: "SqlType"

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map:
    """A map from keys of one type to values of another."""

    key: "SqlType"
    value: "SqlType"

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class StructField:
    """A named field of a STRUCT."""

    name: str
    type: "SqlType"

    def __str__(self) -> str:
        return f"{quote(self.name)} {self.type}"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields in order."""

    fields: tuple[StructField, ...]

    def __str__(self) -> str:
        return f"STRUCT<{', '.join(map(str, self.fields)) or ' '}>"


SqlType = Scalar | Decimal | Array | Map | Struct

NUMBERS = (Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE)


def is_number(type_: SqlType) -> bool:
    return type_ in NUMBERS or isinstance(type_, Decimal)


def is_scalar(type_: SqlType) -> bool:
    """True for every type except ARRAY, MAP and STRUCT."""
    return isinstance(type_, (Scalar, Decimal))


HEADERS = Array(Struct((StructField("KEY", Scalar.STRING), StructField("VALUE", Scalar.BYTES))))
"""All headers of a record."""


class Role(Enum):
    """The role of a column in its relation."""

    VALUE = ""
    KEY = "KEY"
    HEADERS = "HEADERS"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream or a table. `header` names one header (`HEADER('x')`)."""

    name: str
    type: SqlType
    role: Role = Role.VALUE
    header: str | None = None

    def __str__(self) -> str:
        text = f"{quote(self.name)} {self.type}"
        if self.header is not None:
            escaped = self.header.replace("'", "''")
            return f"{text} HEADER('{escaped}')"
        return f"{text} {self.role.value}" if self.role.value else text


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a relation in declaration order; key columns may come anywhere."""

    columns: tuple[Column, ...]

    @property
    def key(self) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.role is Role.KEY)

    @property
    def value(self) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.role is Role.VALUE)

    @property
    def headers(self) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.role is Role.HEADERS)

    @property
    def row(self) -> tuple[Column, ...]:
        """The value columns in the order of stored rows: header columns come last."""
        return (*self.value, *(Column(c.name, c.type) for c in self.headers))

    def find(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name == name), None)

    def __str__(self) -> str:
        return ", ".join(map(str, self.columns))
