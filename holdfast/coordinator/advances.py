"""Advances of holds that come together are written together.

Whoever comes while a batch is written waits for the next; the first of them writes it for all. So there is one write
at a time, however many clients there are, and one that is alone waits for nobody.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Lock

from holdfast.crash import crash_point
from holdfast.errors import ReadError
from holdfast.names import HoldId
from holdfast.runtime.store.port import Time

Move = Callable[[Mapping[HoldId, Time]], Mapping[HoldId, ReadError]]


class Advances:
    """From any thread."""

    def __init__(self, move: Move) -> None:
        self._move = move
        self._waiting: list[tuple[HoldId, Time, Future[ReadError | None]]] = []
        self._adding, self._writing = Lock(), Lock()

    def move(self, hold: HoldId, to: Time) -> ReadError | None:
        """Move a hold; durable on return. Why it could not be moved, or None."""
        done: Future[ReadError | None] = Future()
        with self._adding:
            self._waiting.append((hold, to, done))
        with self._writing:
            while not done.done():
                self._write()
        return done.result()

    def _write(self) -> None:
        """The oldest that wait, one for each hold: the next move of the same hold comes after it."""
        batch: dict[HoldId, tuple[Time, Future[ReadError | None]]] = {}
        with self._adding:
            rest = []
            for hold, to, done in self._waiting:
                if hold in batch:
                    rest.append((hold, to, done))
                else:
                    batch[hold] = (to, done)
            self._waiting = rest
        try:
            crash_point("before_hold_advance")
            refused = self._move({hold: to for hold, (to, _) in batch.items()})
            crash_point("after_hold_advance")
        except BaseException as error:
            for _, done in batch.values():
                done.set_exception(error)
        else:
            for hold, (_, done) in batch.items():
                done.set_result(refused.get(hold))
