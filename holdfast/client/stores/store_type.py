"""The types of stores, and a table opened as one of them."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar, overload

from holdfast.client.stores.key_value_store import ReadOnlyKeyValueStore
from holdfast.client.stores.moment import Moment
from holdfast.client.stores.port import StoreReader, StoreSchema
from holdfast.client.stores.session_store import ReadOnlySessionStore
from holdfast.client.stores.table_view import TableView
from holdfast.client.stores.window_store import ReadOnlyWindowStore
from holdfast.errors import WrongObjectKind

S = TypeVar("S")
K = TypeVar("K")
V = TypeVar("V")


class StoreKind(StrEnum):
    """The three kinds of stores, as errors and descriptions call them."""

    KEY_VALUE = "key-value store"
    WINDOW = "window store"
    SESSION = "session store"


CALLS = {
    StoreKind.KEY_VALUE: "key_value_store()",
    StoreKind.WINDOW: "window_store()",
    StoreKind.SESSION: "session_store()",
}
ROWS = {
    StoreKind.KEY_VALUE: "It has one row per key, without a window.",
    StoreKind.WINDOW: "It has one row per key and time window.",
    StoreKind.SESSION: "It has one row per key and session.",
}


@dataclass(frozen=True, slots=True)
class StoreType(Generic[S]):
    """The type of a store, and the class of its values."""

    kind: StoreKind
    store: Callable[[TableView[Any, Any]], S]
    value_type: Any = None


@overload
def key_value_store() -> StoreType[ReadOnlyKeyValueStore[Any, Any]]: ...
@overload
def key_value_store(key: type[K], value: type[V]) -> StoreType[ReadOnlyKeyValueStore[K, V]]: ...
def key_value_store(key: Any = None, value: Any = None) -> StoreType[Any]:  # noqa: ARG001
    """A store with one value per key. With a dataclass as `value`, values are its objects."""
    return StoreType(StoreKind.KEY_VALUE, ReadOnlyKeyValueStore, value)


@overload
def window_store() -> StoreType[ReadOnlyWindowStore[Any, Any]]: ...
@overload
def window_store(key: type[K], value: type[V]) -> StoreType[ReadOnlyWindowStore[K, V]]: ...
def window_store(key: Any = None, value: Any = None) -> StoreType[Any]:  # noqa: ARG001
    """A store with one value per key and time window. With a dataclass as `value`, values are its objects."""
    return StoreType(StoreKind.WINDOW, ReadOnlyWindowStore, value)


@overload
def session_store() -> StoreType[ReadOnlySessionStore[Any, Any]]: ...
@overload
def session_store(key: type[K], value: type[V]) -> StoreType[ReadOnlySessionStore[K, V]]: ...
def session_store(key: Any = None, value: Any = None) -> StoreType[Any]:  # noqa: ARG001
    """A store with one value per key and session. With a dataclass as `value`, values are its objects."""
    return StoreType(StoreKind.SESSION, ReadOnlySessionStore, value)


def open_store(reader: StoreReader, name: str, type_: StoreType[S], as_of: Moment | None = None) -> S:
    """A table as a store of a type; refuses a table of another type."""
    schema = reader.schema(name)
    kind = _kind(schema)
    if kind != type_.kind:
        raise WrongObjectKind(
            f'"{name}" is a {kind}, not a {type_.kind}', detail=ROWS[kind], hint=f"Open it with {CALLS[kind]}."
        )
    view: TableView[Any, Any] = TableView(reader, schema, type_.value_type)
    return type_.store(view.as_of(as_of))


def _kind(schema: StoreSchema) -> StoreKind:
    if schema.window is None:
        return StoreKind.KEY_VALUE
    return StoreKind.SESSION if schema.is_session else StoreKind.WINDOW
