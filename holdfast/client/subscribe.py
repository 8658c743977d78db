"""Subscriptions that outlive their connections."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import TYPE_CHECKING, Self

import anyio

from holdfast.client.answer import Progress
from holdfast.client.changes import Change, Patience, Place
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.client.aio import AsyncClient
    from holdfast.client.client import Client


class Subscription(Iterator[Change | Progress]):
    """The changes of a table or a query, time by time, each followed by the progress that ends it; for one thread.

    A lost connection is made again from where it was: no change is left out, and none given twice.
    """

    def __init__(self, client: "Client", place: Place, retry_seconds: float) -> None:
        self._client, self._place, self._patience = client, place, Patience(retry_seconds)
        self._given = self._changes()

    @property
    def resume_from(self) -> int | None:
        """The time of the last progress that was given. Kept, it is what another subscription can go on from."""
        return self._place.resume_from

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> Change | Progress:
        return next(self._given)

    def close(self) -> None:
        """End it. The server has forgotten it when this returns."""
        self._given.close()

    def _changes(self) -> Generator[Change | Progress, None, None]:
        while not self._place.ended:
            error = None
            try:
                with self._client.stream(self._place.text) as stream:
                    for part in stream.parts():
                        self._patience.again()
                        yield from self._place.take(part)
            except HoldfastError as problem:
                error = problem
            self._place.lost()
            if not self._place.ended:
                time.sleep(self._patience.wait(error))


class AsyncSubscription(AsyncIterator[Change | Progress]):
    """See `Subscription`."""

    def __init__(self, client: "AsyncClient", place: Place, retry_seconds: float) -> None:
        self._client, self._place, self._patience = client, place, Patience(retry_seconds)
        self._given = self._changes()

    @property
    def resume_from(self) -> int | None:
        """See `Subscription.resume_from`."""
        return self._place.resume_from

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def __anext__(self) -> Change | Progress:
        return await anext(self._given)

    async def close(self) -> None:
        """See `Subscription.close`."""
        await self._given.aclose()

    async def _changes(self) -> AsyncGenerator[Change | Progress, None]:
        while not self._place.ended:
            error = None
            try:
                async with self._client.stream(self._place.text) as stream:
                    async for part in stream.parts():
                        self._patience.again()
                        for given in self._place.take(part):
                            yield given
            except HoldfastError as problem:
                error = problem
            self._place.lost()
            if not self._place.ended:
                await anyio.sleep(self._patience.wait(error))
