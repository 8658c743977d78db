"""/inserts-stream: rows as they come, each answered in its turn.

Reading never waits for answers to be read: a client may send all its rows before it reads the first answer. What is
still to be told is kept as ranges, however many rows they are of.
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
from holdfast.server.given import GivenRows, Row
from holdfast.server.problems import Code, Json, Problem, code_of
from holdfast.server.requests import Form, lines
from holdfast.server.streaming import body

BATCH_ROWS = 1_000
TOLD_AT_ONCE = 1_000
MOST_ERRORS = 10_000
"""So many errors that were not read yet stop the reading of rows."""

Insert = Callable[[CatalogObject, pa.Table], None]
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows that are in, by their numbers."""

    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that is not in, and why."""

    number: int
    problem: Problem


Outcome = Taken | Refused


class Writer:
    """Writes batches of lines; one line that does not fit leaves the others alone."""

    def __init__(self, target: CatalogObject, insert: Insert, now_ms: Callable[[], int]) -> None:
        self._rows = GivenRows(target)
        self._insert, self._now_ms = insert, now_ms
        self._next = 0

    def write(self, batch: Sequence[bytes]) -> list[Outcome]:
        numbers = range(self._next, self._next + len(batch))
        self._next = numbers.stop
        read: list[tuple[int, Row]] = []
        found: list[Outcome] = []
        for number, line in zip(numbers, batch, strict=True):
            try:
                read.append((number, self._rows.read(line)))
            except HoldfastError as error:
                found.append(Refused(number, Problem(Code.BAD_REQUEST, error)))
        found += self._insert_all(read)
        return sorted(found, key=lambda outcome: outcome.first if isinstance(outcome, Taken) else outcome.number)

    def _insert_all(self, read: Sequence[tuple[int, Row]]) -> Iterator[Outcome]:
        if not read:
            return
        try:
            self._insert(self._rows.target, self._table(read))
            yield from ranges([number for number, _ in read])
        except Unfit as error:
            if len(read) == 1:
                yield Refused(read[0][0], Problem(Code.BAD_REQUEST, BindError(f"the row cannot be taken: {error}")))
            else:
                for one in read:
                    yield from self._insert_all([one])
        except HoldfastError as error:
            yield from (Refused(number, Problem(code_of(error), error)) for number, _ in read)

    def _table(self, read: Sequence[tuple[int, Row]]) -> pa.Table:
        try:
            return self._rows.table([row for _, row in read], self._now_ms())
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise Unfit(str(error)) from None


class Unfit(Exception):
    """Rows that Arrow cannot hold, such as texts that are not Unicode."""


def ranges(numbers: Sequence[int]) -> Iterator[Taken]:
    first = before = numbers[0]
    for number in numbers[1:]:
        if number != before + 1:
            yield Taken(first, before + 1)
            first = number
        before = number
    yield Taken(first, before + 1)


class Answers:
    """What is still to be told to the client."""

    def __init__(self) -> None:
        self._waiting: deque[Outcome] = deque()
        self._errors = 0
        self._more, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._ended = False

    async def add(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            last = self._waiting[-1] if self._waiting else None
            if isinstance(outcome, Taken) and isinstance(last, Taken) and last.end == outcome.first:
                self._waiting[-1] = Taken(last.first, outcome.end)
            else:
                self._waiting.append(outcome)
                self._errors += isinstance(outcome, Refused)
        self._more.set()
        if self._errors >= MOST_ERRORS:
            self._room.clear()
            await self._room.wait()

    def end(self) -> None:
        self._ended = True
        self._more.set()

    async def take(self) -> AsyncIterator[list[Json]]:
        while True:
            while self._waiting:
                yield self._some()
            if self._ended:
                return
            self._more.clear()
            await self._more.wait()

    def _some(self) -> list[Json]:
        told: list[Json] = []
        while self._waiting and len(told) < TOLD_AT_ONCE:
            outcome = self._waiting.popleft()
            if isinstance(outcome, Refused):
                self._errors -= 1
                told.append({"status": "error", "seq": outcome.number, **outcome.problem.body})
                continue
            end = min(outcome.end, outcome.first + TOLD_AT_ONCE - len(told))
            told += [{"status": "ok", "seq": number} for number in range(outcome.first, end)]
            if end < outcome.end:
                self._waiting.appendleft(Taken(end, outcome.end))
        if self._errors < MOST_ERRORS:
            self._room.set()
        return told


class InsertsResponse(Response):
    """Takes the rest of a request's lines and answers each."""

    def __init__(
        self,
        first: Sequence[bytes],
        rest: AsyncIterator[list[bytes]],
        writer: Writer,
        limiter: anyio.CapacityLimiter,
        form: Form,
    ) -> None:
        super().__init__(media_type=form.value)
        del self.headers["content-length"]
        self._first, self._rest, self._writer, self._limiter = first, rest, writer, limiter
        self._array = form is Form.ARRAY
        self._answers = Answers()
        self._failure: Problem | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write_all)
            await self._tell(send)

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
            log.exception("an insert failed")
            self._failure = Problem(Code.SERVER_ERROR, "the insert failed inside the server")
        finally:
            self._answers.end()

    async def _write(self, batch: Sequence[bytes]) -> None:
        for start in range(0, len(batch), BATCH_ROWS):
            part = batch[start : start + BATCH_ROWS]
            outcomes = await anyio.to_thread.run_sync(self._writer.write, part, limiter=self._limiter)
            await self._answers.add(outcomes)

    async def _tell(self, send: Send) -> None:
        separator = b"[" if self._array else b""
        async for told in self._answers.take():
            await send(body(self._lines(told, separator)))
            separator = b",\n" if self._array else b""
        last = self._lines([self._failure.body], separator) if self._failure else b""
        opened = separator == b",\n" or bool(last)
        end = (b"]\n" if opened else b"[]\n") if self._array else b""
        await send(body(last + end, more=False))

    def _lines(self, told: Sequence[Json], separator: bytes) -> bytes:
        if self._array:
            return separator + b",\n".join(map(orjson.dumps, told))
        return b"".join(orjson.dumps(line) + b"\n" for line in told)


async def first_lines(parts: AsyncIterator[bytes]) -> tuple[bytes, list[bytes], AsyncIterator[list[bytes]]]:
    """The line that says where rows go, the rows that came with it, and the rest."""
    batches = lines(parts)
    async for batch in batches:
        return batch[0], batch[1:], batches
    raise Problem(
        Code.BAD_REQUEST,
        "the body is empty",
        hint='Send {"target": "name"} as its first line, then one JSON object per line.',
    )
