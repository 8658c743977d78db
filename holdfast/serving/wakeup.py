"""Wakes everything that waits for a commit: reader threads and coroutines of the server."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition


@dataclass(slots=True)
class _LoopWaiters:
    """The waiting coroutines of one event loop."""

    futures: set[asyncio.Future[None]] = field(default_factory=set)
    scheduled: bool = False
    """Whether a call of `wake` is already scheduled."""

    def wake(self) -> None:
        self.scheduled = False
        for future in self.futures:
            if not future.done():
                future.set_result(None)


class Wakeup:
    """Counts notifications. `notify` may be called from any thread and does not block."""

    def __init__(self) -> None:
        self._changed = Condition()
        """Protects `_count` and `_loops`, and wakes threads."""
        self._count = 0
        self._loops: dict[asyncio.AbstractEventLoop, _LoopWaiters] = {}

    @property
    def count(self) -> int:
        return self._count

    def notify(self) -> None:
        """Wake all waiters. An event loop is woken once per iteration, however often this is called."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()
            for loop, waiters in list(self._loops.items()):
                if not waiters.scheduled:
                    waiters.scheduled = True
                    try:
                        loop.call_soon_threadsafe(waiters.wake)
                    except RuntimeError:  # the loop is closed, and so are its waiters
                        del self._loops[loop]

    def wait(self, seen: int, timeout: float) -> int:
        """Block until the count is above `seen`, at most `timeout` seconds; returns the count."""
        with self._changed:
            self._changed.wait_for(lambda: self._count > seen, timeout)
            return self._count

    async def wait_until(self, ready: Callable[[], bool], timeout: float) -> None:
        """Wait until `ready()`, which is checked after every notification, at most `timeout` seconds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        try:
            while True:
                notified: asyncio.Future[None] = loop.create_future()
                self._add(loop, notified)
                try:
                    # Check only after registering: a notification between the check and the wait would be lost.
                    if ready():
                        return
                    async with asyncio.timeout_at(deadline):
                        await notified
                finally:
                    self._remove(loop, notified)
        except TimeoutError:
            return

    def _add(self, loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
        with self._changed:
            self._loops.setdefault(loop, _LoopWaiters()).futures.add(future)

    def _remove(self, loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
        with self._changed:
            waiters = self._loops.get(loop)
            if waiters is not None:
                waiters.futures.discard(future)
                if not waiters.futures and not waiters.scheduled:
                    del self._loops[loop]
