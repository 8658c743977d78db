"""The embedded store, on DuckDB."""

from holdfast.runtime.store.duckdb.store import DuckDbStore, open_memory_store, open_store

__all__ = ["DuckDbStore", "open_memory_store", "open_store"]
