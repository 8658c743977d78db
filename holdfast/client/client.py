"""The blocking client."""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx

from holdfast.client.changes import RETRY_SECONDS, Resumption, When
from holdfast.client.core import Call, ClientCore, Open, QueryStream, Read, Reply, RowsCore, Send, Step
from holdfast.client.entities import Entities
from holdfast.client.response import Notice, Part, Row, log_notice
from holdfast.client.result import Result
from holdfast.client.session import Properties, Request, Session
from holdfast.client.stores.http import ClientReader
from holdfast.client.stores.moment import Moment
from holdfast.client.stores.store_type import StoreType, open_store
from holdfast.client.subscribe import Subscription
from holdfast.client.transport import connection, httpx_arguments, translate_errors
from holdfast.config import DEFAULT_SERVER
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
S = TypeVar("S")


class Transport:
    """Performs the steps of calls. At most one response is open at a time."""

    def __init__(self, http: httpx.Client, server: str) -> None:
        self._http, self._server = http, server
        self._open: httpx.Response | None = None
        self._received: Iterator[bytes] = iter(())

    def run(self, call: Call[T]) -> T:
        try:
            step = next(call)
            while True:
                try:
                    result = self._perform(step)
                except BaseException as error:
                    step = call.throw(error)
                else:
                    step = call.send(result)
        except StopIteration as done:
            returned: T = done.value
            return returned

    def close(self) -> None:
        if self._open is not None:
            self._open.close()

    def _perform(self, step: Step) -> Reply | bytes | None:
        with translate_errors(self._server):
            match step:
                case Send(request):
                    response = self._http.send(self._http.build_request(**httpx_arguments(request)))
                    return Reply(response.status_code, response.content)
                case Open(request):
                    self._open = self._http.send(self._http.build_request(**httpx_arguments(request)), stream=True)
                    self._received = self._open.iter_bytes()
                    return Reply(self._open.status_code, self._open.read() if self._open.is_error else b"")
                case Read():
                    return next(self._received, None)


class Client:
    """Sends statements and queries to one server. Thread-safe; `SET` applies to all threads."""

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        *,
        properties: Properties | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._core = ClientCore(server, properties)
        with translate_errors(self.server):
            self._http = httpx.Client(transport=transport, **connection(self.server, headers))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def server(self) -> str:
        return self._core.server

    @property
    def session(self) -> Session:
        """The properties of SET and the variables of DEFINE."""
        return self._core.session

    def close(self) -> None:
        self._http.close()

    def execute(self, text: str, properties: Properties | None = None) -> Entities:
        """Run statements that are not queries; returns one entity per statement."""
        return self._run(self._core.execute(text, properties))

    def query(self, text: str, properties: Properties | None = None) -> Result:
        """All rows of a SELECT: of a pull query, or of a push query with a LIMIT."""
        with self.stream(text, properties) as stream:
            return Result(stream.header, list(stream))

    def arrow(self, text: str, properties: Properties | None = None) -> "pa.Table":
        """All rows of a pull query, sent as Arrow: for large results. `TIMESTAMP` has microseconds."""
        return self._run(self._core.arrow(text, properties))

    def stream(self, text: str, properties: Properties | None = None) -> "Stream":
        """The rows of a SELECT as they arrive. Use it in a `with` block, whose end closes the query."""
        return Stream(self._core.rows(text, properties), Transport(self._http, self.server))

    def subscribe(
        self,
        target: str,
        *,
        resume_from: int | None = None,
        snapshot: bool = True,
        as_of: When | None = None,
        up_to: When | None = None,
        retry_seconds: float = RETRY_SECONDS,
        objects: str | None = None,
        on_notice: Callable[[Notice], None] = log_notice,
    ) -> Subscription:
        """The changes of a table or of a SELECT: its rows first, then added and removed rows, with progress.

        With the time of a progress message as `resume_from`, it continues from there: no change is missing or
        repeated. With `objects` of the earlier subscription it is refused if a table was dropped and created again.
        After a lost connection it resumes by itself, and retries while the server is unreachable.

        `on_notice` is called when a table stops, so that nothing comes, and when it goes on.
        """
        resumption = Resumption(target, snapshot, as_of, up_to, resume_from, objects, on_notice)
        return Subscription(self, resumption, retry_seconds)

    def store(self, name: str, type_: StoreType[S], *, as_of: Moment | None = None) -> S:
        """A table as a read-only store, with the queries of Kafka Streams: `db.store("COUNTS", window_store())`.

        `name` is the table's name in its case, as SHOW TABLES shows it.
        """
        return open_store(ClientReader(self), name, type_, as_of)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """The queries of a `with` block read at one time. All threads of the client are in the transaction."""
        self.execute("BEGIN;")
        try:
            yield
        except BaseException:
            with suppress(HoldfastError):
                self.execute("ROLLBACK;")
            self.session.leave_transaction()
            raise
        self.execute("COMMIT;")

    def lines(self, text: str, properties: Properties | None = None) -> Generator[str]:
        """The lines of a PRINT as they arrive; closing the iterator ends it."""
        lines, transport = self._core.lines(text, properties), Transport(self._http, self.server)
        try:
            transport.run(lines.open())
            while (line := transport.run(lines.next())) is not None:
                yield line
        finally:
            transport.close()

    def insert(self, target: str, rows: Any) -> int:
        """Insert rows: mappings, an Arrow table or a data frame. They are durable when this returns.

        Raises `RowRefused` with the numbers of the rows that the server refused.
        """
        return self._run(self._core.insert(target, rows))

    def close_query(self, id: str) -> None:
        """End a push query; its stream of rows ends without an error."""
        self._run(self._core.close_query(id))

    def info(self) -> Mapping[str, Any]:
        """Version, Kafka cluster and service id of the server."""
        return self._run(self._core.info())

    def health(self) -> Mapping[str, Any]:
        """The health of the server and its parts. An unhealthy server does not raise an error."""
        return self._run(self._core.health())

    def send(self, request: Request) -> Any:
        """Send a request that has no method of its own; returns the JSON of the response."""
        return self._run(self._core.send(request))

    def _run(self, call: Call[T]) -> T:
        return Transport(self._http, self.server).run(call)


class Stream(QueryStream, Iterator[Row]):
    """The rows of a query as they arrive, for one thread. The end of its `with` block closes the query."""

    def __init__(self, core: RowsCore, transport: Transport) -> None:
        super().__init__(core)
        self._transport = transport

    def __enter__(self) -> Self:
        try:
            self._transport.run(self._core.open())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def parts(self) -> Iterator[Part]:
        """The rows, progress messages, the end of the snapshot, and notices."""
        while (part := self._transport.run(self._core.next_part())) is not None:
            yield part

    def __next__(self) -> Row:
        row = self._transport.run(self._core.next())
        if row is None:
            raise StopIteration
        return row

    def close(self) -> None:
        """End the query. The server has closed it when this returns."""
        try:
            self._transport.run(self._core.close())
        finally:
            self._transport.close()
