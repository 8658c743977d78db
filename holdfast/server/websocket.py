"""/ws/query-stream: what /query-stream answers, over a WebSocket.

The client's first message is the body of a request to /query-stream. Each message of the server is one or more lines of
the delimited form; an error is a line, too. The server closes once the answer has ended, the client when it likes.
"""

from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from holdfast.errors import HoldfastError
from holdfast.server.framing import Delimited
from holdfast.server.problems import Code, Problem, code_of
from holdfast.server.requests import Asked, as_object, asked, check_origin

ENDED, REFUSED = 1000, 1008
MAX_MESSAGE = 1 << 20
"""Bytes that a client's message may have."""

HTTP = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}}
"""The answers are those of HTTP; only their way is another."""

Answer = Callable[[Asked, "Client"], Awaitable[Response]]


class Client:
    """The other side of a socket, as an answer sees the client of a request."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._gone = False

    async def is_disconnected(self) -> bool:
        return self._gone

    async def receive(self) -> Message:
        """Ends when the client goes; whatever else it says after its question is of no meaning."""
        while not self._gone:
            self._gone = (await self._socket.receive())["type"] == "websocket.disconnect"
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        content = message.get("body")
        if content and not self._gone:
            try:
                await self._socket.send_text(content.decode())
            except WebSocketDisconnect:
                self._gone = True

    async def close(self, code: int) -> None:
        if not self._gone:
            await self._socket.close(code)


class QueryStream:
    """The endpoint; `answer` is what a request would be answered with."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def __call__(self, socket: WebSocket) -> None:
        try:
            check_origin(socket)
        except Problem:
            await socket.close(REFUSED)
            return
        await socket.accept()
        client = Client(socket)
        try:
            response = await self._answer(await _question(socket), client)
        except WebSocketDisconnect:
            return
        except (Problem, HoldfastError) as error:
            problem = error if isinstance(error, Problem) else Problem(code_of(error), error)
            await client.send({"body": Delimited().error(problem.body)})
            await client.close(REFUSED)
            return
        await response(HTTP, client.receive, client.send)
        await client.close(ENDED)


async def _question(socket: WebSocket) -> Asked:
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect
    content = message.get("bytes") or (message.get("text") or "").encode()
    if len(content) > MAX_MESSAGE:
        raise Problem(Code.TOO_LARGE, f"the message is larger than {MAX_MESSAGE >> 10} KiB")
    return asked(as_object(content, "the first message"), "sql", "ksql")
