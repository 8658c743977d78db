"""/ws/query-stream: /query-stream over a WebSocket.

The client's first message is the body of a request to /query-stream. Each message of the server is one or more lines of
the delimited format; an error is a line, too. The server closes at the end of the response, the client at any time.
"""

from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from holdfast.errors import HoldfastError
from holdfast.server.http.framing import Delimited
from holdfast.server.http.requests import as_object, check_origin, sql_request
from holdfast.server.problems import Code, Problem, code_of
from holdfast.server.sql_request import SqlRequest

NORMAL_CLOSURE, POLICY_VIOLATION = 1000, 1008
MAX_MESSAGE = 1 << 20
"""Limit of the size of a client's message, in bytes."""

HTTP = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}}
"""The ASGI scope with which the responses of /query-stream are called."""

Answer = Callable[[SqlRequest, "SocketClient"], Awaitable[Response]]


class SocketClient:
    """The client of a socket, with the ASGI functions that a response needs."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._disconnected = False

    async def is_disconnected(self) -> bool:
        return self._disconnected

    async def receive(self) -> Message:
        """Returns when the client disconnects; ignores its other messages."""
        while not self._disconnected:
            self._disconnected = (await self._socket.receive())["type"] == "websocket.disconnect"
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        content = message.get("body")
        if content and not self._disconnected:
            try:
                await self._socket.send_text(content.decode())
            except WebSocketDisconnect:
                self._disconnected = True

    async def close(self, code: int) -> None:
        if not self._disconnected:
            await self._socket.close(code)


class QueryStream:
    """The endpoint; `answer` returns the response to a request."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def __call__(self, socket: WebSocket) -> None:
        try:
            check_origin(socket)
        except Problem:
            await socket.close(POLICY_VIOLATION)
            return
        await socket.accept()
        client = SocketClient(socket)
        try:
            response = await self._answer(await _read_request(socket), client)
        except WebSocketDisconnect:
            return
        except (Problem, HoldfastError) as error:
            problem = error if isinstance(error, Problem) else Problem(code_of(error), error)
            await client.send({"body": Delimited().error(problem.body)})
            await client.close(POLICY_VIOLATION)
            return
        await response(HTTP, client.receive, client.send)
        await client.close(NORMAL_CLOSURE)


async def _read_request(socket: WebSocket) -> SqlRequest:
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect
    content = message.get("bytes") or (message.get("text") or "").encode()
    if len(content) > MAX_MESSAGE:
        raise Problem(Code.TOO_LARGE, f"the message is larger than {MAX_MESSAGE >> 10} KiB")
    return sql_request(as_object(content, "the first message"), "sql", "ksql")
