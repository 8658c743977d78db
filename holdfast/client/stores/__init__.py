"""Interactive queries: read-only views of tables as Kafka Streams' stores."""

from holdfast.client.stores.entries import StoreIterator
from holdfast.client.stores.key_value_store import ReadOnlyKeyValueStore
from holdfast.client.stores.session_store import ReadOnlySessionStore
from holdfast.client.stores.store_type import StoreType, key_value_store, open_store, session_store, window_store
from holdfast.client.stores.window_store import ReadOnlyWindowStore
from holdfast.client.stores.windowed import Window, Windowed

__all__ = [
    "ReadOnlyKeyValueStore",
    "ReadOnlySessionStore",
    "ReadOnlyWindowStore",
    "StoreIterator",
    "StoreType",
    "Window",
    "Windowed",
    "key_value_store",
    "open_store",
    "session_store",
    "window_store",
]
