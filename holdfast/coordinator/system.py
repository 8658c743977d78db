"""Keeps the system tables current: their rows are compared with those that were written last, and what differs is
written as a tick of its own. On the coordinator's thread."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from holdfast.catalog.objects import CatalogObject, Index, MaterializedView, Stream, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.catalog.system import QUERY, SYSTEM_TABLES
from holdfast.coordinator.clock import Clock
from holdfast.coordinator.cluster import WINDOW_MS, Cluster
from holdfast.names import CollectionId, show
from holdfast.runtime.store import schemas
from holdfast.runtime.store.port import Layout, Store, Time
from holdfast.types import Role

Row = tuple[Any, ...]
"""The values of a row's columns, those of the key first."""
Rows = dict[Row, Row]
"""The values of rows by their keys."""
Told = Mapping[str, Iterable[Row]]
"""Rows by the names of their tables."""

OLDEST_SECONDS = 1.0
"""Whoever reads a system table sees what was true at most so long ago."""


class SystemTables:
    """`told` gives the rows that only others know, such as those of open subscriptions."""

    def __init__(
        self, store: Store, clock: Clock, cluster: Cluster, catalog: Callable[[], Catalog], told: Callable[[], Told]
    ) -> None:
        self._store, self._clock, self._cluster = store, clock, cluster
        self._catalog, self._told = catalog, told
        self._written: dict[CollectionId, Rows] = {}
        self._refreshed_at = 0.0

    @property
    def stale(self) -> bool:
        return time.monotonic() - self._refreshed_at > OLDEST_SECONDS

    def install(self) -> None:
        """Make the tables, and know again what is in them."""
        ids = []
        for each in SYSTEM_TABLES:
            id_, layout = CollectionId(each.full_name), _layout(each.table)
            known = self._store.collections().get(id_)
            if known is not None and known != layout:
                self._store.drop_collection(id_)
            self._store.create_collection(id_, layout, window_ms=WINDOW_MS)
            ids.append(id_)
        self._store.set_upper(ids, Time(self._clock.read_time() + 1))
        for id_ in ids:
            keys = len(self._store.collections()[id_].key)
            pages = self._store.snapshot(id_, Time(self._store.frontier(id_).upper - 1))
            rows = [tuple(row.values())[:-1] for page in pages for row in page.to_pylist()]
            self._written[id_] = {row[:keys]: row[keys:] for row in rows}

    def refresh(self) -> None:
        """Write what has changed."""
        told = {**_of_catalog(self._catalog()), "mz_frontiers": self._frontiers(), **self._told()}
        changed: dict[CollectionId, pa.Table] = {}
        current: dict[CollectionId, Rows] = {}
        for each in SYSTEM_TABLES:
            id_, layout = CollectionId(each.full_name), _layout(each.table)
            keys = len(layout.key)
            now = current[id_] = {row[:keys]: row[keys:] for row in told[each.name]}
            before = self._written[id_]
            rows: dict[Row, Row | None] = {key: row for key, row in now.items() if before.get(key) != row}
            rows |= dict.fromkeys(before.keys() - now.keys())
            if rows:
                changed[id_] = _upserts(rows, layout)
        if changed:
            self._cluster.commit_rows(QUERY, changed)
            self._written.update(current)
        self._refreshed_at = time.monotonic()

    def _frontiers(self) -> Sequence[Row]:
        found = []
        for kept in self._catalog().holdable:
            if CollectionId(kept.name) in self._store.collections():
                frontier = self._store.frontier(CollectionId(kept.name))
                found.append((kept.name, frontier.since, frontier.upper))
        return found


def _layout(table: Table) -> Layout:
    return Layout(tuple(c.type for c in table.schema.key), tuple(c.type for c in table.schema.value))


def _upserts(rows: Mapping[Row, Row | None], layout: Layout) -> pa.Table:
    now = int(time.time() * 1000)
    records = []
    for key, row in rows.items():
        shown = row if row is not None else (None,) * len(layout.value)
        record = {f"k{i}": value for i, value in enumerate(key)} | {f"c{i}": value for i, value in enumerate(shown)}
        records.append({**record, "ts": now, "present": row is not None})
    return pa.Table.from_pylist(records, schema=schemas.upsert_schema(layout))


def _of_catalog(catalog: Catalog) -> Told:
    everything = list(catalog.objects.values())
    return {
        "mz_objects": [
            (each.name, each.name, each.KIND)
            for each in (*everything, *catalog.views.values(), *catalog.indexes.values())
        ],
        "mz_indexes": [
            (
                index.name,
                index.name,
                index.on,
                WINDOW_MS if index.retain_ms is None else index.retain_ms,
                index.statement,
            )
            for index in catalog.indexes.values()
        ],
        "mz_index_columns": [row for index in catalog.indexes.values() for row in _index_columns(index, catalog)],
        "mz_tables": [
            (*_common(t), t.query, _retained_ms(t), t.statement)
            for t in everything
            if isinstance(t, Table) and not isinstance(t, MaterializedView)
        ],
        "mz_materialized_views": [
            (v.name, v.name, ", ".join(_reads(v, catalog)), v.query, _retained_ms(v), v.statement)
            for v in catalog.materialized_views
        ],
        "mz_streams": [(*_common(s), s.query, s.statement) for s in everything if isinstance(s, Stream)],
        "mz_sources": [(o.name, o.name, o.KIND, o.topic, o.read_only) for o in everything if not o.derived],
        "mz_views": [(v.name, v.name, ", ".join(v.sources), v.definition) for v in catalog.views.values()],
        "mz_columns": [row for found in everything for row in _columns(found)],
    }


def _retained_ms(table: Table) -> int:
    return WINDOW_MS if table.retain_ms is None else table.retain_ms


def _reads(view: MaterializedView, catalog: Catalog) -> Iterable[str]:
    """What its query reads; nothing, when that was terminated."""
    query = catalog.queries.get(view.query) if view.query is not None else None
    return query.sources if query is not None else ()


def _common(found: CatalogObject) -> Row:
    formats = found.formats
    return found.name, found.name, found.topic, formats.key_format.format, formats.value_format.format


def _index_columns(index: Index, catalog: Catalog) -> Iterable[Row]:
    """A column is told by its position, anything else by its text."""
    schema = index.schema
    if index.on in catalog.views:
        yield from ((index.name, place, None, text, True) for place, text in enumerate(index.by, start=1))
        return
    positions = {show(c.name): i for i, c in enumerate((*schema.key, *schema.value, *schema.headers), start=1)}
    for place, text in enumerate(index.by, start=1):
        at = positions.get(text)
        yield index.name, place, at, None if at is not None else text, at is None or at > len(schema.key)


def _columns(found: CatalogObject) -> Iterable[Row]:
    schema = found.schema
    for place, column in enumerate((*schema.key, *schema.value, *schema.headers), start=1):
        role = "KEY" if column.role is Role.KEY else "HEADERS" if column.role is Role.HEADERS else "VALUE"
        yield found.name, place, column.name, str(column.type), role
