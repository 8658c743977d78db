"""How a table is stored."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Generic, Self, TypeVar

from holdfast.client.stores.store_type import StoreType
from holdfast.streams.durations import positive
from holdfast.streams.serdes import Serde

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Materialized(Generic[K, V]):
    """The name and the retention of a store, and whether the table also has a topic.

    The store is always durable, and the table is restored from it after a restart; `logged` decides only whether
    its changes are written to a topic that other applications can read.
    """

    store_name: str | None = None
    key_serde: Serde[K] | None = None
    value_serde: Serde[V] | None = None
    store_retention: timedelta | None = None
    logged: bool = False
    store_type: StoreType[Any] | None = None

    @classmethod
    def as_(cls, store: str | StoreType[Any]) -> "Materialized[Any, Any]":
        """A store of this name, which interactive queries and SQL use; or of a type."""
        return cls(store_name=store) if isinstance(store, str) else cls(store_type=store)

    @classmethod
    def with_(cls, key_serde: Serde[K], value_serde: Serde[V]) -> "Materialized[K, V]":
        """A store without a name, with these serdes. Key serdes are raw: windows are added."""
        return Materialized(key_serde=key_serde, value_serde=value_serde)

    def named(self, name: str) -> Self:
        """The store with this name."""
        return replace(self, store_name=name)

    def with_key_serde(self, serde: Serde[Any]) -> "Materialized[Any, V]":
        return replace(self, key_serde=serde)

    def with_value_serde(self, serde: Serde[Any]) -> "Materialized[K, Any]":
        return replace(self, value_serde=serde)

    def with_retention(self, retention: timedelta) -> Self:
        """Drop windows this long after their start, or the end of a session, in the time of the records."""
        return replace(self, store_retention=positive(retention, "retention"))

    def with_logging_enabled(self) -> Self:
        """Write the changes of the table to a topic with the name of the store."""
        return replace(self, logged=True)

    def with_logging_disabled(self) -> Self:
        """Store the table without a topic. The store is durable all the same."""
        return replace(self, logged=False)

    def in_memory(self) -> Self:
        """For code that is moved from Kafka Streams: has no effect, as the store holds recent rows in memory anyway."""
        return self
