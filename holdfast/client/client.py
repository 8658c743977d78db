"""The client for programs that wait."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Self

import httpx

from holdfast.client.answer import AnswerParser, Header, Part, Row, opened
from holdfast.client.changes import RETRY_SECONDS, Place, When
from holdfast.client.entities import Entities
from holdfast.client.result import Result
from holdfast.client.session import (
    HEALTH,
    INFO,
    Properties,
    Request,
    Session,
    answered,
    close_query,
    healthy,
    insert_requests,
    inserted,
    not_an_address,
    printed_line,
    server_info,
    unreachable,
)
from holdfast.client.subscribe import Subscription
from holdfast.config import DEFAULT_SERVER
from holdfast.errors import HoldfastError

CONNECT_SECONDS = 5.0
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)


@contextmanager
def reaching(server: str) -> Iterator[None]:
    """Tell of a server that is not there in our words."""
    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as cause:
        raise not_an_address(server, cause) from None
    except httpx.TransportError as cause:
        raise unreachable(server, cause) from None


class Client:
    """Statements and questions to one server. From any thread; `SET` holds for all of them."""

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        *,
        properties: Properties | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.server = server.rstrip("/")
        self.session = Session(dict(properties or {}))
        with reaching(self.server):
            # A proxy of the environment is for the internet, not for a server whose address was given.
            self._http = httpx.Client(
                base_url=self.server,
                headers=headers,
                limits=LIMITS,
                transport=transport,
                trust_env=False,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def execute(self, text: str, properties: Properties | None = None) -> Entities:
        """Run statements that are not queries; one entity each."""
        entities = Entities(self.ask(self.session.statements(text, properties)))
        self.session.carry(entities)
        return entities

    def query(self, text: str, properties: Properties | None = None) -> Result:
        """All rows of a SELECT: of a pull query, or of a push query with a LIMIT."""
        with self.stream(text, properties) as stream:
            return Result(stream.header, list(stream))

    def stream(self, text: str, properties: Properties | None = None) -> "Stream":
        """The rows of a SELECT as they come. Use it in a `with` block, whose end closes the query."""
        return Stream(self, self.session.question(text, properties, progress=True))

    def subscribe(
        self,
        target: str,
        *,
        resume_from: int | None = None,
        snapshot: bool = True,
        as_of: When | None = None,
        up_to: When | None = None,
        retry_seconds: float = RETRY_SECONDS,
    ) -> Subscription:
        """The changes of a table, or of a SELECT over one: its rows first, then what comes and goes, with progress.

        Given the time of a progress as `resume_from`, it goes on from there: no change is left out or given twice. It
        does so by itself when the connection is lost; a server that is away is waited for.
        """
        return Subscription(self, Place(target, snapshot, as_of, up_to, resume_from), retry_seconds)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """The queries of a `with` block are answered for one time. For one thread: the client is in the transaction."""
        self.execute("BEGIN;")
        try:
            yield
        except BaseException:
            with suppress(HoldfastError):
                self.execute("ROLLBACK;")
            self.session.leave()
            raise
        self.execute("COMMIT;")

    def lines(self, text: str, properties: Properties | None = None) -> Generator[str]:
        """The lines of a PRINT as they come; closing the iterator ends it."""
        request = self.session.question(text, properties, progress=False)
        with reaching(self.server):
            response = self._http.send(self._built(request), stream=True)
            try:
                if response.is_error:
                    response.read()
                    answered(response.status_code, response.content, self.server)
                for line in response.iter_lines():
                    yield printed_line(line)
            finally:
                response.close()

    def insert(self, target: str, rows: Any) -> int:
        """Insert rows: mappings, an Arrow table or a data frame. They are durable when this returns.

        `RowRefused` names the rows that were not taken.
        """
        done = 0
        for request, sent in insert_requests(target, rows):
            response = self._sent(request)
            done += inserted(response.status_code, response.content, self.server, sent=sent, before=done)
        return done

    def close_query(self, id: str) -> None:
        """End a push query; its rows then end without an error."""
        self.ask(close_query(id))

    def info(self) -> Mapping[str, Any]:
        """What the server is: version, cluster, service id."""
        return server_info(self.ask(INFO))

    def health(self) -> Mapping[str, Any]:
        """Whether the server works, by part; that it does not is no error here."""
        response = self._sent(HEALTH)
        return healthy(response.status_code, response.content, self.server)

    def ask(self, request: Request) -> Any:
        """Send a request that has no method of its own, and give the JSON of its answer."""
        response = self._sent(request)
        return answered(response.status_code, response.content, self.server)

    def _sent(self, request: Request) -> httpx.Response:
        with reaching(self.server):
            return self._http.send(self._built(request))

    def _built(self, request: Request) -> httpx.Request:
        return self._http.build_request(
            request.method,
            request.path,
            content=request.body,
            headers=request.headers,
            timeout=httpx.Timeout(request.seconds, connect=CONNECT_SECONDS),
        )


class Stream(Iterator[Row]):
    """The rows of a query as they come, for one thread. The end of its `with` block closes the query."""

    def __init__(self, client: Client, request: Request) -> None:
        self._client = client
        self._request = request
        self._response: httpx.Response | None = None
        self._received: Iterator[bytes] = iter(())
        self._parser = AnswerParser()
        self._ended = False

    def __enter__(self) -> Self:
        try:
            with reaching(self._client.server):
                self._response = self._client._http.send(self._client._built(self._request), stream=True)
                if self._response.is_error:
                    self._response.read()
                    answered(self._response.status_code, self._response.content, self._client.server)
            self._received = self._response.iter_bytes()
            while self._parser.header is None and not self._ended:
                self._receive()
                if self._parser.header is None:
                    self._parser.take()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def header(self) -> Header:
        """The columns, and the id of a push query."""
        return opened(self._parser)

    @property
    def time(self) -> int | None:
        """How far the rows taken so far have come: no change before this time is still to come."""
        return self._parser.time

    @property
    def snapshot(self) -> int | None:
        """The time of the rows that EMIT ALL begins with, once the last of them was taken: the others are changes."""
        return self._parser.snapshot

    def parts(self) -> Iterator[Part]:
        """The rows, and what stands between them: progress, and the end of a snapshot."""
        while not self._ended or self._parser.waiting:
            if (part := self._parser.take_part()) is not None:
                yield part
            elif not self._ended:
                self._receive()

    def __next__(self) -> Row:
        while (row := self._parser.take()) is None:
            if self._ended:
                raise StopIteration
            self._receive()
        return row

    def close(self) -> None:
        """End the query. The server has forgotten it when this returns."""
        header = self._parser.header
        if not self._ended and header is not None and header.query is not None:
            with suppress(HoldfastError):
                self._client.close_query(header.query)
        self._ended = True
        if self._response is not None:
            self._response.close()

    def _receive(self) -> None:
        with reaching(self._client.server):
            received = next(self._received, None)
        if received is None:
            self._ended = True
            self._parser.end()
        else:
            self._parser.feed(received)
