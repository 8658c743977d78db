"""HTTP/2 with prior knowledge for uvicorn, on top of the library h2.

Flow control works in both directions: the application waits while the client's window is full, and the client waits
until the application has read what was sent. Neither blocks other requests on the connection.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
from h2.settings import SettingCodes, Settings
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.utils import get_local_addr, get_remote_addr
from uvicorn.server import ServerState

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_STREAMS = 1_000
"""Concurrent requests on one connection."""
STREAM_WINDOW, CONNECTION_WINDOW = 1 << 20, 1 << 22
"""Bytes that a client may send before the application reads them."""
FRAMES_PER_TURN = 16
"""Frames that one request sends before it yields to others."""
HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})

log = logging.getLogger(__name__)


class Http2Protocol(asyncio.Protocol):
    """An HTTP/2 connection."""

    def __init__(self, config: Config, state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        self._config, self._state, self.loop = config, state, loop
        self.connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding=None))
        self.connection.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: MAX_STREAMS,
                SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
                SettingCodes.MAX_HEADER_LIST_SIZE: 1 << 16,
            },
        )
        self._streams: dict[int, Http2Stream] = {}
        self._stopping = False
        self._idle: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport
        self.flow: FlowControl

    # -- called by asyncio ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport, self.flow = transport, FlowControl(transport)
        self._state.connections.add(self)  # type: ignore[arg-type]
        self.connection.initiate_connection()
        self.connection.increment_flow_control_window(CONNECTION_WINDOW - (1 << 16) + 1)
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._state.connections.discard(self)
        self._stop_idle_timer()
        for stream in list(self._streams.values()):
            stream.disconnect()
        self._streams.clear()
        self.flow.resume_writing()

    def data_received(self, data: bytes) -> None:
        try:
            for event in self.connection.receive_data(data):
                self._handle(event)
        except h2.exceptions.ProtocolError as error:
            log.info("HTTP/2 connection closed after a protocol error of the client: error=%s", error)
            self.flush()
            self._transport.close()
            return
        self.flush()
        if not self._streams:
            self._start_idle_timer()

    def pause_writing(self) -> None:
        self.flow.pause_writing()

    def resume_writing(self) -> None:
        self.flow.resume_writing()

    def shutdown(self) -> None:
        """Accept no more requests, and close once the current ones are complete."""
        self._stopping = True
        if not self._streams:
            self._close()

    # -- called by streams ---------------------------------------------------------------------------

    def flush(self) -> None:
        content = self.connection.data_to_send()
        if content and not self._transport.is_closing():
            self._transport.write(content)

    def ended(self, stream: "Http2Stream") -> None:
        if self._streams.pop(stream.id, None) is not None and not self._streams:
            self._start_idle_timer()

    # -- events --------------------------------------------------------------------------------------

    def _handle(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                self._begin(event)
            case h2.events.DataReceived():
                stream = self._streams.get(event.stream_id)
                if stream is not None and not stream.responded:
                    stream.receive_data(event.data, event.flow_controlled_length)
                else:
                    self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2.events.StreamEnded():
                if stream := self._streams.get(event.stream_id):
                    stream.receive_end()
            case h2.events.StreamReset():
                if stream := self._streams.pop(event.stream_id, None):
                    stream.disconnect()
            case h2.events.WindowUpdated(stream_id=int(id)) if id != 0:
                if stream := self._streams.get(id):
                    stream.writable.set()
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                for stream in self._streams.values():
                    stream.writable.set()
            case h2.events.ConnectionTerminated():
                self.shutdown()

    def _begin(self, event: h2.events.RequestReceived) -> None:
        assert event.stream_id is not None
        if self._stopping:
            self.connection.reset_stream(event.stream_id, h2.errors.ErrorCodes.REFUSED_STREAM)
            return
        self._stop_idle_timer()
        stream = self._streams[event.stream_id] = Http2Stream(event.stream_id, self)
        task = self.loop.create_task(stream.run(self._config.loaded_app, self._scope(event.headers or [])))
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)

    def _scope(self, headers: Iterable[tuple[bytes, bytes]]) -> dict[str, Any]:
        special = {name: value for name, value in headers if name.startswith(b":")}
        plain = [(name, value) for name, value in headers if not name.startswith(b":")]
        if b":authority" in special and not any(name == b"host" for name, _ in plain):
            plain.append((b"host", special[b":authority"]))
        path, _, query = special.get(b":path", b"/").partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "2",
            "server": get_local_addr(self._transport),
            "client": get_remote_addr(self._transport),
            "scheme": "http",
            "method": special[b":method"].decode("ascii"),
            "root_path": "",
            "path": unquote(path.decode("ascii", "replace")),
            "raw_path": path,
            "query_string": query,
            "headers": plain,
            "state": {},
        }

    # -- idle timeout and close -----------------------------------------------------------------------

    def _start_idle_timer(self) -> None:
        if self._stopping:
            self._close()
        elif self._idle is None and not self._transport.is_closing():
            self._idle = self.loop.call_later(self._config.timeout_keep_alive, self._close)

    def _stop_idle_timer(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _close(self) -> None:
        if not self._transport.is_closing():
            self.connection.close_connection()
            self.flush()
            self._transport.close()


class Http2Stream:
    """One request and its response, for an ASGI application."""

    def __init__(self, id: int, protocol: Http2Protocol) -> None:
        self.id = id
        self.responded = False
        self.writable = asyncio.Event()
        self._protocol, self._connection = protocol, protocol.connection
        self._body = bytearray()
        self._unacknowledged = 0
        self._more = True
        self._readable = asyncio.Event()
        self._disconnected = False
        self._headers_sent = False
        self._without_body = False

    # -- input ---------------------------------------------------------------------------------------

    def receive_data(self, data: bytes, length: int) -> None:
        self._body += data
        self._unacknowledged += length
        self._readable.set()

    def receive_end(self) -> None:
        self._more = False
        self._readable.set()

    def disconnect(self) -> None:
        self._disconnected = True
        self._readable.set()
        self.writable.set()

    # -- ASGI application ---------------------------------------------------------------------------

    async def run(self, app: Any, scope: dict[str, Any]) -> None:
        self._without_body = scope["method"] == "HEAD"
        try:
            await app(scope, self.receive, self.send)
        except Exception:
            log.exception("request failed: method=%s path=%s", scope["method"], scope["path"])
        finally:
            if not self.responded and not self._disconnected:
                self._reset()
            self._acknowledge()
            self._protocol.flush()
            self._protocol.ended(self)

    async def receive(self) -> dict[str, Any]:
        if not self._disconnected and not self.responded:
            await self._readable.wait()
            self._readable.clear()
        if self._disconnected or self.responded:
            return {"type": "http.disconnect"}
        content, self._body = bytes(self._body), bytearray()
        self._acknowledge()
        self._protocol.flush()
        return {"type": "http.request", "body": content, "more_body": self._more}

    async def send(self, message: dict[str, Any]) -> None:
        if self._disconnected:
            return
        match message["type"]:
            case "http.response.start":
                self._send_headers(message["status"], message.get("headers", ()))
            case "http.response.body":
                await self._send(message.get("body", b"") if not self._without_body else b"")
                if not message.get("more_body", False) and not self._disconnected:
                    self._connection.end_stream(self.id)
                    self.responded = True
                    self._readable.set()
                    self._protocol.flush()

    def _send_headers(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        allowed = [(name.lower(), value) for name, value in headers if name.lower() not in HOP_BY_HOP]
        self._connection.send_headers(self.id, [(b":status", b"%d" % status), *allowed])
        self._headers_sent = True
        self._protocol.flush()

    async def _send(self, content: bytes) -> None:
        rest, frames = memoryview(content), 0
        while rest and not self._disconnected:
            self.writable.clear()
            room = min(self._connection.local_flow_control_window(self.id), self._connection.max_outbound_frame_size)
            if room <= 0:
                self._protocol.flush()
                await self.writable.wait()
                continue
            self._connection.send_data(self.id, bytes(rest[:room]))
            rest, frames = rest[room:], frames + 1
            if frames % FRAMES_PER_TURN == 0 or not rest:
                self._protocol.flush()
                if self._protocol.flow.write_paused:
                    await self._protocol.flow.drain()
                elif rest:
                    await asyncio.sleep(0)

    def _acknowledge(self) -> None:
        if self._unacknowledged:
            self._connection.acknowledge_received_data(self._unacknowledged, self.id)
            self._unacknowledged = 0

    def _reset(self) -> None:
        """Abort the response: the client sees that it is incomplete; other requests are not affected."""
        try:
            self._connection.reset_stream(self.id, h2.errors.ErrorCodes.INTERNAL_ERROR)
        except h2.exceptions.ProtocolError:
            log.debug("stream was already closed id=%d", self.id)
