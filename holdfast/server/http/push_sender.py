"""Sends the rows of a push query to one client, over any kind of connection.

Nothing is encoded in advance: a slice is encoded when the client can take it, and the next batch is read after the last
slice. So the server holds one batch and one slice of it per client; the query's meter counts them.
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
from holdfast.server.http.framing import Framing
from holdfast.server.problems import Code, Problem, code_of
from holdfast.service.service import ServiceApi
from holdfast.serving.push.query import PushQuery
from holdfast.serving.results import Notice, PushBatch

SLICE_ROWS, SLICE_BYTES = 10_000, 256 << 10
"""Limits of a single write."""
PROGRESS_SECONDS = 1.0
READER_THREADS = 16
"""Threads that read push queries; a query that waits for rows needs none."""

log = logging.getLogger(__name__)
T = TypeVar("T")


class SenderPool:
    """Shared by the senders of one server: the wake-up, the reader threads and the stop flag."""

    def __init__(self, service: ServiceApi) -> None:
        self.service, self.wakeup = service, service.wakeup
        self.limiter = anyio.CapacityLimiter(READER_THREADS)
        self.stopping = False

    def stop(self) -> None:
        """End all push queries. Thread-safe."""
        self.stopping = True
        self.wakeup.notify()

    async def read(self, call: Callable[[], T]) -> T:
        """Run a blocking call in a reader thread."""
        return await anyio.to_thread.run_sync(call, limiter=self.limiter)


class PushEnd:
    """The push query has ended."""


END = PushEnd()


def next_batch(push: PushQuery) -> PushBatch | PushEnd | None:
    # A StopIteration cannot leave a worker thread.
    try:
        return push.next(0)
    except StopIteration:
        return END


def slice_rows(rows: pa.Table) -> int:
    fit: int = SLICE_BYTES * rows.num_rows // max(rows.nbytes, 1)
    return max(1, min(SLICE_ROWS, fit))


class PushSender:
    """The response of a push query, part by part."""

    def __init__(
        self, push: PushQuery, framing: Framing, pool: SenderPool, *, limit: int | None, progress: bool
    ) -> None:
        self.push, self.framing, self._pool, self._with_progress = push, framing, pool, progress
        self._limit, self._rows = limit, 0
        self._progress, self._progress_at = 0, 0.0
        self._notice: Notice | None = None

    async def parts(self) -> AsyncIterator[bytes]:
        """The header, rows as they arrive, and how the query ended."""
        yield self._header()
        message: str | None = None
        try:
            async for content in self._content():
                self.push.meter.sent(len(content))
                yield content
            message = "Limit Reached" if self._limit is not None and self._rows >= self._limit else "Query Completed"
        except HoldfastError as error:
            yield self.framing.error(Problem(code_of(error), error).body)
        except Exception:
            log.exception("push query failed: id=%s", self.push.id)
            problem = Problem(Code.SERVER_ERROR, "the query failed inside the server", hint="See the server's log.")
            yield self.framing.error(problem.body)
        yield self.framing.end(message)

    async def close(self) -> None:
        """Close the query: its client has disconnected or has received everything."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._pool.service.close_push, self.push.id)

    def _header(self) -> bytes:
        push, self._notice = self.push, self.push.notice
        notice = self._notice.message if self._notice is not None and not self._notice.current else None
        return self.framing.header(push.id, push.columns, notice, push.objects.ids if self._with_progress else None)

    async def _content(self) -> AsyncIterator[bytes]:
        push, pool = self.push, self._pool
        while not pool.stopping and not isinstance(batch := await pool.read(partial(next_batch, push)), PushEnd):
            if self._with_progress and push.notice is not None and push.notice != self._notice:
                self._notice = push.notice
                yield self.framing.notice(self._notice)
            if batch is not None:
                async for content in self._slices(batch):
                    yield content
                if self._with_progress and batch.snapshot is not None:
                    yield self.framing.snapshot(batch.snapshot)
            if self._with_progress and (batch is not None or time.monotonic() - self._progress_at >= PROGRESS_SECONDS):
                for content in self._new_progress():
                    yield content
            if batch is None:
                # Progress becomes due without a commit.
                seconds = push.seconds_to_wait()
                seconds = min(seconds, PROGRESS_SECONDS) if self._with_progress else seconds
                await pool.wakeup.wait_until(lambda: pool.stopping or push.ready(), seconds)
        if self._with_progress and self._limit is None:
            for content in self._new_progress():
                yield content

    async def _slices(self, batch: PushBatch) -> AsyncIterator[bytes]:
        width, size = slice_rows(batch.rows), batch.rows.nbytes
        for start in range(0, batch.rows.num_rows, width):
            content = batch.encoded.get((self.framing.key, start))
            if content is None:
                content = await self._pool.read(partial(self._encode, batch, start, width))
            if batch.shared:
                size += len(content)
            self.push.meter.buffer(size if batch.shared else size + len(content))
            yield content
            rows = min(width, batch.rows.num_rows - start)
            self._rows += rows
            self.push.meter.rows += rows
        PUSHED_ROWS.inc(batch.rows.num_rows)
        self.push.meter.buffer(0)

    def _new_progress(self) -> list[bytes]:
        """A progress message, if the progress has advanced."""
        at = self.push.time
        if at is None or at + 1 <= self._progress:
            return []
        self._progress, self._progress_at = at + 1, time.monotonic()
        return [self.framing.progress(at + 1)]

    def _encode(self, batch: PushBatch, start: int, width: int) -> bytes:
        content = self.framing.rows(batch.rows.slice(start, width), self.push.columns)
        if batch.shared:
            batch.encoded[self.framing.key, start] = content
        return content
