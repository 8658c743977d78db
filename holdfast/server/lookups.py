"""Answers pull queries by key: known ones without parsing, those that come together by one read."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from holdfast.catalog.snapshot import Catalog
from holdfast.server.framing import Framing
from holdfast.server.service import Service
from holdfast.server.templates import Cut, Places, cut, places_of
from holdfast.server.values import finite, json_rows
from holdfast.serving.lookup import Key, KeyLookup, KeyRows
from holdfast.sql.bound import BoundSelect, SelectKind

KEPT = 1_000
"""Queries that are known; the one that was asked for longest ago goes first."""
AT_ONCE = 128
"""Keys of one read."""

Threaded = Callable[..., Awaitable[Any]]


class Reader:
    """One known query. The keys that come while a read is under way wait for the next one."""

    def __init__(self, lookup: KeyLookup, service: Service, threaded: Threaded) -> None:
        self._lookup, self._service, self._threaded = lookup, service, threaded
        self._waiting: list[tuple[Key, asyncio.Future[KeyRows]]] = []
        self._reading: asyncio.Task[None] | None = None
        self._heads: dict[Hashable, bytes] = {}

    async def content(self, key: Key, framing: Framing) -> bytes:
        """The whole answer for a key."""
        future: asyncio.Future[KeyRows] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, future))
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        found = await future
        place = found.places.get(key)
        row = b"" if place is None else rows_of(found, framing)[place]
        return self._head(found, framing) + row + framing.end("Query Completed")

    def _head(self, found: KeyRows, framing: Framing) -> bytes:
        if found.notice is not None:
            return framing.header(None, found.columns, found.notice)
        if framing.key not in self._heads:
            self._heads[framing.key] = framing.header(None, found.columns, None)
        return self._heads[framing.key]

    async def _read(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                try:
                    found = await self._threaded(self._service.lookup, self._lookup, [key for key, _ in batch])
                except Exception as error:
                    for _, future in batch:
                        if not future.done():
                            future.set_exception(error)
                else:
                    for _, future in batch:
                        if not future.done():
                            future.set_result(found)
        finally:
            self._reading = None


def rows_of(found: KeyRows, framing: Framing) -> list[bytes]:
    """Each row as it is sent; made once for all who asked together."""
    encoded = found.encoded.get(framing.key)
    if encoded is None:
        rows = found.rows if isinstance(found.rows, list) else list(json_rows(found.rows, found.columns))
        encoded = found.encoded[framing.key] = framing.each(finite(rows, found.columns))
    return encoded


class Lookups:
    """The queries by key that are known, of one catalog: a change of it makes all of them unknown again."""

    def __init__(self, service: Service, threaded: Threaded) -> None:
        self._service, self._threaded = service, threaded
        self._catalog: Catalog | None = None
        self._places: OrderedDict[str, Places] = OrderedDict()
        self._readers: OrderedDict[Hashable, Reader] = OrderedDict()

    def find(self, text: str) -> tuple[Cut | None, Reader | None, Key]:
        """How a text is cut, and when its query is known, its reader and the key that it asks for."""
        catalog = self._service.catalog
        if catalog is not self._catalog:
            self._catalog = catalog
            self._places.clear()
            self._readers.clear()
        found = cut(text)
        places = self._places.get(found.template) if found is not None else None
        if found is None or places is None:
            return found, None, ()
        return found, self._readers.get((found.template, places.rest_of(found))), places.key_of(found)

    def learn(self, found: Cut, bound: BoundSelect, catalog: Catalog) -> None:
        """Take up a query that was parsed and bound against a catalog, if it is one by key."""
        if catalog is not self._catalog or bound.kind is not SelectKind.PULL:
            return
        lookup = self._service.prepare_lookup(bound)
        if lookup is None or any(constant.position is None for constant in lookup.constants):
            return
        offsets = tuple(constant.position.offset for constant in lookup.constants if constant.position is not None)
        places = places_of(found, offsets, lookup.key)
        if places is None:
            return
        self._places[found.template] = places
        self._readers[found.template, places.rest_of(found)] = Reader(lookup, self._service, self._threaded)
        for kept in (self._places, self._readers):
            while len(kept) > KEPT:
                kept.popitem(last=False)
