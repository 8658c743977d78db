"""Group commit of hold advances.

A client whose advance arrives while a batch is being written waits for the next batch. The first of the waiting clients
writes that batch for all of them, and then hands over to the first of those that came meanwhile. So there is one write
at a time, however many clients there are, and a client that is alone waits for nobody.
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
    """A client that waits until its advance is written, or until it has to write the next batch."""

    hold: HoldId
    to: Time
    woken: Event = field(default_factory=Event)
    done: bool = False
    refused: ReadError | None = None
    failed: BaseException | None = None

    def finish(self, refused: ReadError | None = None, failed: BaseException | None = None) -> None:
        self.done, self.refused, self.failed = True, refused, failed
        self.woken.set()


class HoldAdvances:
    """From any thread."""

    def __init__(self, move: Move) -> None:
        self._move = move
        self._lock = Lock()
        """Protects `_waiting` and `_writing`."""
        self._waiting: list[_Waiter] = []
        self._writing = False

    def move(self, hold: HoldId, to: Time) -> ReadError | None:
        """Move a hold; durable on return. Returns why it could not be moved, or None."""
        own = _Waiter(hold, to)
        with self._lock:
            self._waiting.append(own)
            writes, self._writing = not self._writing, True
        if not writes:
            # Each is woken alone: one lock that all wait for would be handed from thread to thread.
            own.woken.wait()
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
        """The client that waits longest writes next."""
        with self._lock:
            if self._waiting:
                self._waiting[0].woken.set()
            else:
                self._writing = False

    def _write(self) -> None:
        """Write one advance of each hold, in order: another one of the same hold comes in the next batch."""
        batch: dict[HoldId, _Waiter] = {}
        with self._lock:
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
                waiter.finish(failed=error)
        else:
            for hold, waiter in batch.items():
                waiter.finish(refused.get(hold))
