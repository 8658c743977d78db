"""A table as a read-only key-value store."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from holdfast.client.stores.entries import StoreIterator
from holdfast.client.stores.moment import Moment
from holdfast.client.stores.table_view import TableView

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class ReadOnlyKeyValueStore(Generic[K, V]):
    """The current value of each key. Ranges include both keys; None leaves a bound open."""

    view: TableView[K, V]

    def as_of(self, moment: Moment | None) -> Self:
        """The store as it was at a time; None for the latest."""
        return type(self)(self.view.as_of(moment))

    def get(self, key: K) -> V | None:
        """The value of a key; None if it has none."""
        return self.view.first(self.view.is_key(key))

    def range(self, key_from: K | None, key_to: K | None) -> StoreIterator[tuple[K, V]]:
        """The entries of a range of keys, in the order of the keys."""
        return self._range(key_from, key_to, backward=False)

    def reverse_range(self, key_from: K | None, key_to: K | None) -> StoreIterator[tuple[K, V]]:
        """The entries of a range of keys, the greatest key first."""
        return self._range(key_from, key_to, backward=True)

    def all(self) -> StoreIterator[tuple[K, V]]:
        """All entries, in the order of the keys."""
        return self._range(None, None, backward=False)

    def reverse_all(self) -> StoreIterator[tuple[K, V]]:
        """All entries, the greatest key first."""
        return self._range(None, None, backward=True)

    def approximate_num_entries(self) -> int:
        """The number of entries, which is exact."""
        return self.view.count()

    def _range(self, key_from: K | None, key_to: K | None, *, backward: bool) -> StoreIterator[tuple[K, V]]:
        conditions = self.view.key_range(key_from, key_to)
        if conditions is None:
            return self.view.none()
        return self.view.entries(conditions, self.view.key_order, self._entry, backward=backward)

    @property
    def _entry(self) -> Callable[[tuple[Any, ...]], tuple[K, V]]:
        view = self.view
        return lambda row: (view.key(row), view.value(row))
