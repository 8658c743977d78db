"""/inserts-stream: inserts rows as they arrive and acknowledges each, in order.

Rows are read even while acknowledgements are unread: a client may send all its rows first. Pending acknowledgements are
ranges, so their memory does not grow with the number of rows.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass

import anyio
import anyio.to_thread
import orjson
import pyarrow as pa
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.catalog.objects import CatalogObject
from holdfast.errors import BindError, HoldfastError
from holdfast.server.http.json_input import JsonRowReader, Row
from holdfast.server.http.requests import RowFormat, lines
from holdfast.server.http.responses import body
from holdfast.server.problems import Code, Json, Problem, code_of

BATCH_ROWS = 1_000
ACKS_PER_MESSAGE = 1_000
MAX_PENDING_ERRORS = 10_000
"""Reading of rows pauses while the client has not read this number of errors."""

Insert = Callable[[CatalogObject, pa.Table], None]
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Inserted:
    """Rows that were inserted, by number."""

    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that was not inserted, and why."""

    number: int
    problem: Problem


Outcome = Inserted | Rejected


class RowInserter:
    """Inserts batches of lines; a bad line does not affect the others."""

    def __init__(self, target: CatalogObject, insert: Insert, now_ms: Callable[[], int]) -> None:
        self._rows = JsonRowReader(target)
        self._insert, self._now_ms = insert, now_ms
        self._next = 0

    def write(self, batch: Sequence[bytes]) -> list[Outcome]:
        numbers = range(self._next, self._next + len(batch))
        self._next = numbers.stop
        read: list[tuple[int, Row]] = []
        outcomes: list[Outcome] = []
        for number, line in zip(numbers, batch, strict=True):
            try:
                read.append((number, self._rows.read(line)))
            except HoldfastError as error:
                outcomes.append(Rejected(number, Problem(Code.BAD_REQUEST, error)))
        outcomes += self._insert_all(read)
        return sorted(outcomes, key=lambda outcome: outcome.first if isinstance(outcome, Inserted) else outcome.number)

    def _insert_all(self, read: Sequence[tuple[int, Row]]) -> Iterator[Outcome]:
        if not read:
            return
        try:
            self._insert(self._rows.target, self._table(read))
            yield from ranges([number for number, _ in read])
        except UnrepresentableRows as error:
            if len(read) == 1:
                yield Rejected(read[0][0], Problem(Code.BAD_REQUEST, BindError(f"the row cannot be inserted: {error}")))
            else:
                for row in read:
                    yield from self._insert_all([row])
        except HoldfastError as error:
            yield from (Rejected(number, Problem(code_of(error), error)) for number, _ in read)

    def _table(self, read: Sequence[tuple[int, Row]]) -> pa.Table:
        try:
            return self._rows.table([row for _, row in read], self._now_ms())
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise UnrepresentableRows(str(error)) from None


class UnrepresentableRows(Exception):
    """Rows that Arrow cannot represent, such as strings that are not Unicode."""


def ranges(numbers: Sequence[int]) -> Iterator[Inserted]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield Inserted(first, last + 1)
            first = number
        last = number
    yield Inserted(first, last + 1)


class Acknowledgements:
    """Acknowledgements that are still to be sent to the client."""

    def __init__(self) -> None:
        self._pending: deque[Outcome] = deque()
        self._errors = 0
        self._more, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._ended = False

    async def add(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            last = self._pending[-1] if self._pending else None
            if isinstance(outcome, Inserted) and isinstance(last, Inserted) and last.end == outcome.first:
                self._pending[-1] = Inserted(last.first, outcome.end)
            else:
                self._pending.append(outcome)
                self._errors += isinstance(outcome, Rejected)
        self._more.set()
        if self._errors >= MAX_PENDING_ERRORS:
            self._room.clear()
            await self._room.wait()

    def end(self) -> None:
        self._ended = True
        self._more.set()

    async def take(self) -> AsyncIterator[list[Json]]:
        while True:
            while self._pending:
                yield self._next_acks()
            if self._ended:
                return
            self._more.clear()
            await self._more.wait()

    def _next_acks(self) -> list[Json]:
        acks: list[Json] = []
        while self._pending and len(acks) < ACKS_PER_MESSAGE:
            outcome = self._pending.popleft()
            if isinstance(outcome, Rejected):
                self._errors -= 1
                acks.append({"status": "error", "seq": outcome.number, **outcome.problem.body})
                continue
            end = min(outcome.end, outcome.first + ACKS_PER_MESSAGE - len(acks))
            acks += [{"status": "ok", "seq": number} for number in range(outcome.first, end)]
            if end < outcome.end:
                self._pending.appendleft(Inserted(end, outcome.end))
        if self._errors < MAX_PENDING_ERRORS:
            self._room.set()
        return acks


class InsertsResponse(Response):
    """Inserts the remaining lines of a request and acknowledges each."""

    def __init__(
        self,
        first: Sequence[bytes],
        rest: AsyncIterator[list[bytes]],
        writer: RowInserter,
        limiter: anyio.CapacityLimiter,
        format_: RowFormat,
    ) -> None:
        super().__init__(media_type=format_.value)
        del self.headers["content-length"]
        self._first, self._rest, self._writer, self._limiter = first, rest, writer, limiter
        self._array = format_ is RowFormat.ARRAY
        self._acks = Acknowledgements()
        self._failure: Problem | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write_all)
            await self._acknowledge(send)

    async def _write_all(self) -> None:
        try:
            await self._write(self._first)
            async for batch in self._rest:
                await self._write(batch)
        except ClientDisconnect:
            pass
        except Problem as problem:
            self._failure = problem
        except Exception:
            log.exception("insert failed")
            self._failure = Problem(Code.SERVER_ERROR, "the insert failed inside the server")
        finally:
            self._acks.end()

    async def _write(self, batch: Sequence[bytes]) -> None:
        for start in range(0, len(batch), BATCH_ROWS):
            part = batch[start : start + BATCH_ROWS]
            outcomes = await anyio.to_thread.run_sync(self._writer.write, part, limiter=self._limiter)
            await self._acks.add(outcomes)

    async def _acknowledge(self, send: Send) -> None:
        separator = b"[" if self._array else b""
        async for acks in self._acks.take():
            await send(body(self._lines(acks, separator)))
            separator = b",\n" if self._array else b""
        last = self._lines([self._failure.body], separator) if self._failure else b""
        opened = separator == b",\n" or bool(last)
        end = (b"]\n" if opened else b"[]\n") if self._array else b""
        await send(body(last + end, more=False))

    def _lines(self, parts: Sequence[Json], separator: bytes) -> bytes:
        if self._array:
            return separator + b",\n".join(map(orjson.dumps, parts))
        return b"".join(orjson.dumps(line) + b"\n" for line in parts)


async def first_lines(parts: AsyncIterator[bytes]) -> tuple[bytes, list[bytes], AsyncIterator[list[bytes]]]:
    """The first line, which names the target, the rows that arrived with it, and the rest."""
    batches = lines(parts)
    async for batch in batches:
        return batch[0], batch[1:], batches
    raise Problem(
        Code.BAD_REQUEST,
        "the body is empty",
        hint='Send {"target": "name"} as its first line, then one JSON object per line.',
    )
