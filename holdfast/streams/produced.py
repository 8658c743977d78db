"""How a topic is written."""

from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

from holdfast.streams.serdes import Serde

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Produced(Generic[K, V]):
    """How a topic is written. What is None follows from the rows."""

    key_serde: Serde[K] | None = None
    value_serde: Serde[V] | None = None
    partitions: int | None = None
    name: str | None = None

    @classmethod
    def with_(cls, key_serde: Serde[K], value_serde: Serde[V]) -> "Produced[K, V]":
        return Produced(key_serde, value_serde)

    def with_partitions(self, partitions: int) -> Self:
        """Create the topic with this many partitions; by default with those of the input."""
        return replace(self, partitions=partitions)

    def named(self, name: str) -> Self:
        """The name of the stream or table in SQL."""
        return replace(self, name=name)
