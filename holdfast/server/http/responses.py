"""Responses: JSON, rows of pull queries in slices, rows of push queries and lines of PRINT as they arrive."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator

import anyio
import anyio.to_thread
import orjson
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from holdfast.errors import HoldfastError
from holdfast.kafka.tail import TopicTail
from holdfast.server.http.framing import Framing
from holdfast.server.http.push_sender import PushSender, SenderPool, slice_rows
from holdfast.server.problems import Problem, code_of
from holdfast.serving.printer import Printer
from holdfast.serving.results import PullResult

PRINT_SECONDS = 0.1
"""How often PRINT polls for new records."""


def json_response(body: object, status: int = 200) -> Response:
    return Response(orjson.dumps(body), status_code=status, media_type="application/json")


def problem_response(problem: Problem) -> Response:
    return json_response(problem.body, problem.status)


def pull_parts(result: PullResult, framing: Framing) -> Iterator[bytes]:
    yield framing.header(None, result.columns, result.notice)
    width = slice_rows(result.rows)
    for start in range(0, result.rows.num_rows, width):
        yield framing.rows(result.rows.slice(start, width), result.columns)
    yield framing.end("Query Completed")


def body(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}


class EndlessResponse(Response):
    """Sends parts until they end or the client disconnects."""

    def __init__(self, media_type: str) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch, receive, tasks.cancel_scope)
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                async for content in self.parts():
                    await send(body(content))
                await send(body(b"", more=False))
                tasks.cancel_scope.cancel()
        finally:
            await self.close()

    async def _watch(self, receive: Receive, sending: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        sending.cancel()

    @abstractmethod
    def parts(self) -> AsyncIterator[bytes]: ...

    @abstractmethod
    async def close(self) -> None:
        """Release the source of the parts, however they ended."""


class PushResponse(EndlessResponse):
    """The rows of a push query."""

    def __init__(self, sender: PushSender) -> None:
        super().__init__(sender.framing.media_type)
        self._sender = sender

    def parts(self) -> AsyncIterator[bytes]:
        return self._sender.parts()

    async def close(self) -> None:
        await self._sender.close()


class PrintResponse(EndlessResponse):
    """The records of a topic as lines of text. Occupies no thread between two reads of the topic."""

    def __init__(self, tail: TopicTail, printer: Printer, pool: SenderPool) -> None:
        super().__init__("text/plain")
        self._tail, self._printer, self._pool = tail, printer, pool

    async def parts(self) -> AsyncIterator[bytes]:
        try:
            while not self._printer.done and not self._pool.stopping:
                lines = await self._pool.read(self._next_lines)
                if lines:
                    yield "".join(f"{line}\n" for line in lines).encode()
                else:
                    await anyio.sleep(PRINT_SECONDS)
        except HoldfastError as error:
            yield orjson.dumps(Problem(code_of(error), error).body) + b"\n"

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._tail.close)

    def _next_lines(self) -> list[str]:
        return list(self._printer.lines(self._tail.next(0.0).to_pylist()))
