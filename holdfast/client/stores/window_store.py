"""A table with time windows as a read-only window store, with the queries of Kafka Streams."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar, overload

from holdfast.client.stores.entries import StoreIterator
from holdfast.client.stores.moment import Moment
from holdfast.client.stores.table_view import TableView, is_at, window_range
from holdfast.client.stores.windowed import Windowed

K = TypeVar("K")
V = TypeVar("V")

START = "WINDOWSTART"


@dataclass(frozen=True, slots=True)
class ReadOnlyWindowStore(Generic[K, V]):
    """The value of each key and window. Ranges of time are those of window starts and include both ends.

    Entries come oldest window first, those of one start in the order of their keys; `backward_…` in the reverse order.
    Times are aware datetimes or milliseconds since the epoch; None leaves a bound open.
    """

    view: TableView[K, V]

    def as_of(self, moment: Moment | None) -> Self:
        """The store as it was at a time; None for the latest."""
        return type(self)(self.view.as_of(moment))

    @overload
    def fetch(self, key: K, time_from: Moment, /) -> V | None: ...
    @overload
    def fetch(self, key: K, time_from: Moment | None, time_to: Moment | None, /) -> StoreIterator[tuple[int, V]]: ...
    def fetch(self, key: K, *times: Moment | None) -> V | StoreIterator[tuple[int, V]] | None:
        """With one time, the value of the window that starts then; with two, the starts and values between them."""
        match times:
            case (start,) if start is not None:
                return self.view.first([*self.view.is_key(key), is_at(START, start)])
            case (time_from, time_to):
                return self._fetch(key, time_from, time_to, backward=False)
            case _:
                raise TypeError("fetch takes a key and the start of a window, or a key and two times")

    def backward_fetch(self, key: K, time_from: Moment | None, time_to: Moment | None) -> StoreIterator[tuple[int, V]]:
        """The starts and values of the windows of a key between two times, newest first."""
        return self._fetch(key, time_from, time_to, backward=True)

    def fetch_range(
        self, key_from: K | None, key_to: K | None, time_from: Moment | None, time_to: Moment | None
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        """The windows of a range of keys that start between two times."""
        return self._fetch_range(key_from, key_to, time_from, time_to, backward=False)

    def backward_fetch_range(
        self, key_from: K | None, key_to: K | None, time_from: Moment | None, time_to: Moment | None
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        """The windows of a range of keys that start between two times, newest first."""
        return self._fetch_range(key_from, key_to, time_from, time_to, backward=True)

    def fetch_all(self, time_from: Moment | None, time_to: Moment | None) -> StoreIterator[tuple[Windowed[K], V]]:
        """The windows of all keys that start between two times."""
        return self._fetch_range(None, None, time_from, time_to, backward=False)

    def backward_fetch_all(
        self, time_from: Moment | None, time_to: Moment | None
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        """The windows of all keys that start between two times, newest first."""
        return self._fetch_range(None, None, time_from, time_to, backward=True)

    def all(self) -> StoreIterator[tuple[Windowed[K], V]]:
        """All windows of all keys."""
        return self.fetch_all(None, None)

    def backward_all(self) -> StoreIterator[tuple[Windowed[K], V]]:
        """All windows of all keys, newest first."""
        return self.backward_fetch_all(None, None)

    def _fetch(
        self, key: K, time_from: Moment | None, time_to: Moment | None, *, backward: bool
    ) -> StoreIterator[tuple[int, V]]:
        view = self.view
        conditions = [*view.is_key(key), *window_range(START, time_from, time_to)]
        return view.entries(
            conditions, [START], lambda row: (view.windowed(row).window.start, view.value(row)), backward=backward
        )

    def _fetch_range(
        self,
        key_from: K | None,
        key_to: K | None,
        time_from: Moment | None,
        time_to: Moment | None,
        *,
        backward: bool,
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        keys = self.view.key_range(key_from, key_to)
        if keys is None:
            return self.view.none()
        conditions = [*keys, *window_range(START, time_from, time_to)]
        return self.view.entries(conditions, [START, *self.view.key_order], self._entry, backward=backward)

    @property
    def _entry(self) -> Callable[[tuple[Any, ...]], tuple[Windowed[K], V]]:
        view = self.view
        return lambda row: (view.windowed(row), view.value(row))
