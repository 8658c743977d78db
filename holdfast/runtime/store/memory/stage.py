"""The tick in progress of the in-memory store, and the objects it changes."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from holdfast.errors import StoreError
from holdfast.names import CollectionId, QueryId, StateId
from holdfast.runtime import physical_columns as col
from holdfast.runtime.store import frontier as laws
from holdfast.runtime.store import schemas
from holdfast.runtime.store.memory.rows import (
    Change,
    Delta,
    Key,
    Row,
    Rows,
    delta_table,
    in_a_span,
    read_rows,
    rows_table,
    unique,
)
from holdfast.runtime.store.port import (
    EndOffset,
    Frontier,
    Layout,
    Period,
    Placement,
    QueryPosition,
    StateMerge,
    StateProjection,
    Time,
)

if TYPE_CHECKING:
    from holdfast.runtime.store.memory.store import MemoryStore


@dataclass
class Collection:
    layout: Layout
    window_ms: int
    frontier: Frontier = laws.BUILDING
    history_from: Time | None = None
    written: Time = laws.BUILDING.since
    wanted: Time = laws.BUILDING.since
    versions: list[tuple[Time, Rows]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)

    def at(self, time: Time) -> Rows:
        return next((rows for written, rows in reversed(self.versions) if written <= time), {})

    def latest(self) -> Rows:
        return self.versions[-1][1] if self.versions else {}

    def absent(self) -> Row:
        return Row(False, (None,) * len(self.layout.value), None)


@dataclass
class State:
    layout: Layout
    rows: Rows = field(default_factory=dict)


@dataclass
class Outbox:
    layout: Layout
    rows: dict[Time, list[tuple[Key, Row]]] = field(default_factory=dict)


@dataclass
class QueryWork:
    collections: dict[CollectionId, Delta] = field(default_factory=dict)
    states: dict[StateId, Delta] = field(default_factory=dict)
    outbox: list[list[tuple[Key, Row]] | CollectionId] = field(default_factory=list)
    moves: list[Callable[[QueryPosition], QueryPosition]] = field(default_factory=list)


class MemoryStage:
    """See `TickStage`."""

    def __init__(self, store: "MemoryStore") -> None:
        self._store = store
        self._work: dict[QueryId, QueryWork] = {}
        self._remapped: list[EndOffset] = []

    def upsert(self, query: QueryId, collection: CollectionId, rows: pa.Table) -> None:
        target = self._claim(collection)
        arrived = read_rows(schemas.fit(rows, schemas.upsert_schema(target.layout)), target.layout)
        self._stage(query, collection, unique(arrived, target.layout))

    def merge(self, mergings: Sequence[StateMerge]) -> Mapping[QueryId, StoreError]:
        failures: dict[QueryId, StoreError] = {}
        for merging in mergings:
            try:
                self._merge(merging)
            except StoreError as error:
                failures[merging.query] = error
        return failures

    def _merge(self, merging: StateMerge) -> None:
        target, merge, show = self._store.state(merging.state), merging.merge, merging.view
        self._claim_state(merging.state)
        if target.layout.group:
            raise StoreError(f"the state {merging.state} has groups and cannot be merged")
        arriving = merge.arriving(target.layout)
        partials = schemas.fit(merging.partials, schemas.rows_schema(arriving, value="p"))
        delta: Delta = {}
        for key, partial in unique(read_rows(partials, arriving, value="p"), target.layout).items():
            before = target.rows.get(key, Row(False, (None,) * len(target.layout.value), None))
            initial = tuple(self._store.evaluate(sql, {}) for sql in merge.initial)
            known = dict(enumerate(before.value if before.present else initial))
            scope = {col.state(i): v for i, v in known.items()} | {
                col.partial(i): v for i, v in enumerate(partial.value)
            }
            merged = tuple(self._store.evaluate(sql, scope) for sql in merge.merged)
            ts = max((t for t in (before.ts, partial.ts) if t is not None), default=None)
            delta[key] = (before, Row(True, merged, ts))
        absent = Row(False, (None,) * len(target.layout.value), None)
        if merging.expired is not None:
            expired = schemas.fit(merging.expired, schemas.expired_schema(target.layout))
            for *key_values, ts in (row.values() for row in expired.to_pylist()):
                delta[tuple(key_values)] = (target.rows.get(tuple(key_values), absent), absent._replace(ts=ts))
        if show is not None:
            rows = self._shown(delta, self._claim(show.collection), show.projection)
            self._stage(merging.query, show.collection, rows)
        self._of(merging.query).states[merging.state] = delta

    def _shown(self, delta: Delta, target: Collection, along: StateProjection) -> Rows:
        rows: Rows = {}
        for key, (_, after) in delta.items():
            scope = {col.key(i): v for i, v in enumerate(key)} | {col.state(i): v for i, v in enumerate(after.value)}
            present = after.present and (along.having is None or self._store.evaluate(along.having, scope) is True)
            shown = tuple(self._store.evaluate(sql, scope) for sql in along.columns) if present else None
            rows[key] = Row(present, target.absent().value if shown is None else shown, after.ts)
        return rows

    def put(self, query: QueryId, state: StateId, rows: pa.Table, expired: pa.Table | None = None) -> None:
        self._claim_state(state)
        target = self._store.state(state)
        layout, absent = target.layout, Row(False, (None,) * len(target.layout.value), None)
        arrived = unique(read_rows(schemas.fit(rows, schemas.upsert_schema(layout)), layout), layout)
        if schemas.is_plain_key(schemas.group_layout(layout)) and any(key[0] is None for key in arrived):
            raise StoreError("a tick has elements without a group")
        delta: Delta = {}
        for key, row in arrived.items():
            delta[key] = (target.rows.get(key, absent), row if row.present else absent._replace(ts=row.ts))
        for key in [] if expired is None else self._within(target, expired):
            delta.setdefault(key, (target.rows[key], absent._replace(ts=target.rows[key].ts)))
        self._of(query).states[state] = delta

    def enqueue(self, query: QueryId, rows: pa.Table) -> None:
        layout = self._store.outbox(query).layout
        if "present" not in rows.column_names:
            rows = rows.append_column("present", pa.repeat(pa.scalar(True), rows.num_rows))
        if rows.num_rows:
            self._of(query).outbox.append(list(read_rows(schemas.fit(rows, schemas.outbox_schema(layout)), layout)))

    def enqueue_changes(self, query: QueryId, collection: CollectionId) -> None:
        self._store.outbox(query)
        self._store.collection(collection)
        self._of(query).outbox.append(collection)

    def delta(self, collection: CollectionId) -> pa.Table:
        layout = self._store.collection(collection).layout
        found = next((w.collections[collection] for w in self._work.values() if collection in w.collections), {})
        return delta_table(found, layout)

    def state_delta(self, state: StateId) -> pa.Table:
        layout = self._store.state(state).layout
        return delta_table(next((w.states[state] for w in self._work.values() if state in w.states), {}), layout)

    def lookup(self, collection: CollectionId, keys: pa.Table, at: Time | None = None) -> pa.Table:
        target = self._store.collection(collection)
        asked = schemas.fit(keys, schemas.key_schema(target.layout)).to_pylist()
        wanted = {tuple(row.values()) for row in asked}
        rows = target.latest() if at is None else self._store._readable(collection, at).at(at)
        return rows_table({k: row for k, row in rows.items() if k in wanted}, target.layout)

    def lookup_state(self, state: StateId, keys: pa.Table) -> pa.Table:
        target = self._store.state(state)
        asked = schemas.fit(keys, schemas.key_schema(target.layout)).to_pylist()
        wanted = {tuple(row.values()) for row in asked}
        return rows_table({k: row for k, row in target.rows.items() if k in wanted}, target.layout)

    def lookup_groups(self, state: StateId, groups: pa.Table, within: Period | None = None) -> pa.Table:
        target = self._store.state(state)
        size = target.layout.group
        asked = schemas.fit(groups, schemas.key_schema(schemas.group_layout(target.layout))).to_pylist()
        wanted = {tuple(row.values()) for row in asked}
        found = {k: row for k, row in target.rows.items() if k[:size] in wanted}
        if within is not None:
            found = {k: row for k, row in found.items() if row.ts is not None and within[0] <= row.ts <= within[1]}
        return rows_table(found, target.layout)

    def lookup_spans(self, state: StateId, spans: pa.Table) -> pa.Table:
        target = self._store.state(state)
        return rows_table({key: target.rows[key] for key in self._within(target, spans)}, target.layout)

    def _within(self, target: State, spans: pa.Table) -> list[Key]:
        asked = schemas.fit(spans, schemas.span_schema(target.layout, spans)).to_pylist()
        return [key for key, row in target.rows.items() if in_a_span(key, row, asked)]

    def move(
        self,
        query: QueryId,
        ends: Sequence[EndOffset] = (),
        placement: Placement | None = None,
        *,
        replayed_to: Time | None = None,
    ) -> None:
        def moved(known: QueryPosition) -> QueryPosition:
            return QueryPosition(
                known.placement if placement is None else placement,
                {**known.offsets, **{(end.topic, end.partition): end.offset for end in ends}},
                known.replayed_to if replayed_to is None else replayed_to,
            )

        self._of(query).moves.append(moved)

    def remap(self, ends: Sequence[EndOffset]) -> None:
        self._remapped.extend(ends)

    def discard(self, query: QueryId) -> None:
        self._work.pop(query, None)

    def commit(self, time: Time, frozen: Set[CollectionId] = frozenset()) -> None:
        self._store.commit(self._work, self._remapped, time, frozen)
        self.abandon()

    def abandon(self) -> None:
        self._work, self._remapped = {}, []

    def _of(self, query: QueryId) -> QueryWork:
        return self._work.setdefault(query, QueryWork())

    def _claim(self, collection: CollectionId) -> Collection:
        if any(collection in work.collections for work in self._work.values()):
            raise StoreError(f"the collection {collection} is already written in this tick")
        return self._store.collection(collection)

    def _claim_state(self, state: StateId) -> None:
        if any(state in work.states for work in self._work.values()):
            raise StoreError(f"the state {state} is already merged in this tick")

    def _stage(self, query: QueryId, collection: CollectionId, rows: Rows) -> None:
        target = self._store.collection(collection)
        latest = target.latest()
        blank = target.absent().value
        self._of(query).collections[collection] = {
            key: (latest.get(key, target.absent()), row if row.present else Row(False, blank, row.ts))
            for key, row in rows.items()
        }
