"""Advances of holds that come together are written together.

Whoever comes while a batch is written waits for the next; the first of them writes it for all, and hands over to the
first of those that came meanwhile. So there is one write at a time, however many clients there are, and one that is
alone waits for nobody.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event, Lock

from holdfast.crash import crash_point
from holdfast.errors import ReadError
from holdfast.names import HoldId
from holdfast.runtime.store.port import Time

Move = Callable[[Mapping[HoldId, Time]], Mapping[HoldId, ReadError]]


@dataclass(slots=True)
class _Waiter:
    """One who waits to be told: that his move is done, or that it is on him to write the next batch."""

    hold: HoldId
    to: Time
    told: Event = field(default_factory=Event)
    done: bool = False
    refused: ReadError | None = None
    failed: BaseException | None = None

    def end(self, refused: ReadError | None = None, failed: BaseException | None = None) -> None:
        self.done, self.refused, self.failed = True, refused, failed
        self.told.set()


class Advances:
    """From any thread."""

    def __init__(self, move: Move) -> None:
        self._move = move
        self._waiting: list[_Waiter] = []
        self._adding = Lock()
        self._writing = False

    def move(self, hold: HoldId, to: Time) -> ReadError | None:
        """Move a hold; durable on return. Why it could not be moved, or None."""
        own = _Waiter(hold, to)
        with self._adding:
            self._waiting.append(own)
            writes, self._writing = not self._writing, True
        if not writes:
            # Each is woken alone: one lock that all wait for would be handed from thread to thread.
            own.told.wait()
        if not own.done:
            try:
                while not own.done:
                    self._write()
            finally:
                self._hand_over()
        if own.failed is not None:
            raise own.failed
        return own.refused

    def _hand_over(self) -> None:
        """The oldest that waits writes next."""
        with self._adding:
            if self._waiting:
                self._waiting[0].told.set()
            else:
                self._writing = False

    def _write(self) -> None:
        """The oldest that wait, one for each hold: the next move of the same hold comes after it."""
        batch: dict[HoldId, _Waiter] = {}
        with self._adding:
            rest = []
            for waiter in self._waiting:
                if waiter.hold in batch:
                    rest.append(waiter)
                else:
                    batch[waiter.hold] = waiter
            self._waiting = rest
        try:
            crash_point("before_hold_advance")
            refused = self._move({hold: waiter.to for hold, waiter in batch.items()})
            crash_point("after_hold_advance")
        except BaseException as error:
            for waiter in batch.values():
                waiter.end(failed=error)
        else:
            for hold, waiter in batch.items():
                waiter.end(refused.get(hold))
