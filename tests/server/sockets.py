"""Socket-level clients: they stop reading, disconnect, or do not speak HTTP."""

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import h2.config
import h2.connection
import h2.events
import wsproto.events
from wsproto import ConnectionType, WSConnection


def connect(url: str, *, buffer: int | None = None) -> socket.socket:
    parts = urlsplit(url)
    opened = socket.socket()
    if buffer is not None:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    opened.settimeout(10)
    opened.connect((parts.hostname, parts.port))
    return opened


def request(path: str, body: object, *headers: str) -> bytes:
    content = json.dumps(body).encode()
    head = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        f"Content-Length: {len(content)}",
        "Content-Type: application/json",
    ]
    return "\r\n".join([*head, *headers, "", ""]).encode() + content


class Http1:
    """One request on an HTTP/1.1 connection; the response is read on demand."""

    def __init__(self, url: str, path: str, body: object) -> None:
        self.socket = connect(url, buffer=1 << 16)
        self.socket.sendall(request(path, body))

    def received(self) -> Iterator[bytes]:
        """The chunks of a chunked response body."""
        with self.socket.makefile("rb") as file:
            while file.readline().strip():
                pass
            while size := int(file.readline(), 16):
                yield file.read(size)
                file.readline()

    def go(self) -> None:
        self.socket.close()


class Http2:
    """One request on an HTTP/2 connection with prior knowledge; the window grows only as the response is read."""

    def __init__(self, url: str, path: str, body: object) -> None:
        self.socket = connect(url)
        self.connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.connection.initiate_connection()
        content = json.dumps(body).encode()
        head = [(":method", "POST"), (":path", path), (":scheme", "http"), (":authority", "localhost")]
        self.connection.send_headers(1, [*head, ("content-type", "application/json")])
        self.connection.send_data(1, content, end_stream=True)
        self._flush()

    def received(self) -> Iterator[bytes]:
        while content := self.socket.recv(1 << 16):
            for event in self.connection.receive_data(content):
                if isinstance(event, h2.events.DataReceived):
                    self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    yield event.data
                if isinstance(event, h2.events.StreamEnded):
                    return
            self._flush()

    def reset(self) -> None:
        """End the request, not the connection."""
        self.connection.reset_stream(1)
        self._flush()

    def go(self) -> None:
        self.socket.close()

    def _flush(self) -> None:
        self.socket.sendall(self.connection.data_to_send())


class WebSocket:
    """A connection whose response is read on demand."""

    def __init__(self, url: str, path: str, body: object, *, origin: str | None = None) -> None:
        self.socket = connect(url, buffer=1 << 16)
        self.connection = WSConnection(ConnectionType.CLIENT)
        headers = [(b"Origin", origin.encode())] if origin else []
        self._send(wsproto.events.Request(host=urlsplit(url).netloc, target=path, extra_headers=headers))
        self._events = self._received()
        self.status = next((event for event in self._events if not isinstance(event, wsproto.events.Ping)), None)
        if isinstance(self.status, wsproto.events.AcceptConnection):
            self._send(wsproto.events.TextMessage(json.dumps(body)))

    def received(self) -> Iterator[bytes]:
        """The text messages, until the server closes."""
        self.code = None
        for event in self._events:
            match event:
                case wsproto.events.TextMessage(data=data):
                    yield data.encode()
                case wsproto.events.CloseConnection(code=code):
                    self.code = code
                    return

    def close(self) -> None:
        self._send(wsproto.events.CloseConnection(1000))

    def go(self) -> None:
        self.socket.close()

    def _send(self, event: wsproto.events.Event) -> None:
        self.socket.sendall(self.connection.send(event))

    def _received(self) -> Iterator[wsproto.events.Event]:
        while content := self.socket.recv(1 << 16):
            self.connection.receive_data(content)
            yield from self.connection.events()
