"""The asyncio client: the methods of `Client`, awaited."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio
import httpx

from holdfast.client.changes import RETRY_SECONDS, Resumption, When
from holdfast.client.core import Call, ClientCore, Open, QueryStream, Read, Reply, RowsCore, Send, Step
from holdfast.client.entities import Entities
from holdfast.client.response import Notice, Part, Row, log_notice
from holdfast.client.result import Result
from holdfast.client.session import CLOSE_SECONDS, Properties, Request, Session
from holdfast.client.subscribe import AsyncSubscription
from holdfast.client.transport import connection, httpx_arguments, translate_errors
from holdfast.config import DEFAULT_SERVER
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class AsyncTransport:
    """Performs the steps of calls. At most one response is open at a time."""

    def __init__(self, http: httpx.AsyncClient, server: str) -> None:
        self._http, self._server = http, server
        self._open: httpx.Response | None = None
        self._received: AsyncIterator[bytes]

    async def run(self, call: Call[T]) -> T:
        try:
            step = next(call)
            while True:
                try:
                    result = await self._perform(step)
                except BaseException as error:
                    step = call.throw(error)
                else:
                    step = call.send(result)
        except StopIteration as done:
            returned: T = done.value
            return returned

    async def close(self) -> None:
        if self._open is not None:
            await self._open.aclose()

    async def _perform(self, step: Step) -> Reply | bytes | None:
        with translate_errors(self._server):
            match step:
                case Send(request):
                    response = await self._http.send(self._http.build_request(**httpx_arguments(request)))
                    return Reply(response.status_code, response.content)
                case Open(request):
                    self._open = await self._http.send(
                        self._http.build_request(**httpx_arguments(request)), stream=True
                    )
                    self._received = self._open.aiter_bytes()
                    return Reply(self._open.status_code, await self._open.aread() if self._open.is_error else b"")
                case Read():
                    return await anext(self._received, None)


class AsyncClient:
    """Sends statements and queries to one server. For one event loop; `SET` applies to all of its tasks."""

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        *,
        properties: Properties | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._core = ClientCore(server, properties)
        with translate_errors(self.server):
            self._http = httpx.AsyncClient(transport=transport, **connection(self.server, headers))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def server(self) -> str:
        return self._core.server

    @property
    def session(self) -> Session:
        """The properties of SET and the variables of DEFINE."""
        return self._core.session

    async def close(self) -> None:
        await self._http.aclose()

    async def execute(self, text: str, properties: Properties | None = None) -> Entities:
        """See `Client.execute`."""
        return await self._run(self._core.execute(text, properties))

    async def query(self, text: str, properties: Properties | None = None) -> Result:
        """See `Client.query`."""
        async with self.stream(text, properties) as stream:
            return Result(stream.header, [row async for row in stream])

    async def arrow(self, text: str, properties: Properties | None = None) -> "pa.Table":
        """See `Client.arrow`."""
        return await self._run(self._core.arrow(text, properties))

    def stream(self, text: str, properties: Properties | None = None) -> "AsyncStream":
        """See `Client.stream`; use it in an `async with` block."""
        return AsyncStream(self._core.rows(text, properties), AsyncTransport(self._http, self.server))

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
    ) -> AsyncSubscription:
        """See `Client.subscribe`."""
        resumption = Resumption(target, snapshot, as_of, up_to, resume_from, objects, on_notice)
        return AsyncSubscription(self, resumption, retry_seconds)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """The queries of an `async with` block read at one time. All tasks of the client are in the transaction."""
        await self.execute("BEGIN;")
        try:
            yield
        except BaseException:
            with suppress(HoldfastError):
                await self.execute("ROLLBACK;")
            self.session.leave_transaction()
            raise
        await self.execute("COMMIT;")

    async def lines(self, text: str, properties: Properties | None = None) -> AsyncIterator[str]:
        """See `Client.lines`."""
        lines, transport = self._core.lines(text, properties), AsyncTransport(self._http, self.server)
        try:
            await transport.run(lines.open())
            while (line := await transport.run(lines.next())) is not None:
                yield line
        finally:
            await transport.close()

    async def insert(self, target: str, rows: Any) -> int:
        """See `Client.insert`."""
        return await self._run(self._core.insert(target, rows))

    async def close_query(self, id: str) -> None:
        """See `Client.close_query`."""
        await self._run(self._core.close_query(id))

    async def info(self) -> Mapping[str, Any]:
        """See `Client.info`."""
        return await self._run(self._core.info())

    async def health(self) -> Mapping[str, Any]:
        """See `Client.health`."""
        return await self._run(self._core.health())

    async def send(self, request: Request) -> Any:
        """See `Client.send`."""
        return await self._run(self._core.send(request))

    async def _run(self, call: Call[T]) -> T:
        return await AsyncTransport(self._http, self.server).run(call)


class AsyncStream(QueryStream, AsyncIterator[Row]):
    """See `Stream`."""

    def __init__(self, core: RowsCore, transport: AsyncTransport) -> None:
        super().__init__(core)
        self._transport = transport

    async def __aenter__(self) -> Self:
        try:
            await self._transport.run(self._core.open())
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def parts(self) -> AsyncIterator[Part]:
        """See `Stream.parts`."""
        while (part := await self._transport.run(self._core.next_part())) is not None:
            yield part

    async def __anext__(self) -> Row:
        row = await self._transport.run(self._core.next())
        if row is None:
            raise StopAsyncIteration
        return row

    async def close(self) -> None:
        """See `Stream.close`."""
        try:
            # Notify the server if possible, even if the task is cancelled.
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await self._transport.run(self._core.close())
        finally:
            await self._transport.close()
