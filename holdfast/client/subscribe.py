"""Subscriptions that survive lost connections."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import TYPE_CHECKING, Self

import anyio

from holdfast.client.changes import Backoff, Change, Resumption
from holdfast.client.response import Progress
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.client.aio import AsyncClient
    from holdfast.client.client import Client


class Subscription(Iterator[Change | Progress]):
    """The changes of a table or a query, time by time, each time followed by its progress; for one thread.

    It reconnects after a lost connection and resumes where it stopped: no change is missing or repeated.
    """

    def __init__(self, client: "Client", resumption: Resumption, retry_seconds: float) -> None:
        self._client, self._resumption, self._backoff = client, resumption, Backoff(retry_seconds)
        self._iterator = self._changes()

    @property
    def resume_from(self) -> int | None:
        """The time of the last progress. Store it with your results: another subscription can resume from it."""
        return self._resumption.resume_from

    @property
    def objects(self) -> str | None:
        """The ids of the objects that it reads, once it has begun. Store them with `resume_from`."""
        return self._resumption.objects

    @property
    def notice(self) -> str | None:
        """Why nothing more comes for now: a table has stopped. None if it is current."""
        return self._resumption.notice

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> Change | Progress:
        return next(self._iterator)

    def close(self) -> None:
        """End the subscription. The server has closed it when this returns."""
        self._iterator.close()

    def _changes(self) -> Generator[Change | Progress, None, None]:
        while not self._resumption.ended:
            error = None
            try:
                with self._client.stream(self._resumption.text, self._resumption.properties) as stream:
                    self._resumption.connected(stream.header)
                    for part in stream.parts():
                        self._backoff.reset()
                        yield from self._resumption.take(part)
            except HoldfastError as problem:
                error = problem
            self._resumption.lost()
            if not self._resumption.ended:
                time.sleep(self._backoff.next_delay(error))


class AsyncSubscription(AsyncIterator[Change | Progress]):
    """See `Subscription`."""

    def __init__(self, client: "AsyncClient", resumption: Resumption, retry_seconds: float) -> None:
        self._client, self._resumption, self._backoff = client, resumption, Backoff(retry_seconds)
        self._iterator = self._changes()

    @property
    def resume_from(self) -> int | None:
        """See `Subscription.resume_from`."""
        return self._resumption.resume_from

    @property
    def objects(self) -> str | None:
        """See `Subscription.objects`."""
        return self._resumption.objects

    @property
    def notice(self) -> str | None:
        """See `Subscription.notice`."""
        return self._resumption.notice

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def __anext__(self) -> Change | Progress:
        return await anext(self._iterator)

    async def close(self) -> None:
        """See `Subscription.close`."""
        await self._iterator.aclose()

    async def _changes(self) -> AsyncGenerator[Change | Progress, None]:
        while not self._resumption.ended:
            error = None
            try:
                async with self._client.stream(self._resumption.text, self._resumption.properties) as stream:
                    self._resumption.connected(stream.header)
                    async for part in stream.parts():
                        self._backoff.reset()
                        for change in self._resumption.take(part):
                            yield change
            except HoldfastError as problem:
                error = problem
            self._resumption.lost()
            if not self._resumption.ended:
                await anyio.sleep(self._backoff.next_delay(error))
