"""How a topic is read."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Generic, Self, TypeVar

from holdfast.errors import TopologyError
from holdfast.runtime.expressions.tree import ColumnRef
from holdfast.streams.expressions import Expr
from holdfast.streams.serdes import Serde

K = TypeVar("K")
V = TypeVar("V")


class OffsetReset(StrEnum):
    """Where queries over a topic start."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Consumed(Generic[K, V]):
    """The serdes of a topic, its timestamps, and where reading starts. Key serdes are raw: tables add the window."""

    key_serde: Serde[K]
    value_serde: Serde[V]
    timestamp_column: str | None = None
    timestamp_format: str | None = None
    offset_reset: OffsetReset | None = None
    changelog: bool = False
    partitions: int | None = None
    name: str | None = None

    @classmethod
    def with_(cls, key_serde: Serde[K], value_serde: Serde[V]) -> "Consumed[K, V]":
        """Read with these serdes."""
        return Consumed(key_serde, value_serde)

    def with_timestamp(self, column: Expr[Any] | str, format: str | None = None) -> Self:
        """Take the time of each record from a column: `col("taken_at")`. A STRING column needs a Java date format."""
        return replace(self, timestamp_column=_column_name(column), timestamp_format=format)

    def with_offset_reset(self, policy: OffsetReset | str) -> Self:
        """Start queries at the earliest record, which is the default, or at the latest."""
        try:
            return replace(self, offset_reset=OffsetReset(policy))
        except ValueError:
            raise TopologyError(f"{policy!r} is not a reset policy", hint=f"Use {' or '.join(OffsetReset)}.") from None

    def for_changelog(self) -> Self:
        """The topic is the changelog of a window store, whose keys have a sequence number after the window."""
        return replace(self, changelog=True)

    def with_partitions(self, partitions: int) -> Self:
        """Create the topic, if it is missing, with this many partitions."""
        return replace(self, partitions=partitions)

    def named(self, name: str) -> Self:
        """The name of the stream or table in SQL."""
        return replace(self, name=name)


def _column_name(column: Expr[Any] | str) -> str:
    if isinstance(column, str):
        return column
    if isinstance(column, Expr) and isinstance(column.tree, ColumnRef):
        return column.tree.name
    raise TopologyError(
        "a timestamp extractor must name a column",
        detail="The time of a record decides its windows, before anything is computed.",
        hint='Write with_timestamp(col("taken_at")); compute a time with map_values in a stream of its own.',
    )
