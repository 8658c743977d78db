"""A table with sessions as a read-only session store, with the queries of Kafka Streams."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from holdfast.client.stores.entries import StoreIterator
from holdfast.client.stores.moment import Moment
from holdfast.client.stores.table_view import TableView, is_at, window_range
from holdfast.client.stores.windowed import Windowed

K = TypeVar("K")
V = TypeVar("V")

START, END = "WINDOWSTART", "WINDOWEND"

Entries = StoreIterator[tuple[Windowed[K], V]]


@dataclass(frozen=True, slots=True)
class ReadOnlySessionStore(Generic[K, V]):
    """The value of each key and session.

    Entries come in the order of the sessions' ends, then starts, then keys; `backward_…` in the reverse order.
    Times are aware datetimes or milliseconds since the epoch, ranges include both ends, and None leaves a bound open.
    """

    view: TableView[K, V]

    def as_of(self, moment: Moment | None) -> Self:
        """The store as it was at a time; None for the latest."""
        return type(self)(self.view.as_of(moment))

    def fetch(self, key: K) -> Entries[K, V]:
        """All sessions of a key."""
        return self._entries(self.view.is_key(key), backward=False)

    def backward_fetch(self, key: K) -> Entries[K, V]:
        """All sessions of a key, newest first."""
        return self._entries(self.view.is_key(key), backward=True)

    def fetch_range(self, key_from: K | None, key_to: K | None) -> Entries[K, V]:
        """All sessions of a range of keys."""
        return self._entries(self.view.key_range(key_from, key_to), backward=False)

    def backward_fetch_range(self, key_from: K | None, key_to: K | None) -> Entries[K, V]:
        """All sessions of a range of keys, newest first."""
        return self._entries(self.view.key_range(key_from, key_to), backward=True)

    def fetch_session(self, key: K, start: Moment, end: Moment) -> V | None:
        """The value of the session with these bounds; None if there is none."""
        return self.view.first([*self.view.is_key(key), is_at(START, start), is_at(END, end)])

    def find_sessions(self, key: K, earliest_end: Moment | None, latest_start: Moment | None) -> Entries[K, V]:
        """The sessions of a key that end at `earliest_end` or later and start at `latest_start` or before."""
        return self._entries([*self.view.is_key(key), *_overlap(earliest_end, latest_start)], backward=False)

    def backward_find_sessions(self, key: K, earliest_end: Moment | None, latest_start: Moment | None) -> Entries[K, V]:
        """The result of `find_sessions`, newest first."""
        return self._entries([*self.view.is_key(key), *_overlap(earliest_end, latest_start)], backward=True)

    def find_sessions_range(
        self, key_from: K | None, key_to: K | None, earliest_end: Moment | None, latest_start: Moment | None
    ) -> Entries[K, V]:
        """The sessions of a range of keys that end at `earliest_end` or later and start at `latest_start` or before."""
        return self._find_range(key_from, key_to, earliest_end, latest_start, backward=False)

    def backward_find_sessions_range(
        self, key_from: K | None, key_to: K | None, earliest_end: Moment | None, latest_start: Moment | None
    ) -> Entries[K, V]:
        """The result of `find_sessions_range`, newest first."""
        return self._find_range(key_from, key_to, earliest_end, latest_start, backward=True)

    def find_all_sessions(self, earliest_end: Moment | None, latest_end: Moment | None) -> Entries[K, V]:
        """The sessions of all keys that end between two times."""
        return self._entries(window_range(END, earliest_end, latest_end), backward=False)

    def all(self) -> Entries[K, V]:
        """All sessions of all keys."""
        return self._entries([], backward=False)

    def backward_all(self) -> Entries[K, V]:
        """All sessions of all keys, newest first."""
        return self._entries([], backward=True)

    def _find_range(
        self,
        key_from: K | None,
        key_to: K | None,
        earliest_end: Moment | None,
        latest_start: Moment | None,
        *,
        backward: bool,
    ) -> Entries[K, V]:
        keys = self.view.key_range(key_from, key_to)
        conditions = None if keys is None else [*keys, *_overlap(earliest_end, latest_start)]
        return self._entries(conditions, backward=backward)

    def _entries(self, conditions: list[str] | None, *, backward: bool) -> Entries[K, V]:
        if conditions is None:
            return self.view.none()
        return self.view.entries(conditions, [END, START, *self.view.key_order], self._entry, backward=backward)

    @property
    def _entry(self) -> Callable[[tuple[Any, ...]], tuple[Windowed[K], V]]:
        view = self.view
        return lambda row: (view.windowed(row), view.value(row))


def _overlap(earliest_end: Moment | None, latest_start: Moment | None) -> list[str]:
    return [*window_range(END, earliest_end, None), *window_range(START, None, latest_start)]
