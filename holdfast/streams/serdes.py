"""Serdes: the columns of a key or a value, and the format of its bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Generic, Self, TypeVar, overload

from holdfast.client.stores.windowed import Windowed
from holdfast.errors import TopologyError
from holdfast.runtime.expressions.parse import parse_schema
from holdfast.streams.durations import positive
from holdfast.streams.python_types import is_record, record_fields, sql_type_of
from holdfast.types import Scalar, SqlType

T = TypeVar("T")

Row = Mapping[str, Any]
"""A value of several columns, by their names."""

KAFKA_TYPES = (Scalar.STRING, Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE, Scalar.BYTES)
"""The types that Kafka's own serializers write."""
NAMELESS = ""
"""Placeholder for the default name, `key` or `value`."""


@dataclass(frozen=True, slots=True)
class DeclaredFormat:
    """A format of the WITH clause; `wraps` is whether JSON puts a single value into an object."""

    name: str
    delimiter: str | None = None
    wraps: bool = True


KAFKA = DeclaredFormat("KAFKA", wraps=False)
JSON = DeclaredFormat("JSON")
BARE_JSON = DeclaredFormat("JSON", wraps=False)
NONE = DeclaredFormat("NONE")


@dataclass(frozen=True, slots=True)
class Serde(Generic[T]):
    """Columns and their format. The type parameter is the Python type of the keys or values."""

    columns: tuple[tuple[str, SqlType], ...]
    format: DeclaredFormat

    def named(self, *names: str) -> Self:
        """The serde with other names for its columns."""
        if len(names) != len(self.columns):
            raise TopologyError(f"the serde has {len(self.columns)} columns, but {len(names)} names were given")
        return replace(self, columns=tuple((name, type_) for name, (_, type_) in zip(names, self.columns, strict=True)))

    def columns_as(self, default: str) -> tuple[tuple[str, SqlType], ...]:
        """The columns, with the default name for one without a name of its own."""
        return tuple((name or default, type_) for name, type_ in self.columns)

    @property
    def is_single(self) -> bool:
        """Whether values are those of one column, rather than rows."""
        return len(self.columns) == 1 and not self.format.wraps


@dataclass(frozen=True, slots=True)
class WindowedSerde(Serde[Windowed[T]], Generic[T]):
    """A key serde with a window after the key. Sessions have no `size`."""

    size: timedelta | None = None
    changelog: bool = False

    @property
    def is_session(self) -> bool:
        return self.size is None

    def for_changelog(self, is_changelog: bool = True) -> Self:
        """The serde for the changelog of a window store, whose keys have a sequence number after the window."""
        return replace(self, changelog=is_changelog)


class Serdes:
    """Serdes for keys and values."""

    @staticmethod
    def string() -> Serde[str]:
        return _kafka(Scalar.STRING)

    @staticmethod
    def long() -> Serde[int]:
        """Eight bytes: BIGINT."""
        return _kafka(Scalar.BIGINT)

    @staticmethod
    def integer() -> Serde[int]:
        """Four bytes: INTEGER."""
        return _kafka(Scalar.INTEGER)

    @staticmethod
    def double() -> Serde[float]:
        return _kafka(Scalar.DOUBLE)

    @staticmethod
    def bytes_() -> Serde[bytes]:
        return _kafka(Scalar.BYTES)

    @staticmethod
    def none() -> Serde[None]:
        """No columns and no bytes."""
        return Serde((), NONE)

    @overload
    @staticmethod
    def json(schema: str | Mapping[str, Any]) -> Serde[Row]: ...
    @overload
    @staticmethod
    def json(schema: type[T]) -> Serde[T]: ...
    @staticmethod
    def json(schema: Any) -> Serde[Any]:
        """JSON objects with the fields of a dataclass or TypedDict, or with columns: `"amount DOUBLE, item STRING"`.

        Names in a text follow the rules of SQL: those without quotes match in any case. A plain type, such as `int`, is
        a bare JSON value.
        """
        if not _is_row(schema):
            return Serde(((NAMELESS, sql_type_of(schema)),), BARE_JSON)
        return Serde(_columns(schema), JSON)

    @overload
    @staticmethod
    def delimited(schema: str | Mapping[str, Any], delimiter: str = ...) -> Serde[Row]: ...
    @overload
    @staticmethod
    def delimited(schema: type[T], delimiter: str = ...) -> Serde[T]: ...
    @staticmethod
    def delimited(schema: Any, delimiter: str = ",") -> Serde[Any]:
        """Lines of fields, with columns as for `json`."""
        is_row = _is_row(schema)
        columns = _columns(schema) if is_row else ((NAMELESS, sql_type_of(schema)),)
        return Serde(columns, DeclaredFormat("DELIMITED", None if delimiter == "," else delimiter, wraps=is_row))


class WindowedSerdes:
    """Serdes for the keys of windowed topics, for `stream` and `Produced`; tables take raw key serdes."""

    @staticmethod
    def time_windowed(inner: Serde[T], window_size: timedelta) -> WindowedSerde[T]:
        """Keys with the start of a window of this size."""
        size = positive(window_size, "window_size")
        return WindowedSerde(inner.columns, inner.format, size=size)

    @staticmethod
    def session_windowed(inner: Serde[T]) -> WindowedSerde[T]:
        """Keys with the end and the start of a session."""
        return WindowedSerde(inner.columns, inner.format)


def _kafka(type_: Scalar) -> Serde[Any]:
    return Serde(((NAMELESS, type_),), KAFKA)


def _is_row(schema: Any) -> bool:
    return isinstance(schema, str | Mapping) or is_record(schema)


def _columns(schema: Any) -> tuple[tuple[str, SqlType], ...]:
    if isinstance(schema, str):
        return tuple((column.name, column.type) for column in parse_schema(schema).columns)
    found = schema if isinstance(schema, Mapping) else record_fields(schema)
    return tuple((name, sql_type_of(each)) for name, each in found.items())
