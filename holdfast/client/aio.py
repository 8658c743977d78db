"""The client for programs that do not wait: the same calls, awaited."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Self, TypeVar

import anyio
import httpx

from holdfast.client.answer import Header, Part, Row
from holdfast.client.changes import RETRY_SECONDS, Place, When
from holdfast.client.core import Call, Core, Open, Read, Reply, RowsCore, Send, Step
from holdfast.client.entities import Entities
from holdfast.client.result import Result
from holdfast.client.session import CLOSE_SECONDS, Properties, Request, Session
from holdfast.client.subscribe import AsyncSubscription
from holdfast.client.transport import as_sent, connection, reaching
from holdfast.config import DEFAULT_SERVER
from holdfast.errors import HoldfastError

T = TypeVar("T")


class AsyncTransport:
    """Performs the steps of calls, one answer open at a time."""

    def __init__(self, http: httpx.AsyncClient, server: str) -> None:
        self._http, self._server = http, server
        self._open: httpx.Response | None = None
        self._received: AsyncIterator[bytes]

    async def run(self, call: Call[T]) -> T:
        try:
            step = next(call)
            while True:
                try:
                    came = await self._perform(step)
                except BaseException as error:
                    step = call.throw(error)
                else:
                    step = call.send(came)
        except StopIteration as done:
            returned: T = done.value
            return returned

    async def close(self) -> None:
        if self._open is not None:
            await self._open.aclose()

    async def _perform(self, step: Step) -> Reply | bytes | None:
        with reaching(self._server):
            match step:
                case Send(request):
                    response = await self._http.send(self._http.build_request(**as_sent(request)))
                    return Reply(response.status_code, response.content)
                case Open(request):
                    self._open = await self._http.send(self._http.build_request(**as_sent(request)), stream=True)
                    self._received = self._open.aiter_bytes()
                    return Reply(self._open.status_code, await self._open.aread() if self._open.is_error else b"")
                case Read():
                    return await anext(self._received, None)


class AsyncClient:
    """Statements and questions to one server. For one event loop; `SET` holds for all of its tasks."""

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        *,
        properties: Properties | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._core = Core(server, properties)
        with reaching(self.server):
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
        """What SET and DEFINE have said."""
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
    ) -> AsyncSubscription:
        """See `Client.subscribe`."""
        return AsyncSubscription(self, Place(target, snapshot, as_of, up_to, resume_from), retry_seconds)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """The queries of an `async with` block are answered for one time. For one task: the client is in it."""
        await self.execute("BEGIN;")
        try:
            yield
        except BaseException:
            with suppress(HoldfastError):
                await self.execute("ROLLBACK;")
            self.session.leave()
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

    async def ask(self, request: Request) -> Any:
        """See `Client.ask`."""
        return await self._run(self._core.ask(request))

    async def _run(self, call: Call[T]) -> T:
        return await AsyncTransport(self._http, self.server).run(call)


class AsyncStream(AsyncIterator[Row]):
    """See `Stream`."""

    def __init__(self, core: RowsCore, transport: AsyncTransport) -> None:
        self._core, self._transport = core, transport

    async def __aenter__(self) -> Self:
        try:
            await self._transport.run(self._core.open())
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def header(self) -> Header:
        """See `Stream.header`."""
        return self._core.header

    @property
    def time(self) -> int | None:
        """See `Stream.time`."""
        return self._core.time

    @property
    def snapshot(self) -> int | None:
        """See `Stream.snapshot`."""
        return self._core.snapshot

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
            # Also when the task is cancelled: the server is told, if it can be.
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await self._transport.run(self._core.close())
        finally:
            await self._transport.close()
