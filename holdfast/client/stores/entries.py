"""The entries of a store, read lazily."""

from collections.abc import Callable, Iterator
from typing import Any, Generic, Self, TypeVar

from holdfast.client.stores.port import StoreRows

E = TypeVar("E")


class StoreIterator(Iterator[E], Generic[E]):
    """Entries as they are read. Close it, or use it in a `with` block; it closes itself at its end."""

    def __init__(self, rows: StoreRows | None, entry: Callable[[tuple[Any, ...]], E]) -> None:
        """None as `rows` gives no entries."""
        self._rows, self._entry = rows, entry

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> E:
        if self._rows is None:
            raise StopIteration
        try:
            row = next(self._rows)
        except BaseException:
            self.close()
            raise
        return self._entry(row)

    def close(self) -> None:
        """End the query. Closing twice has no effect."""
        rows, self._rows = self._rows, None
        if rows is not None:
            rows.close()
