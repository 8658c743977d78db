"""The system tables: their rows are compared with those written last, and the differences are committed as a tick of
their own."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from holdfast.catalog.objects import CatalogObject, Index, MaterializedView, Stream, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.catalog.system import QUERY, SYSTEM_TABLES
from holdfast.coordinator.commit import CommitPoint
from holdfast.coordinator.intervals import WINDOW_MS
from holdfast.coordinator.uppers import Uppers
from holdfast.names import CollectionId, show
from holdfast.runtime import physical_columns as col
from holdfast.runtime.store import schemas
from holdfast.runtime.store.port import Layout, Store, Time
from holdfast.types import Role
from holdfast.wall_clock import WallClock

Row = tuple[Any, ...]
"""The values of a row's columns, those of the key first."""
Rows = dict[Row, Row]
"""The values of rows by their keys."""
RowsByTable = Mapping[str, Iterable[Row]]

MAX_AGE_SECONDS = 1.0
"""A reader of a system table sees rows that are at most this old."""


class SystemTables:
    """Writes the system tables once they are installed. On the coordinator's thread.

    `status_rows` gives the rows that do not come from the catalog or the store, such as those of subscriptions.
    """

    def __init__(
        self,
        store: Store,
        uppers: Uppers,
        commit: CommitPoint,
        catalog: Callable[[], Catalog],
        status_rows: Callable[[], RowsByTable],
        clock: WallClock,
    ) -> None:
        self._store, self._uppers, self._commit = store, uppers, commit
        self._catalog, self._status_rows, self._clock = catalog, status_rows, clock
        self._written: dict[CollectionId, Rows] = {}
        self._refreshed_at = float("-inf")

    @property
    def stale(self) -> bool:
        return bool(self._written) and self._clock.monotonic() - self._refreshed_at > MAX_AGE_SECONDS

    def install(self) -> None:
        """Create the tables, and read what is in them."""
        ids = []
        for each in SYSTEM_TABLES:
            id_, layout = CollectionId(each.full_name), _layout(each.table)
            known = self._store.collections().get(id_)
            if known is not None and known != layout:
                self._store.drop_collection(id_)
            self._store.create_collection(id_, layout, window_ms=WINDOW_MS)
            ids.append(id_)
        self._uppers.follow_clock(ids)
        for id_ in ids:
            keys = len(self._store.collections()[id_].key)
            pages = self._store.snapshot(id_, Time(self._store.frontier(id_).upper - 1))
            rows = [tuple(row.values())[:-1] for page in pages for row in page.to_pylist()]
            self._written[id_] = {row[:keys]: row[keys:] for row in rows}

    def refresh(self) -> None:
        """Write what has changed."""
        if not self._written:
            return
        found = {**_catalog_rows(self._catalog()), "mz_frontiers": self._frontiers(), **self._status_rows()}
        changed: dict[CollectionId, pa.Table] = {}
        current: dict[CollectionId, Rows] = {}
        for each in SYSTEM_TABLES:
            id_, layout = CollectionId(each.full_name), _layout(each.table)
            keys = len(layout.key)
            now = current[id_] = {row[:keys]: row[keys:] for row in found[each.name]}
            before = self._written[id_]
            rows: dict[Row, Row | None] = {key: row for key, row in now.items() if before.get(key) != row}
            rows |= dict.fromkeys(before.keys() - now.keys())
            if rows:
                changed[id_] = _upserts(rows, layout, self._clock.now_ms())
        if changed:
            self._commit.write_rows(QUERY, changed)
            self._written.update(current)
        self._refreshed_at = self._clock.monotonic()

    def _frontiers(self) -> Sequence[Row]:
        found = []
        for table in self._catalog().holdable:
            if CollectionId(table.name) in self._store.collections():
                frontier = self._store.frontier(CollectionId(table.name))
                found.append((table.name, frontier.since, frontier.upper))
        return found


def _layout(table: Table) -> Layout:
    return Layout(tuple(c.type for c in table.schema.key), tuple(c.type for c in table.schema.value))


def _upserts(rows: Mapping[Row, Row | None], layout: Layout, now_ms: int) -> pa.Table:
    records = []
    for key, row in rows.items():
        shown = row if row is not None else (None,) * len(layout.value)
        record = {col.key(i): value for i, value in enumerate(key)}
        record |= {col.value(i): value for i, value in enumerate(shown)}
        records.append({**record, col.ROW_TIME: now_ms, col.PRESENT: row is not None})
    return pa.Table.from_pylist(records, schema=schemas.upsert_schema(layout))


def _catalog_rows(catalog: Catalog) -> RowsByTable:
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
    """What its query reads; nothing when the query was terminated."""
    query = catalog.queries.get(view.query) if view.query is not None else None
    return query.sources if query is not None else ()


def _common(found: CatalogObject) -> Row:
    formats = found.formats
    return found.name, found.name, found.topic, formats.key_format.format, formats.value_format.format


def _index_columns(index: Index, catalog: Catalog) -> Iterable[Row]:
    """A column is shown by its position, an expression by its text."""
    schema = index.schema
    if index.on in catalog.views:
        yield from ((index.name, number, None, text, True) for number, text in enumerate(index.by, start=1))
        return
    positions = {show(c.name): i for i, c in enumerate((*schema.key, *schema.value, *schema.headers), start=1)}
    for number, text in enumerate(index.by, start=1):
        at = positions.get(text)
        yield index.name, number, at, None if at is not None else text, at is None or at > len(schema.key)


def _columns(found: CatalogObject) -> Iterable[Row]:
    schema = found.schema
    for number, column in enumerate((*schema.key, *schema.value, *schema.headers), start=1):
        role = "KEY" if column.role is Role.KEY else "HEADERS" if column.role is Role.HEADERS else "VALUE"
        yield found.name, number, column.name, str(column.type), role
