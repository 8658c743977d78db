"""Requests to the coordinator's thread."""

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Requests:
    """Functions that run between two ticks. `ask` from any thread, `answer` on the coordinator's.

    Until `serve`, no thread answers: `ask` then runs the function itself, as a stepped engine needs it.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._served = False

    def serve(self) -> None:
        """From now on a thread answers."""
        self._served = True

    def ask(self, function: Callable[[], T], timeout: float | None = None) -> T:
        """Run a function between two ticks; returns or raises what it does.

        `TimeoutError` when it did not run in time: it will still run.
        """
        if not self._served:
            return function()
        future: Future[T] = Future()
        self._queue.put((function, future))
        return future.result(timeout)

    def answer(self) -> None:
        """Run what was asked for."""
        while True:
            try:
                function, future = self._queue.get_nowait()
            except Empty:
                return
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
