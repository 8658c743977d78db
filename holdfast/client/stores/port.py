"""What a store needs of a database: the columns of a table, and the rows of a pull query."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

SESSION = "SESSION"


@dataclass(frozen=True, slots=True)
class StoreSchema:
    """The names of the key and value columns of a table, and the type of its windows; None if its keys have none."""

    name: str
    key: tuple[str, ...]
    value: tuple[str, ...]
    window: str | None = None

    @property
    def is_session(self) -> bool:
        return self.window == SESSION


class StoreRows(Iterator[tuple[Any, ...]], Protocol):
    """The rows of a query as they are read, with Python values."""

    def close(self) -> None: ...


class StoreReader(Protocol):
    """Reads tables: over HTTP, or in the same process."""

    def schema(self, name: str) -> StoreSchema:
        """The columns of a table; raises `UnknownObject`, or `WrongObjectKind` for a stream."""
        ...

    def rows(self, sql: str) -> StoreRows:
        """Start a pull query."""
        ...

    def at_one_time(self) -> AbstractContextManager["StoreReader"]:
        """A reader whose queries all read at the time of the first, until the end of the `with` block."""
        ...
