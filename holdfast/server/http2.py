"""HTTP/2 with prior knowledge, for uvicorn: the protocol itself is the library h2's.

What a client has no room for is not sent, and the application that sends it waits; what the application has not taken
is not acknowledged, and the client that sends it waits. Neither holds up the other requests of a connection.
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
"""Requests at a time on one connection."""
STREAM_WINDOW, CONNECTION_WINDOW = 1 << 20, 1 << 22
"""Bytes that a client may send ahead of what was taken."""
TURN = 16
"""Frames that one request may send before others have their turn."""
HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})

log = logging.getLogger(__name__)


class Http2Protocol(asyncio.Protocol):
    """A connection."""

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
        self._streams: dict[int, Stream] = {}
        self._stopping = False
        self._idle: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport
        self.flow: FlowControl

    # -- asyncio's calls -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport, self.flow = transport, FlowControl(transport)
        self._state.connections.add(self)  # type: ignore[arg-type]
        self.connection.initiate_connection()
        self.connection.increment_flow_control_window(CONNECTION_WINDOW - (1 << 16) + 1)
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._state.connections.discard(self)
        self._busy()
        for stream in list(self._streams.values()):
            stream.disconnect()
        self._streams.clear()
        self.flow.resume_writing()

    def data_received(self, data: bytes) -> None:
        try:
            for event in self.connection.receive_data(data):
                self._take(event)
        except h2.exceptions.ProtocolError as error:
            log.info("an HTTP/2 client broke the protocol: %s", error)
            self.flush()
            self._transport.close()
            return
        self.flush()
        if not self._streams:
            self._rest()

    def pause_writing(self) -> None:
        self.flow.pause_writing()

    def resume_writing(self) -> None:
        self.flow.resume_writing()

    def shutdown(self) -> None:
        """Take no more requests, and close once those that are there are answered."""
        self._stopping = True
        if not self._streams:
            self._close()

    # -- for its streams -----------------------------------------------------------------------------

    def flush(self) -> None:
        content = self.connection.data_to_send()
        if content and not self._transport.is_closing():
            self._transport.write(content)

    def ended(self, stream: "Stream") -> None:
        if self._streams.pop(stream.id, None) is not None and not self._streams:
            self._rest()

    # -- events --------------------------------------------------------------------------------------

    def _take(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                self._begin(event)
            case h2.events.DataReceived():
                stream = self._streams.get(event.stream_id)
                if stream is not None and not stream.answered:
                    stream.take(event.data, event.flow_controlled_length)
                else:
                    self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2.events.StreamEnded():
                if stream := self._streams.get(event.stream_id):
                    stream.take_end()
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
        self._busy()
        stream = self._streams[event.stream_id] = Stream(event.stream_id, self)
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

    # -- rest and end --------------------------------------------------------------------------------

    def _rest(self) -> None:
        if self._stopping:
            self._close()
        elif self._idle is None and not self._transport.is_closing():
            self._idle = self.loop.call_later(self._config.timeout_keep_alive, self._close)

    def _busy(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _close(self) -> None:
        if not self._transport.is_closing():
            self.connection.close_connection()
            self.flush()
            self._transport.close()


class Stream:
    """One request and its answer, as ASGI has them."""

    def __init__(self, id: int, protocol: Http2Protocol) -> None:
        self.id = id
        self.answered = False
        self.writable = asyncio.Event()
        self._protocol, self._connection = protocol, protocol.connection
        self._body = bytearray()
        self._unacknowledged = 0
        self._more = True
        self._readable = asyncio.Event()
        self._gone = False
        self._headed = False
        self._bodyless = False

    # -- what comes in -------------------------------------------------------------------------------

    def take(self, data: bytes, length: int) -> None:
        self._body += data
        self._unacknowledged += length
        self._readable.set()

    def take_end(self) -> None:
        self._more = False
        self._readable.set()

    def disconnect(self) -> None:
        self._gone = True
        self._readable.set()
        self.writable.set()

    # -- the application's side ----------------------------------------------------------------------

    async def run(self, app: Any, scope: dict[str, Any]) -> None:
        self._bodyless = scope["method"] == "HEAD"
        try:
            await app(scope, self.receive, self.send)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
        finally:
            if not self.answered and not self._gone:
                self._reset()
            self._acknowledge()
            self._protocol.flush()
            self._protocol.ended(self)

    async def receive(self) -> dict[str, Any]:
        if not self._gone and not self.answered:
            await self._readable.wait()
            self._readable.clear()
        if self._gone or self.answered:
            return {"type": "http.disconnect"}
        content, self._body = bytes(self._body), bytearray()
        self._acknowledge()
        self._protocol.flush()
        return {"type": "http.request", "body": content, "more_body": self._more}

    async def send(self, message: dict[str, Any]) -> None:
        if self._gone:
            return
        match message["type"]:
            case "http.response.start":
                self._head(message["status"], message.get("headers", ()))
            case "http.response.body":
                await self._send(message.get("body", b"") if not self._bodyless else b"")
                if not message.get("more_body", False) and not self._gone:
                    self._connection.end_stream(self.id)
                    self.answered = True
                    self._readable.set()
                    self._protocol.flush()

    def _head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        kept = [(name.lower(), value) for name, value in headers if name.lower() not in HOP_BY_HOP]
        self._connection.send_headers(self.id, [(b":status", b"%d" % status), *kept])
        self._headed = True
        self._protocol.flush()

    async def _send(self, content: bytes) -> None:
        rest, frames = memoryview(content), 0
        while rest and not self._gone:
            self.writable.clear()
            room = min(self._connection.local_flow_control_window(self.id), self._connection.max_outbound_frame_size)
            if room <= 0:
                self._protocol.flush()
                await self.writable.wait()
                continue
            self._connection.send_data(self.id, bytes(rest[:room]))
            rest, frames = rest[room:], frames + 1
            if frames % TURN == 0 or not rest:
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
        """Give up an answer: the client is told that it is not whole, and the other requests go on."""
        try:
            self._connection.reset_stream(self.id, h2.errors.ErrorCodes.INTERNAL_ERROR)
        except h2.exceptions.ProtocolError:
            log.debug("stream %d was gone already", self.id)
