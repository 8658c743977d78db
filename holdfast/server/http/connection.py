"""Connections to the HTTP port: HTTP/1.1, or HTTP/2 with prior knowledge, which the first bytes distinguish.

uvicorn implements HTTP/1.1; HTTP/2 is in `holdfast.server.http.http2`.
"""

import asyncio
from typing import Any

import orjson
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from holdfast.server.http.http2 import PREFACE, Http2Protocol
from holdfast.server.problems import Code, Problem

MAX_HEAD = 64 << 10
"""Limit of the size of a request's URL and headers, in bytes."""
FIELD_OVERHEAD = 32
"""Bytes added for each header, as in HTTP/2, so that many empty headers count, too."""
IDLE_SECONDS = 75


class HttpConnection(HttpToolsProtocol):
    """A connection; switches to HTTP/2 if it starts with the HTTP/2 preface."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._first_bytes: bytes | None = b""
        self._head = 0

    def data_received(self, data: bytes) -> None:
        if self._first_bytes is not None:
            self._first_bytes += data
            if len(self._first_bytes) < len(PREFACE) and PREFACE.startswith(self._first_bytes):
                return
            data, self._first_bytes = self._first_bytes, None
            if data.startswith(PREFACE):
                self._switch_to_http2(data)
                return
        super().data_received(data)

    def _switch_to_http2(self, data: bytes) -> None:
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
        self._count(len(name) + len(value) + FIELD_OVERHEAD)
        super().on_header(name, value)

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > MAX_HEAD:
            raise ValueError("the request's headers are too large")

    def send_400_response(self, msg: str) -> None:
        """The response to an invalid HTTP request, in the format of our other errors."""
        if self.transport.is_closing():
            return
        message = f"the request's headers are larger than {MAX_HEAD >> 10} KiB" if self._head > MAX_HEAD else msg
        body = orjson.dumps(Problem(Code.BAD_REQUEST, message).body)
        head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
        self.transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        self.transport.close()
