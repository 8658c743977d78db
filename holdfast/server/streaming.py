"""Rows on their way to a client: those of a pull in slices, those of a push as they come.

Nothing is written ahead: the next slice is made when the client has room for it, and the next batch read after that.
"""

import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread
import pyarrow as pa
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from holdfast.errors import HoldfastError
from holdfast.metrics import PUSHED_ROWS
from holdfast.server.framing import Framing
from holdfast.server.problems import Code, Problem, code_of
from holdfast.server.pushes import Pushes
from holdfast.serving.results import PullResult, Push, PushBatch

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


def pull_parts(result: PullResult, framing: Framing) -> Iterator[bytes]:
    yield framing.header(None, result.columns, result.notice)
    width = slice_rows(result.rows)
    for start in range(0, result.rows.num_rows, width):
        yield framing.rows(result.rows.slice(start, width), result.columns)
    yield framing.end("Query Completed")


def slice_rows(rows: pa.Table) -> int:
    fit: int = SLICE_BYTES * rows.num_rows // max(rows.nbytes, 1)
    return max(1, min(SLICE_ROWS, fit))


def body(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}


class PushResponse(Response):
    """Sends a push query's rows until it ends, the server stops, or the client goes, which closes the query."""

    def __init__(self, push: Push, framing: Framing, pushes: Pushes, *, limit: int | None, progress: bool) -> None:
        super().__init__(media_type=framing.media_type)
        del self.headers["content-length"]
        self._push, self._framing, self._pushes, self._progress = push, framing, pushes, progress
        self._limit, self._sent = limit, 0
        self._told_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch, receive, tasks.cancel_scope)
                await self._send_all(send)
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._pushes.close, self._push)

    async def _watch(self, receive: Receive, sending: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        sending.cancel()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send(body(self._framing.header(self._push.id, self._push.columns, None)))
        message: str | None = None
        try:
            async for content in self._parts():
                await send(body(content))
            message = "Limit Reached" if self._limit is not None and self._sent >= self._limit else "Query Completed"
        except HoldfastError as error:
            await send(body(self._framing.error(Problem(code_of(error), error).body)))
        except Exception:
            log.exception("push query %s failed", self._push.id)
            problem = Problem(
                Code.SERVER_ERROR, "the query failed inside the server", hint="The server's log says why."
            )
            await send(body(self._framing.error(problem.body)))
        await send(body(self._framing.end(message), more=False))

    async def _parts(self) -> AsyncIterator[bytes]:
        push, patience = self._push, PROGRESS_SECONDS if self._progress else IDLE_SECONDS
        while not isinstance(batch := await self._threaded(partial(next_batch, push)), End):
            if batch is not None:
                width = slice_rows(batch.rows)
                for start in range(0, batch.rows.num_rows, width):
                    content = batch.encoded.get((self._framing.key, start))
                    if content is None:
                        content = await self._threaded(partial(self._encode, batch, start, width))
                    yield content
                self._sent += batch.rows.num_rows
                PUSHED_ROWS.inc(batch.rows.num_rows)
                if self._progress and batch.snapshot is not None:
                    yield self._framing.snapshot(batch.snapshot)
            if self._progress and push.time is not None and (batch is not None or self._progress_is_due()):
                self._told_at = time.monotonic()
                yield self._framing.progress(push.time + 1)
            if batch is None:
                await self._pushes.bell.wait(push.ready, patience)

    def _progress_is_due(self) -> bool:
        return time.monotonic() - self._told_at >= PROGRESS_SECONDS

    def _encode(self, batch: PushBatch, start: int, width: int) -> bytes:
        content = self._framing.rows(batch.rows.slice(start, width), self._push.columns)
        if batch.shared:
            batch.encoded[self._framing.key, start] = content
        return content

    async def _threaded(self, call: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(call, limiter=self._pushes.limiter)
