"""The two protocols of one port: HTTP/1.1, and HTTP/2 with prior knowledge, which a client's first bytes tell apart.

HTTP/1.1 is uvicorn's, whose parser is the faster one; HTTP/2 is hypercorn's, which stops the sender of a stream whose
client has stopped reading.
"""

import asyncio
import logging
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from typing import Any

import orjson
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config as Http2Config
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from holdfast.server.problems import Code, Problem

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_HEAD = 64 << 10
"""Bytes that the URL and the headers of a request may have together."""
MAX_STREAMS = 1_000
"""Requests at a time on one HTTP/2 connection."""
IDLE_SECONDS = 75


class Protocol(HttpToolsProtocol):
    """A connection, which becomes one of HTTP/2 when it begins as such."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._first: bytes | None = b""
        self._head = 0

    def data_received(self, data: bytes) -> None:
        if self._first is not None:
            self._first += data
            if len(self._first) < len(PREFACE) and PREFACE.startswith(self._first):
                return
            data, self._first = self._first, None
            if data.startswith(PREFACE):
                self._become_http2(data)
                return
        super().data_received(data)

    def _become_http2(self, data: bytes) -> None:
        self.connections.discard(self)
        connection = Http2Connection(self.config, self.server_state, self.loop)
        self.transport.set_protocol(connection.protocol)
        connection.protocol.connection_made(self.transport)
        connection.protocol.data_received(data)

    def on_message_begin(self) -> None:
        self._head = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > MAX_HEAD:
            raise ValueError("the head of the request is too large")

    def send_400_response(self, msg: str) -> None:
        """The answer to what is not HTTP, in the shape of our other errors."""
        if self.transport.is_closing():
            return
        told = f"the head of the request is larger than {MAX_HEAD >> 10} KiB" if self._head > MAX_HEAD else msg
        body = orjson.dumps(Problem(Code.BAD_REQUEST, told).body)
        head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
        self.transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        self.transport.close()


class Http2Connection:
    """An HTTP/2 connection by hypercorn, which the server ends with the others."""

    def __init__(self, config: Config, state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        self._app, self._state, self._loop = config.loaded_app, state, loop
        self._context = WorkerContext(None)
        self._task: asyncio.Task[None] | None = None
        reader = StreamReader(loop=loop)
        self.protocol = StreamReaderProtocol(reader, self._connected, loop=loop)

    def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._state.connections.add(self)  # type: ignore[arg-type]
        run = TCPServer(ASGIWrapper(self._app), self._loop, _http2_config(), self._context, {}, reader, writer).run()
        self._task = self._loop.create_task(run)
        self._state.tasks.add(self._task)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._state.tasks.discard(task)
        self._state.connections.discard(self)
        if not task.cancelled() and (error := task.exception()) is not None:
            logging.getLogger(__name__).warning("an HTTP/2 connection failed: %r", error)

    def shutdown(self) -> None:
        """Take no more requests, and close once those that are there are answered."""
        self._loop.create_task(self._context.terminated.set())


def _http2_config() -> Http2Config:
    config = Http2Config()
    config.accesslog = None
    config.errorlog = logging.getLogger("hypercorn.error")
    config.include_server_header = False
    config.keep_alive_timeout = IDLE_SECONDS
    config.keep_alive_max_requests = 2**31
    config.h2_max_concurrent_streams = MAX_STREAMS
    return config
