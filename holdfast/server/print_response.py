"""The answer to PRINT: lines of text as records come, until the limit, the client's end or the server's."""

import logging

import anyio
import anyio.to_thread
import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.errors import HoldfastError
from holdfast.server.problems import Problem, code_of
from holdfast.server.pushes import Pushes
from holdfast.server.service import Tail
from holdfast.server.streaming import body
from holdfast.serving.printed import Printer

LOOK_AGAIN_SECONDS = 0.1

log = logging.getLogger(__name__)


class PrintResponse(Response):
    """Sends lines. Between two looks at the topic no thread waits."""

    media_type = "text/plain"

    def __init__(self, tail: Tail, printer: Printer, pushes: Pushes) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._tail, self._printer, self._pushes = tail, printer, pushes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch, receive, tasks.cancel_scope)
                await self._send_all(send)
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._tail.close)

    async def _watch(self, receive: Receive, sending: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        sending.cancel()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            while not self._printer.done and not self._pushes.stopping:
                lines = await anyio.to_thread.run_sync(self._next, limiter=self._pushes.limiter)
                if lines:
                    await send(body("".join(f"{line}\n" for line in lines).encode()))
                else:
                    await anyio.sleep(LOOK_AGAIN_SECONDS)
        except HoldfastError as error:
            await send(body(orjson.dumps(Problem(code_of(error), error).body) + b"\n"))
        await send(body(b"", more=False))

    def _next(self) -> list[str]:
        return list(self._printer.lines(self._tail.next(0.0).to_pylist()))
