"""Small durable facts, all of them also in memory."""

from collections.abc import Mapping

from holdfast.names import QueryId
from holdfast.runtime.store.duckdb.core import Core


class Facts:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._facts: dict[str, str] = dict(core.database.execute("SELECT key, value FROM facts").fetchall())

    def get(self, key: str) -> str | None:
        with self._core.memory_lock:
            return self._facts.get(key)

    def starting(self, prefix: str) -> Mapping[str, str]:
        with self._core.memory_lock:
            return {key: value for key, value in self._facts.items() if key.startswith(prefix)}

    def put(self, key: str, value: str | None) -> None:
        with self._core.write_lock:
            if self._facts.get(key) == value:
                return
            with self._core.transaction() as run:
                run.execute("DELETE FROM facts WHERE key = ?", [key])
                if value is not None:
                    run.execute("INSERT INTO facts VALUES (?, ?)", [key, value])
            with self._core.memory_lock:
                if value is None:
                    self._facts.pop(key, None)
                else:
                    self._facts[key] = value

    def forget(self, query: QueryId) -> None:
        prefix = f"{query}/"
        with self._core.write_lock:
            with self._core.transaction() as run:
                run.execute("DELETE FROM facts WHERE starts_with(key, ?)", [prefix])
            with self._core.memory_lock:
                self._facts = {key: value for key, value in self._facts.items() if not key.startswith(prefix)}
