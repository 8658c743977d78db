"""Computes a result once for all readers that request it at the same time."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """A cache of the last few results, by key. A request for a result that is being computed waits for it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._results: OrderedDict[Hashable, Future[T]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The result for `key`. An error of `compute` is raised in all waiting callers and is not cached."""
        with self._lock:
            found = self._results.get(key)
            is_new = found is None
            if found is None:
                found = self._results[key] = Future()
                while len(self._results) > self._size:
                    self._results.popitem(last=False)
            else:
                self._results.move_to_end(key)
        if is_new:
            self._compute(key, found, compute)
        return found.result()

    def found(self, key: Hashable) -> T | None:
        """The result for `key`, if it is cached. Does not wait."""
        with self._lock:
            found = self._results.get(key)
        return found.result() if found is not None and found.done() and found.exception() is None else None

    def _compute(self, key: Hashable, future: Future[T], compute: Callable[[], T]) -> None:
        try:
            future.set_result(compute())
        except BaseException as error:
            with self._lock:
                if self._results.get(key) is future:
                    del self._results[key]
            future.set_exception(error)
