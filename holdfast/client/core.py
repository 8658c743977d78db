"""The calls of both clients, without I/O: each call is a generator of the I/O steps that it needs.

A client runs a call: it performs each step that the call yields and sends back the result, or throws the error, until
the call returns. `Client` performs steps by blocking; `AsyncClient` awaits them.
"""

from collections import deque
from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.client.entities import Entities
from holdfast.client.errors import BadResponse, ServerError
from holdfast.client.response import Header, Part, ResponseParser, Row
from holdfast.client.session import (
    ARROW,
    HEALTH,
    INFO,
    Properties,
    Request,
    Session,
    close_query,
    health_report,
    insert_requests,
    inserted,
    parse_response,
    printed_line,
    server_info,
)
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request; the result is its `Reply`."""

    request: Request


@dataclass(frozen=True, slots=True)
class Open:
    """Send a request and leave its response open for `Read`; the `Reply` has a body only if it is an error."""

    request: Request


@dataclass(frozen=True, slots=True)
class Read:
    """Read the next bytes of the open response; None at its end."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes


Step = Send | Open | Read
Call = Generator[Step, Any, T]


class ClientCore:
    """The calls of a client to one server."""

    def __init__(self, server: str, properties: Properties | None) -> None:
        self.server = server.rstrip("/")
        self.session = Session(dict(properties or {}))

    def send(self, request: Request) -> Call[Any]:
        reply: Reply = yield Send(request)
        return parse_response(reply.status, reply.body, self.server)

    def execute(self, text: str, properties: Properties | None) -> Call[Entities]:
        try:
            entities = Entities((yield from self.send(self.session.statements_request(text, properties))))
        except ServerError as error:
            self.session.apply_error(error)
            raise
        self.session.apply(entities)
        return entities

    def rows(self, text: str, properties: Properties | None) -> "RowsCore":
        return RowsCore(self, self.session.query_request(text, properties, progress=True))

    def arrow(self, text: str, properties: Properties | None) -> "Call[pa.Table]":
        import pyarrow as pa

        request = self.session.query_request(text, properties, progress=False, accept=ARROW)
        reply: Reply = yield Send(request)
        if reply.status >= 400:
            parse_response(reply.status, reply.body, self.server)
        try:
            return pa.ipc.open_stream(reply.body).read_all()
        except pa.ArrowException as cause:
            raise BadResponse(f"{self.server} did not send the rows as Arrow", detail=str(cause)) from cause

    def lines(self, text: str, properties: Properties | None) -> "LinesCore":
        return LinesCore(self, self.session.query_request(text, properties, progress=False))

    def insert(self, target: str, rows: Any) -> Call[int]:
        done = 0
        for request, sent in insert_requests(target, rows):
            reply: Reply = yield Send(request)
            done += inserted(reply.status, reply.body, self.server, sent=sent, before=done)
        return done

    def close_query(self, id: str) -> Call[None]:
        yield from self.send(close_query(id))

    def info(self) -> Call[Mapping[str, Any]]:
        return server_info((yield from self.send(INFO)))

    def health(self) -> Call[Mapping[str, Any]]:
        reply: Reply = yield Send(HEALTH)
        return health_report(reply.status, reply.body, self.server)


class RowsCore:
    """The calls of a stream of rows."""

    def __init__(self, core: ClientCore, request: Request) -> None:
        self._core, self._request = core, request
        self._parser = ResponseParser()
        self._ended = False

    @property
    def header(self) -> Header:
        if self._parser.header is None:
            raise RuntimeError("open the stream with a `with` block first")
        return self._parser.header

    @property
    def time(self) -> int | None:
        return self._parser.time

    @property
    def snapshot(self) -> int | None:
        return self._parser.snapshot

    @property
    def notice(self) -> str | None:
        return self._parser.notice

    def open(self) -> Call[None]:
        reply: Reply = yield Open(self._request)
        if reply.status >= 400:
            parse_response(reply.status, reply.body, self._core.server)
        while self._parser.header is None and not self._ended:
            yield from self._receive()
            if self._parser.header is None:
                # Raises the error that was sent instead of a header.
                self._parser.take()

    def next(self) -> Call[Row | None]:
        """The next row; None at the end."""
        while (row := self._parser.take()) is None and not self._ended:
            yield from self._receive()
        return row

    def next_part(self) -> Call[Part | None]:
        """The next row, progress, snapshot end or notice; None at the end."""
        while (part := self._parser.take_part()) is None and not self._ended:
            yield from self._receive()
        return part

    def close(self) -> Call[None]:
        """Close the query, unless it has ended."""
        header = self._parser.header
        ended, self._ended = self._ended, True
        if not ended and header is not None and header.query is not None:
            with suppress(HoldfastError):
                yield from self._core.close_query(header.query)

    def _receive(self) -> Call[None]:
        received: bytes | None = yield Read()
        if received is None:
            self._ended = True
            self._parser.end()
        else:
            self._parser.feed(received)


class QueryStream:
    """What the streams of both clients know about their query."""

    def __init__(self, core: RowsCore) -> None:
        self._core = core

    @property
    def header(self) -> Header:
        """The columns, and the id of a push query."""
        return self._core.header

    @property
    def time(self) -> int | None:
        """The progress of the rows read so far: no change before this time is still to come."""
        return self._core.time

    @property
    def snapshot(self) -> int | None:
        """The time of the snapshot of EMIT ALL, once its last row was read; the rows after it are changes."""
        return self._core.snapshot

    @property
    def notice(self) -> str | None:
        """Why the rows read so far are not current, and nothing more comes for now; None if they are."""
        return self._core.notice


class LinesCore:
    """The calls of a stream of lines."""

    def __init__(self, core: ClientCore, request: Request) -> None:
        self._core, self._request = core, request
        self._rest = b""
        self._lines: deque[bytes] = deque()

    def open(self) -> Call[None]:
        reply: Reply = yield Open(self._request)
        if reply.status >= 400:
            parse_response(reply.status, reply.body, self._core.server)

    def next(self) -> Call[str | None]:
        """The next line; None at the end."""
        while not self._lines:
            received: bytes | None = yield Read()
            if received is None:
                last, self._rest = self._rest, b""
                return printed_line(last.decode()) if last else None
            *complete, self._rest = (self._rest + received).split(b"\n")
            self._lines += complete
        return printed_line(self._lines.popleft().decode())
