"""What many readers ask for at the same time, made once."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Keeps the last few things made, by key. Whoever asks while one is being made waits for it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[Hashable, Future[T]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `key` stands for; an error of `make` is told to all who wait, and is not kept."""
        with self._lock:
            found = self._kept.get(key)
            mine = found is None
            if found is None:
                found = self._kept[key] = Future()
                while len(self._kept) > self._size:
                    self._kept.popitem(last=False)
            else:
                self._kept.move_to_end(key)
        if mine:
            self._make(key, found, make)
        return found.result()

    def _make(self, key: Hashable, promised: Future[T], make: Callable[[], T]) -> None:
        try:
            promised.set_result(make())
        except BaseException as error:
            with self._lock:
                if self._kept.get(key) is promised:
                    del self._kept[key]
            promised.set_exception(error)
