"""The answer of a push query, part by part, for whatever connection it goes to.

Nothing is written ahead: the next slice is made when the client has room for it, and the next batch read after that.
So what the server holds for a client is one batch and one slice of it, which the query's meter counts.
"""

import logging
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TypeVar

import anyio.to_thread
import pyarrow as pa

from holdfast.errors import HoldfastError
from holdfast.metrics import PUSHED_ROWS
from holdfast.server.framing import Framing
from holdfast.server.problems import Code, Problem, code_of
from holdfast.server.pushes import Pushes
from holdfast.serving.results import Push, PushBatch

SLICE_ROWS, SLICE_BYTES = 10_000, 256 << 10
"""What is written at a time, at most."""
IDLE_SECONDS = 5.0
"""How often a push query is looked at that nobody woke."""
PROGRESS_SECONDS = 1.0

log = logging.getLogger(__name__)
T = TypeVar("T")


class End:
    """A push query that ended by itself."""


END = End()


def next_batch(push: Push) -> PushBatch | End | None:
    # A StopIteration cannot leave a worker thread.
    try:
        return push.next(0)
    except StopIteration:
        return END


def slice_rows(rows: pa.Table) -> int:
    fit: int = SLICE_BYTES * rows.num_rows // max(rows.nbytes, 1)
    return max(1, min(SLICE_ROWS, fit))


class Sending:
    """A push query on its way to one client."""

    def __init__(self, push: Push, framing: Framing, pushes: Pushes, *, limit: int | None, progress: bool) -> None:
        self.push, self.framing, self._pushes, self._progress = push, framing, pushes, progress
        self._limit, self._rows = limit, 0
        self._told, self._told_at = 0, 0.0

    async def parts(self) -> AsyncIterator[bytes]:
        """The header, rows as they come, and how it ended."""
        yield self.framing.header(self.push.id, self.push.columns, None)
        message: str | None = None
        try:
            async for content in self._going_on():
                self.push.meter.sent(len(content))
                yield content
            message = "Limit Reached" if self._limit is not None and self._rows >= self._limit else "Query Completed"
        except HoldfastError as error:
            yield self.framing.error(Problem(code_of(error), error).body)
        except Exception:
            log.exception("push query %s failed", self.push.id)
            problem = Problem(
                Code.SERVER_ERROR, "the query failed inside the server", hint="The server's log says why."
            )
            yield self.framing.error(problem.body)
        yield self.framing.end(message)

    async def close(self) -> None:
        """The client has gone, or has all."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._pushes.close, self.push)

    async def _going_on(self) -> AsyncIterator[bytes]:
        push, patience = self.push, PROGRESS_SECONDS if self._progress else IDLE_SECONDS
        while not isinstance(batch := await self._threaded(partial(next_batch, push)), End):
            if batch is not None:
                async for content in self._slices(batch):
                    yield content
                if self._progress and batch.snapshot is not None:
                    yield self.framing.snapshot(batch.snapshot)
            if self._progress and (batch is not None or time.monotonic() - self._told_at >= PROGRESS_SECONDS):
                for content in self._tell_progress():
                    yield content
            if batch is None:
                await self._pushes.bell.wait(push.ready, patience)
        if self._progress and self._limit is None:
            for content in self._tell_progress():
                yield content

    async def _slices(self, batch: PushBatch) -> AsyncIterator[bytes]:
        width, size = slice_rows(batch.rows), batch.rows.nbytes
        for start in range(0, batch.rows.num_rows, width):
            content = batch.encoded.get((self.framing.key, start))
            if content is None:
                content = await self._threaded(partial(self._encode, batch, start, width))
            if batch.shared:
                size += len(content)
            self.push.meter.buffer(size if batch.shared else size + len(content))
            yield content
            rows = min(width, batch.rows.num_rows - start)
            self._rows += rows
            self.push.meter.rows += rows
        PUSHED_ROWS.inc(batch.rows.num_rows)
        self.push.meter.buffer(0)

    def _tell_progress(self) -> list[bytes]:
        """How far everything was told, when it has come further."""
        at = self.push.time
        if at is None or at + 1 <= self._told:
            return []
        self._told, self._told_at = at + 1, time.monotonic()
        return [self.framing.progress(at + 1)]

    def _encode(self, batch: PushBatch, start: int, width: int) -> bytes:
        content = self.framing.rows(batch.rows.slice(start, width), self.push.columns)
        if batch.shared:
            batch.encoded[self.framing.key, start] = content
        return content

    async def _threaded(self, call: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(call, limiter=self._pushes.limiter)
