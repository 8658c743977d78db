"""The client for programs that do not wait: the same calls, awaited."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Self

import anyio
import httpx

from holdfast.client.answer import AnswerParser, Header, Part, Row, opened
from holdfast.client.changes import RETRY_SECONDS, Place, When
from holdfast.client.client import CONNECT_SECONDS, LIMITS, reaching
from holdfast.client.entities import Entities
from holdfast.client.result import Result
from holdfast.client.session import (
    CLOSE_SECONDS,
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
    printed_line,
    server_info,
)
from holdfast.client.subscribe import AsyncSubscription
from holdfast.config import DEFAULT_SERVER
from holdfast.errors import HoldfastError


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
        self.server = server.rstrip("/")
        self.session = Session(dict(properties or {}))
        with reaching(self.server):
            self._http = httpx.AsyncClient(
                base_url=self.server,
                headers=headers,
                limits=LIMITS,
                transport=transport,
                trust_env=False,
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def execute(self, text: str, properties: Properties | None = None) -> Entities:
        """See `Client.execute`."""
        entities = Entities(await self._answered(self.session.statements(text, properties)))
        self.session.carry(entities)
        return entities

    async def query(self, text: str, properties: Properties | None = None) -> Result:
        """See `Client.query`."""
        async with self.stream(text, properties) as stream:
            return Result(stream.header, [row async for row in stream])

    def stream(self, text: str, properties: Properties | None = None) -> "AsyncStream":
        """See `Client.stream`; use it in an `async with` block."""
        return AsyncStream(self, self.session.question(text, properties, progress=True))

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
        request = self.session.question(text, properties, progress=False)
        with reaching(self.server):
            response = await self._http.send(self._built(request), stream=True)
            try:
                if response.is_error:
                    await response.aread()
                    answered(response.status_code, response.content, self.server)
                async for line in response.aiter_lines():
                    yield printed_line(line)
            finally:
                await response.aclose()

    async def insert(self, target: str, rows: Any) -> int:
        """See `Client.insert`."""
        done = 0
        for request, sent in insert_requests(target, rows):
            response = await self._sent(request)
            done += inserted(response.status_code, response.content, self.server, sent=sent, before=done)
        return done

    async def close_query(self, id: str) -> None:
        """See `Client.close_query`."""
        await self._answered(close_query(id))

    async def info(self) -> Mapping[str, Any]:
        """See `Client.info`."""
        return server_info(await self._answered(INFO))

    async def health(self) -> Mapping[str, Any]:
        """See `Client.health`."""
        response = await self._sent(HEALTH)
        return healthy(response.status_code, response.content, self.server)

    async def _answered(self, request: Request) -> Any:
        response = await self._sent(request)
        return answered(response.status_code, response.content, self.server)

    async def _sent(self, request: Request) -> httpx.Response:
        with reaching(self.server):
            return await self._http.send(self._built(request))

    def _built(self, request: Request) -> httpx.Request:
        return self._http.build_request(
            request.method,
            request.path,
            content=request.body,
            headers=request.headers,
            timeout=httpx.Timeout(request.seconds, connect=CONNECT_SECONDS),
        )


class AsyncStream(AsyncIterator[Row]):
    """See `Stream`."""

    def __init__(self, client: AsyncClient, request: Request) -> None:
        self._client = client
        self._request = request
        self._response: httpx.Response | None = None
        self._received: AsyncIterator[bytes]
        self._parser = AnswerParser()
        self._ended = False

    async def __aenter__(self) -> Self:
        try:
            with reaching(self._client.server):
                self._response = await self._client._http.send(self._client._built(self._request), stream=True)
                if self._response.is_error:
                    await self._response.aread()
                    answered(self._response.status_code, self._response.content, self._client.server)
            self._received = self._response.aiter_bytes()
            while self._parser.header is None and not self._ended:
                await self._receive()
                if self._parser.header is None:
                    self._parser.take()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def header(self) -> Header:
        """See `Stream.header`."""
        return opened(self._parser)

    @property
    def time(self) -> int | None:
        """See `Stream.time`."""
        return self._parser.time

    @property
    def snapshot(self) -> int | None:
        """See `Stream.snapshot`."""
        return self._parser.snapshot

    async def parts(self) -> AsyncIterator[Part]:
        """See `Stream.parts`."""
        while not self._ended or self._parser.waiting:
            if (part := self._parser.take_part()) is not None:
                yield part
            elif not self._ended:
                await self._receive()

    async def __anext__(self) -> Row:
        while (row := self._parser.take()) is None:
            if self._ended:
                raise StopAsyncIteration
            await self._receive()
        return row

    async def close(self) -> None:
        """See `Stream.close`."""
        header = self._parser.header
        if not self._ended and header is not None and header.query is not None:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True), suppress(HoldfastError):
                await self._client.close_query(header.query)
        self._ended = True
        if self._response is not None:
            await self._response.aclose()

    async def _receive(self) -> None:
        with reaching(self._client.server):
            received = await anext(self._received, None)
        if received is None:
            self._ended = True
            self._parser.end()
        else:
            self._parser.feed(received)
