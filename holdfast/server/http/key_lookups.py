"""Answers pull queries by key. Cached queries need no parsing; concurrent ones share one read."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from holdfast.catalog.snapshot import Catalog
from holdfast.server.http.framing import Framing
from holdfast.server.http.query_templates import KeyPositions, SplitText, key_positions, split_text
from holdfast.service.service import ServiceApi
from holdfast.serving.json_values import finite, json_rows
from holdfast.serving.pull.key_lookup import Key, KeyLookup, KeyRows
from holdfast.sql.read.select import BoundSelect, SelectKind

CACHED_QUERIES = 1_000
KEYS_PER_READ = 128

Threaded = Callable[..., Awaitable[Any]]


class LookupReader:
    """One cached query. Keys that arrive during a read wait for the next one."""

    def __init__(self, lookup: KeyLookup, service: ServiceApi, threaded: Threaded) -> None:
        self._lookup, self._service, self._threaded = lookup, service, threaded
        self._waiting: list[tuple[Key, asyncio.Future[KeyRows]]] = []
        self._reading: asyncio.Task[None] | None = None
        self._headers: dict[Hashable, bytes] = {}

    async def content(self, key: Key, framing: Framing) -> bytes:
        """The complete response for a key."""
        future: asyncio.Future[KeyRows] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, future))
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        found = await future
        position = found.positions.get(key)
        row = b"" if position is None else rows_of(found, framing)[position]
        return self._header(found, framing) + row + framing.end("Query Completed")

    def _header(self, found: KeyRows, framing: Framing) -> bytes:
        if found.notice is not None:
            return framing.header(None, found.columns, found.notice)
        if framing.key not in self._headers:
            self._headers[framing.key] = framing.header(None, found.columns, None)
        return self._headers[framing.key]

    async def _read(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:KEYS_PER_READ], self._waiting[KEYS_PER_READ:]
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
    """The encoded rows; encoded once for all requests of one read."""
    encoded = found.encoded.get(framing.key)
    if encoded is None:
        rows = found.rows if isinstance(found.rows, list) else list(json_rows(found.rows, found.columns))
        encoded = found.encoded[framing.key] = framing.encode_each(finite(rows, found.columns))
    return encoded


class LookupCache:
    """A cache of queries by key. Any change of the catalog clears it."""

    def __init__(self, service: ServiceApi, threaded: Threaded) -> None:
        self._service, self._threaded = service, threaded
        self._catalog: Catalog | None = None
        self._keys: OrderedDict[str, KeyPositions] = OrderedDict()
        self._readers: OrderedDict[Hashable, LookupReader] = OrderedDict()

    def find(self, text: str) -> tuple[SplitText | None, LookupReader | None, Key]:
        """The split text and, if its query is cached, the reader and the requested key."""
        catalog = self._service.catalog
        if catalog is not self._catalog:
            self._catalog = catalog
            self._keys.clear()
            self._readers.clear()
        split = split_text(text)
        positions = self._keys.get(split.template) if split is not None else None
        if split is None or positions is None:
            return split, None, ()
        return split, self._readers.get((split.template, positions.rest_of(split))), positions.key_of(split)

    def add(self, split: SplitText, bound: BoundSelect, catalog: Catalog) -> None:
        """Cache a query that was bound against a catalog, if it is a lookup by key."""
        if catalog is not self._catalog or bound.kind is not SelectKind.PULL:
            return
        lookup = self._service.prepare_lookup(bound)
        if lookup is None or any(constant.position is None for constant in lookup.constants):
            return
        offsets = tuple(constant.position.offset for constant in lookup.constants if constant.position is not None)
        positions = key_positions(split, offsets, lookup.key)
        if positions is None:
            return
        self._keys[split.template] = positions
        self._readers[split.template, positions.rest_of(split)] = LookupReader(lookup, self._service, self._threaded)
        for cache in (self._keys, self._readers):
            while len(cache) > CACHED_QUERIES:
                cache.popitem(last=False)
