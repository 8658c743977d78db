"""Wakes the coroutines that wait for a tick."""

import asyncio
from collections.abc import Callable


class Bell:
    """`ring` may come from any thread, as often as it likes: one turn of the loop hears one."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._rung = False
        self._waiting: set[asyncio.Future[None]] = set()

    def ring(self) -> None:
        if self._loop is not None and not self._rung and self._waiting:
            self._rung = True
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:  # the loop has ended, and all who waited with it
                self._rung = False

    async def wait(self, pending: Callable[[], bool], timeout: float) -> None:
        """Return when something is pending, which a ring may have brought, at the latest after `timeout` seconds."""
        self._loop = loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        try:
            while True:
                rung: asyncio.Future[None] = loop.create_future()
                self._waiting.add(rung)
                try:
                    # Looked at only now: a ring between the look and the wait would go unheard.
                    if pending():
                        return
                    async with asyncio.timeout_at(deadline):
                        await rung
                finally:
                    self._waiting.discard(rung)
        except TimeoutError:
            return

    def _wake(self) -> None:
        self._rung = False
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
