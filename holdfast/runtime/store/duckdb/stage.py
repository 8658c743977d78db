"""The half-done tick: every query's result apart, small ones in memory, large ones in temporary tables."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from holdfast.errors import StoreError
from holdfast.names import CollectionId, QueryId, StateId
from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb import read
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.disk import flush, large
from holdfast.runtime.store.duckdb.disk.wal import WalEntry, position_entries
from holdfast.runtime.store.duckdb.memtable import delta, elements, small
from holdfast.runtime.store.duckdb.memtable.changes import ObjectChange
from holdfast.runtime.store.duckdb.memtable.delta import Counts
from holdfast.runtime.store.duckdb.memtable.small import SMALL, Delta
from holdfast.runtime.store.duckdb.objects import Collection, State
from holdfast.runtime.store.port import EndOffset, Period, Placement, StateMerge, Time

Staged = Delta | large.StagedTable


@dataclass(slots=True)
class StagedWork:
    """All that is staged for one query."""

    collections: dict[CollectionId, Staged] = field(default_factory=dict)
    states: dict[StateId, Staged] = field(default_factory=dict)
    outbox: list[pa.Table | CollectionId] = field(default_factory=list)
    position: list[WalEntry] = field(default_factory=list)
    placement: Placement | None = None


@dataclass(slots=True)
class Written:
    """What to apply in memory once the transaction is durable."""

    entries: list[WalEntry] = field(default_factory=list)
    collections: dict[CollectionId, Counts] = field(default_factory=dict)
    parts: list[ObjectChange] = field(default_factory=list)
    """Changes for memtables and the write-ahead log alone."""
    tables: list[Collection | State] = field(default_factory=list)
    """Objects whose tables were written."""
    pending: dict[QueryId, int] = field(default_factory=dict)
    """How many rows the outboxes' tables got."""


class DuckDbStage:
    """See `TickStage`."""

    def __init__(
        self,
        core: Core,
        connection: duckdb.DuckDBPyConnection,
        commit: Callable[["DuckDbStage", Time, Set[CollectionId]], None],
    ) -> None:
        self._core, self._commit = core, commit
        self.connection = connection
        self.work: dict[QueryId, StagedWork] = {}
        self.remapped: list[EndOffset] = []
        self._writers: dict[CollectionId, QueryId] = {}
        self._state_writers: dict[StateId, QueryId] = {}
        self._epoch = core.epoch

    # -- staging -------------------------------------------------------------------------------------

    def upsert(self, query: QueryId, collection: CollectionId, rows: pa.Table) -> None:
        target = self._claim(collection)
        rows = schemas.fit(rows, schemas.upsert_schema(target.layout))
        staged: Staged
        if rows.num_rows <= SMALL:
            staged = small.upsert(self._core, target, rows)
        else:
            self._flush(target)
            staged = large.upsert(self.connection, target, rows)
        self._add_collection(query, collection, staged)

    def merge(self, mergings: Sequence[StateMerge]) -> Mapping[QueryId, StoreError]:
        failures: dict[QueryId, StoreError] = {}
        together: dict[object, list[small.ReadyMerge]] = {}
        taken: set[int] = set()
        for merging in mergings:
            try:
                ready = self._ready(merging)
                if not taken.isdisjoint(ready.numbers):
                    raise StoreError(f"the state {merging.state}, or what shows it, is already merged in this tick")
                taken |= ready.numbers
                if ready.rows > SMALL:
                    self._merge_large(ready)
                else:
                    together.setdefault(ready.statement, []).append(ready)
            except StoreError as error:
                failures[merging.query] = error
        for group in together.values():
            failures |= self._merge_small(group)
        return failures

    def _ready(self, merging: StateMerge) -> small.ReadyMerge:
        state, show = self._core.objects.state(merging.state), merging.view
        self._claim_state(state.id)
        if state.layout.group:
            raise StoreError(f"the state {state.id} has groups and cannot be merged")
        shown = None if show is None else self._claim(show.collection)
        if shown is not None and shown.layout.key != state.layout.key:
            raise StoreError(f"the collection {shown.id} has other key columns than the state {state.id}")
        partials = schemas.fit(merging.partials, schemas.rows_schema(merging.merge.arriving(state.layout), value="p"))
        along = None if show is None else show.projection
        expired = merging.expired
        if expired is not None:
            expired = schemas.fit(expired, schemas.expired_schema(state.layout)) if expired.num_rows else None
        return small.ReadyMerge(merging.query, state, partials, merging.merge, shown, along, expired)

    def _merge_small(self, group: Sequence[small.ReadyMerge]) -> dict[QueryId, StoreError]:
        """All in one statement; when that fails, one by one, to find the query that failed."""
        try:
            for merging, (merged, shown) in zip(group, small.merge(self._core, group), strict=True):
                if merging.expired is not None:
                    merged = small.expire(self._core, merging.state, merging.expired, merged)
                    if shown is not None and merging.shown is not None:
                        shown = small.expire(self._core, merging.shown, merging.expired, shown)
                self._add_merge(merging, merged, shown)
        except StoreError as error:
            if len(group) == 1:
                return {group[0].query: error}
            return {query: error for one in group for query, error in self._merge_small([one]).items()}
        return {}

    def _merge_large(self, merging: small.ReadyMerge) -> None:
        self._flush(merging.state)
        merged = large.merge(self.connection, merging.state, merging.partials, merging.merge, merging.expired)
        shown: Staged | None = None
        if merging.shown is not None and merging.along is not None:
            self._flush(merging.shown)
            layout = merging.state.layout
            shown = large.derive(self.connection, merged, layout, merging.shown, merging.along)
        self._add_merge(merging, merged, shown)

    def _add_merge(self, merging: small.ReadyMerge, merged: Staged, shown: Staged | None) -> None:
        self._add_state(merging.query, merging.state.id, merged)
        if merging.shown is not None and shown is not None:
            self._add_collection(merging.query, merging.shown.id, shown)

    def put(self, query: QueryId, state: StateId, rows: pa.Table, expired: pa.Table | None = None) -> None:
        self._claim_state(state)
        target = self._core.objects.state(state)
        rows = schemas.fit(rows, schemas.upsert_schema(target.layout))
        if schemas.is_plain_key(schemas.group_layout(target.layout)) and rows.column("k0").null_count:
            raise StoreError("a tick has elements without a group", detail=f"They are of the state {state}.")
        staged: Staged | None = None
        if expired is not None:
            expired = schemas.fit(expired, schemas.span_schema(target.layout, expired))
        if rows.num_rows <= SMALL:
            gone = None if expired is None else elements.spans(self._core, target, expired)
            if gone is None or gone.num_rows <= SMALL:
                staged = elements.put(self._core, target, rows, gone)
        if staged is None:
            self._flush(target)
            condition = "" if expired is None else elements.in_a_span(expired)
            staged = large.put(self.connection, target, rows, expired, condition)
        self._add_state(query, state, staged)

    def enqueue(self, query: QueryId, rows: pa.Table) -> None:
        outbox = self._core.objects.outbox(query)
        if "present" not in rows.column_names:
            rows = rows.append_column("present", pa.repeat(pa.scalar(True), rows.num_rows))
        if rows.num_rows:
            self._work(query).outbox.append(schemas.fit(rows, schemas.outbox_schema(outbox.layout)))

    def enqueue_changes(self, query: QueryId, collection: CollectionId) -> None:
        outbox, source = self._core.objects.outbox(query), self._core.objects.collection(collection)
        if outbox.layout != source.layout:
            raise StoreError(f"the outbox of {query} has other columns than the collection {collection}")
        self._work(query).outbox.append(collection)

    def move(
        self,
        query: QueryId,
        ends: Sequence[EndOffset] = (),
        placement: Placement | None = None,
        *,
        replayed_to: Time | None = None,
    ) -> None:
        work = self._work(query)
        work.position += position_entries(query, ends, placement, replayed_to)
        work.placement = placement or work.placement

    def remap(self, ends: Sequence[EndOffset]) -> None:
        self.remapped.extend(ends)

    def discard(self, query: QueryId) -> None:
        self.work.pop(query, None)

    # -- reading what is staged ----------------------------------------------------------------------

    def delta(self, collection: CollectionId) -> pa.Table:
        target = self._core.objects.collection(collection)
        return self._delta(target, self._upserted(collection))

    def state_delta(self, state: StateId) -> pa.Table:
        target = self._core.objects.state(state)
        return self._delta(target, self._merged(state))

    def lookup(self, collection: CollectionId, keys: pa.Table, at: Time | None = None) -> pa.Table:
        target = self._core.objects.collection(collection)
        keys = schemas.fit(keys, schemas.key_schema(target.layout))
        if at is not None:
            with self._core.pinned(collection, at) as held:
                return read.lookup(self._core, held, keys, at)
        if keys.num_rows > SMALL:
            return read.lookup(self._core, target, keys)
        wanted = list(dict.fromkeys(small.encode(self._core, target.layout, keys).to_pylist()))
        found = small.find(self._core, target, wanted)
        return found.filter(found.column("present")).select(schemas.rows_schema(target.layout).names)

    def lookup_state(self, state: StateId, keys: pa.Table) -> pa.Table:
        target = self._core.objects.state(state)
        keys = schemas.fit(keys, schemas.key_schema(target.layout))
        wanted = list(dict.fromkeys(small.encode(self._core, target.layout, keys).to_pylist()))
        found = small.find(self._core, target, wanted)
        found = found.filter(found.column("present")).select(schemas.rows_schema(target.layout, value="s").names)
        return found.rename_columns(schemas.rows_schema(target.layout).names)

    def lookup_groups(self, state: StateId, groups: pa.Table, within: Period | None = None) -> pa.Table:
        target = self._core.objects.state(state)
        groups = schemas.fit(groups, schemas.key_schema(schemas.group_layout(target.layout)))
        found = elements.lookup_groups(self._core, target, groups, within)
        return found.rename_columns(schemas.rows_schema(target.layout).names)

    def lookup_spans(self, state: StateId, spans: pa.Table) -> pa.Table:
        target = self._core.objects.state(state)
        spans = schemas.fit(spans, schemas.span_schema(target.layout, spans))
        found = elements.spans(self._core, target, spans)
        found = found.select(schemas.rows_schema(target.layout, value="s").names)
        return found.rename_columns(schemas.rows_schema(target.layout).names)

    # -- the end -------------------------------------------------------------------------------------

    def commit(self, time: Time, frozen: Set[CollectionId] = frozenset()) -> None:
        self._commit(self, time, frozen)

    def abandon(self) -> None:
        self.work.clear()
        self.remapped.clear()
        self.connection.close()

    def collections(self) -> list[CollectionId]:
        """The collections that the tick changes."""
        return [collection for work in self.work.values() for collection in work.collections]

    def large_collections(self) -> list[CollectionId]:
        """Those whose tables it writes."""
        staged = (each for work in self.work.values() for each in work.collections.items())
        return [collection for collection, rows in staged if isinstance(rows, large.StagedTable)]

    def freezes(self) -> bool:
        """Whether a live query is live no more after the tick."""
        return any(
            work.placement not in (None, Placement.LIVE) and self._core.wal.position(query).placement is Placement.LIVE
            for query, work in self.work.items()
        )

    def write(self, time: Time) -> Written:
        """Run the tick's statements, inside the store's transaction and under its lock."""
        written = Written()
        written.entries += [WalEntry("remap", "", m.topic, m.partition, (time, m.offset)) for m in self.remapped]
        written.entries.append(WalEntry("committed", numbers=(time,)))
        changes: dict[CollectionId, pa.Table] = {}
        for work in self.work.values():
            for state, staged in work.states.items():
                self._write_state(self._core.objects.state(state), staged, written)
            for collection, staged in work.collections.items():
                rows = self._write_collection(self._core.objects.collection(collection), staged, time, written)
                if rows is not None:
                    changes[collection] = rows
            written.entries += work.position
        for query, work in self.work.items():
            self._write_outbox(query, work, changes, time, written)
        return written

    def _write_state(self, state: State, staged: Staged, written: Written) -> None:
        if isinstance(staged, large.StagedTable):
            large.write_state(state, staged, self.connection.execute, find_again=self._is_checkpointed())
            written.tables.append(state)
        elif staged.rows.num_rows:
            written.parts.append(ObjectChange(state.number, staged.rows))

    def _write_collection(
        self, collection: Collection, staged: Staged, time: Time, written: Written
    ) -> pa.Table | None:
        """Returns the changes when they are only for the memtable."""
        written.collections[collection.id] = staged.counts
        if isinstance(staged, large.StagedTable):
            large.write_collection(
                collection, staged, time, self.connection.execute, find_again=self._is_checkpointed()
            )
            written.tables.append(collection)
            return None
        rows = delta.numbered(staged.rows, collection.next_seq)
        if rows.num_rows:
            written.parts.append(ObjectChange(collection.number, rows, history=collection.keeps_history))
        return rows

    def _write_outbox(
        self, query: QueryId, work: StagedWork, changes: dict[CollectionId, pa.Table], time: Time, written: Written
    ) -> None:
        """With a large part everything goes to the table: a tick's rows of an outbox are either there or in memory."""
        staged = [found for part in work.outbox if (found := self._outbox_part(query, part, changes)) is not None]
        parts = [part for part in staged if isinstance(part, ObjectChange)]
        if len(parts) == len(staged) and sum(part.rows.num_rows for part in parts) <= SMALL:
            written.parts += parts
        else:
            tables = [part.rows if isinstance(part, ObjectChange) else part for part in staged]
            written.pending[query] = large.write_outbox(self.connection, self._core.objects.outbox(query), tables, time)

    def _outbox_part(
        self, query: QueryId, part: pa.Table | CollectionId, changes: dict[CollectionId, pa.Table]
    ) -> ObjectChange | large.StagedTable | None:
        outbox = self._core.objects.outbox(query)
        if isinstance(part, pa.Table):
            return ObjectChange(outbox.number, part)
        if part in changes:
            collection, rows = self._core.objects.collection(part), changes[part]
            return (
                ObjectChange(outbox.number, delta.outbox_rows(rows, outbox.layout), changes_of=collection.number)
                if len(rows)
                else None
            )
        staged = self._upserted(part)
        return staged if isinstance(staged, large.StagedTable) and staged.counts.changes else None

    # -- what is staged ------------------------------------------------------------------------------

    def _work(self, query: QueryId) -> StagedWork:
        return self.work.setdefault(query, StagedWork())

    def _claim(self, collection: CollectionId) -> Collection:
        if self._upserted(collection) is not None:
            raise StoreError(f"the collection {collection} is already written in this tick")
        return self._core.objects.collection(collection)

    def _claim_state(self, state: StateId) -> None:
        if self._merged(state) is not None:
            raise StoreError(f"the state {state} is already merged in this tick")

    def _upserted(self, collection: CollectionId) -> Staged | None:
        work = self.work.get(self._writers[collection]) if collection in self._writers else None
        return None if work is None else work.collections.get(collection)

    def _merged(self, state: StateId) -> Staged | None:
        work = self.work.get(self._state_writers[state]) if state in self._state_writers else None
        return None if work is None else work.states.get(state)

    def _add_collection(self, query: QueryId, collection: CollectionId, staged: Staged) -> None:
        self._work(query).collections[collection] = staged
        self._writers[collection] = query

    def _add_state(self, query: QueryId, state: StateId, staged: Staged) -> None:
        self._work(query).states[state] = staged
        self._state_writers[state] = query

    def _flush(self, target: Collection | State) -> None:
        """Flush the memtable, so that the tables alone can be joined with the rows that arrive."""
        with self._core.write_lock:
            flush.flush(self._core, [target])

    def _is_checkpointed(self) -> bool:
        return self._core.epoch != self._epoch

    def _delta(self, target: Collection | State, staged: Staged | None) -> pa.Table:
        schema = schemas.delta_schema(target.layout)
        match staged:
            case None:
                return schema.empty_table()
            case Delta(rows=rows):
                return rows.select(schema.names)
            case large.StagedTable():
                return large.read(self.connection, staged, target.layout)
