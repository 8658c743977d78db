"""The in-memory store."""

from holdfast.runtime.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
