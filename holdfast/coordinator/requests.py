"""Requests to the coordinator's thread."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from holdfast.coordinator.activity import Activity
from holdfast.errors import RequestTimeout, StoreEnded

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Request:
    """A function that waits for the coordinator. Its future is cancelled when the request is withdrawn."""

    what: str
    function: Callable[[], Any]
    future: Future[Any]


class Requests:
    """Functions that run between two ticks. `ask` from any thread, `answer` on the coordinator's.

    Until `serve`, no thread answers: `ask` then runs the function itself, as a stepped engine needs it.
    """

    def __init__(self, activity: Activity, *, seconds: float) -> None:
        """`seconds` is how long a request waits that does not say so itself."""
        self._activity, self._seconds = activity, seconds
        self._queue: SimpleQueue[_Request] = SimpleQueue()
        self._served = False

    def serve(self) -> None:
        """From now on a thread answers."""
        self._served = True

    def ask(self, what: str, function: Callable[[], T], timeout: float | None = None) -> T:
        """Run a function between two ticks; returns or raises what it does. `what` names it for users.

        `RequestTimeout` when it did not end in time. It says whether the function has begun, and may still take effect;
        one that has not is withdrawn, and never runs.
        """
        if not self._served:
            return function()
        seconds = self._seconds if timeout is None else timeout
        future: Future[T] = Future()
        self._queue.put(_Request(what, function, future))
        try:
            return future.result(seconds)
        except TimeoutError:
            withdrawn = future.cancel()
            # It ended at this moment, or the error is its own.
            if not withdrawn and future.done():
                return future.result()
            raise RequestTimeout(what, seconds, begun=not withdrawn, busy=self._activity.busy()) from None

    def answer(self) -> None:
        """Run what was asked for, except what was withdrawn. Raises when the store has ended."""
        while True:
            try:
                request = self._queue.get_nowait()
            except Empty:
                return
            if not request.future.set_running_or_notify_cancel():
                continue
            try:
                with self._activity.of(request.what):
                    result = request.function()
            except BaseException as error:
                request.future.set_exception(error)
                if isinstance(error, StoreEnded):
                    raise
            else:
                request.future.set_result(result)
