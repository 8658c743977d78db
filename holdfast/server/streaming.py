"""Rows on their way to a client over HTTP: those of a pull in slices, those of a push as they come."""

from collections.abc import Iterator

import anyio
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from holdfast.server.framing import Framing
from holdfast.server.sending import Sending, slice_rows
from holdfast.serving.results import PullResult


def pull_parts(result: PullResult, framing: Framing) -> Iterator[bytes]:
    yield framing.header(None, result.columns, result.notice)
    width = slice_rows(result.rows)
    for start in range(0, result.rows.num_rows, width):
        yield framing.rows(result.rows.slice(start, width), result.columns)
    yield framing.end("Query Completed")


def body(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}


class PushResponse(Response):
    """Sends a push query's rows until it ends, the server stops, or the client goes, which closes the query."""

    def __init__(self, sending: Sending) -> None:
        super().__init__(media_type=sending.framing.media_type)
        del self.headers["content-length"]
        self._sending = sending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch, receive, tasks.cancel_scope)
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                async for content in self._sending.parts():
                    await send(body(content))
                await send(body(b"", more=False))
                tasks.cancel_scope.cancel()
        finally:
            await self._sending.close()

    async def _watch(self, receive: Receive, sending: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        sending.cancel()
