"""The two protocols of one port: HTTP/1.1, and HTTP/2 with prior knowledge, which a client's first bytes tell apart.

HTTP/1.1 is uvicorn's own, HTTP/2 is in `holdfast.server.http2`.
"""

import asyncio
from typing import Any

import orjson
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from holdfast.server.http2 import PREFACE, Http2Protocol
from holdfast.server.problems import Code, Problem

MAX_HEAD = 64 << 10
"""Bytes that the URL and the headers of a request may have together."""
FIELD = 32
"""What a header counts beside its bytes, as in HTTP/2: many empty ones are not free either."""
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
        protocol = Http2Protocol(self.config, self.server_state, self.loop)
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        protocol.data_received(data)

    def on_message_begin(self) -> None:
        self._head = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + FIELD)
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
