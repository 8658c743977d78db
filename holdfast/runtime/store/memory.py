"""A store in plain Python: the model that the real ones are compared with, and a fake for tests.

Every commit copies the whole contents of what it changes, so a read as of a time is a lookup. SQL expressions
of merges are evaluated by a function that the caller gives.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import uuid4

import pyarrow as pa

from holdfast.errors import ReadError, StoreError
from holdfast.names import CollectionId, HoldId, QueryId, StateId, StoreId
from holdfast.runtime.store import frontier as laws
from holdfast.runtime.store import schemas
from holdfast.runtime.store.memory_rows import (
    Change,
    Delta,
    Key,
    Row,
    Rows,
    delta_record,
    delta_table,
    in_a_span,
    owed_of,
    read_rows,
    record,
    rows_table,
    unique,
    wider,
    wider_change,
)
from holdfast.runtime.store.port import (
    ChangeRange,
    Frontier,
    Kept,
    KeyRange,
    Layout,
    Merging,
    Moved,
    Owed,
    PageSize,
    Part,
    Period,
    Pinned,
    Position,
    RideAlong,
    Time,
)

Evaluate = Callable[[str, Mapping[str, Any]], Any]
"""The value of a DuckDB expression over named values."""


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
class Work:
    collections: dict[CollectionId, Delta] = field(default_factory=dict)
    states: dict[StateId, Delta] = field(default_factory=dict)
    outbox: list[list[tuple[Key, Row]] | CollectionId] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)


class MemoryStage:
    """See `TickStage`."""

    def __init__(self, store: "MemoryStore") -> None:
        self._store = store
        self._work: dict[QueryId, Work] = {}
        self._remapped: list[Moved] = []

    def upsert(self, query: QueryId, collection: CollectionId, rows: pa.Table) -> None:
        target = self._claim(collection)
        arrived = read_rows(schemas.fit(rows, schemas.upsert_schema(target.layout)), target.layout)
        self._stage(query, collection, unique(arrived, target.layout))

    def merge(self, mergings: Sequence[Merging]) -> Mapping[QueryId, StoreError]:
        failures: dict[QueryId, StoreError] = {}
        for merging in mergings:
            try:
                self._merge(merging)
            except StoreError as error:
                failures[merging.query] = error
        return failures

    def _merge(self, merging: Merging) -> None:
        target, merge, show = self._store.state(merging.state), merging.merge, merging.show
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
            scope = {f"s{i}": v for i, v in known.items()} | {f"p{i}": v for i, v in enumerate(partial.value)}
            merged = tuple(self._store.evaluate(sql, scope) for sql in merge.merged)
            ts = max((t for t in (before.ts, partial.ts) if t is not None), default=None)
            delta[key] = (before, Row(True, merged, ts))
        if show is not None:
            rows = self._shown(delta, self._claim(show.collection), show.along)
            self._stage(merging.query, show.collection, rows)
        self._of(merging.query).states[merging.state] = delta

    def _shown(self, delta: Delta, target: Collection, along: RideAlong) -> Rows:
        rows: Rows = {}
        for key, (_, after) in delta.items():
            scope = {f"k{i}": v for i, v in enumerate(key)} | {f"s{i}": v for i, v in enumerate(after.value)}
            present = along.having is None or self._store.evaluate(along.having, scope) is True
            shown = tuple(self._store.evaluate(sql, scope) for sql in along.projection) if present else None
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

    def append(self, query: QueryId, rows: pa.Table) -> None:
        layout = self._store.outbox(query).layout
        if "present" not in rows.column_names:
            rows = rows.append_column("present", pa.repeat(pa.scalar(True), rows.num_rows))
        if rows.num_rows:
            self._of(query).outbox.append(list(read_rows(schemas.fit(rows, schemas.outbox_schema(layout)), layout)))

    def owe(self, query: QueryId, collection: CollectionId) -> None:
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

    def move(self, query: QueryId, moved: Sequence[Moved]) -> None:
        self._of(query).moved.extend(moved)

    def remap(self, moved: Sequence[Moved]) -> None:
        self._remapped.extend(moved)

    def discard(self, query: QueryId) -> None:
        self._work.pop(query, None)

    def commit(self, time: Time) -> None:
        self._store.commit(self._work, self._remapped, time)
        self.abandon()

    def abandon(self) -> None:
        self._work, self._remapped = {}, []

    def _of(self, query: QueryId) -> Work:
        return self._work.setdefault(query, Work())

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


class MemoryStore:
    """See `Store`. Nothing is durable, and nothing is safe across threads."""

    def __init__(self, evaluate: Evaluate | None = None) -> None:
        self.evaluate = evaluate or _no_evaluation
        self._id = StoreId(str(uuid4()))
        self._collections: dict[CollectionId, Collection] = {}
        self._states: dict[StateId, State] = {}
        self._outboxes: dict[QueryId, Outbox] = {}
        self._positions: dict[QueryId, dict[tuple[str, int], Position]] = {}
        self._remap: list[tuple[Time, Moved]] = []
        self._published: list[tuple[Time, Moved]] = []
        self._facts: dict[str, str] = {}
        self._last = self._committed = Time(0)
        self._tokens = count(1)
        self._holds: dict[int, tuple[CollectionId, Time]] = {}
        self._kept: dict[HoldId, Kept] = {}

    @property
    def id(self) -> StoreId:
        return self._id

    def close(self) -> None:
        pass

    def create_collection(self, collection: CollectionId, layout: Layout, *, window_ms: int) -> None:
        known = self._collections.setdefault(collection, Collection(layout, window_ms))
        more = len(layout.value) - len(known.layout.value)
        known.layout = layout
        known.versions = [(time, {k: wider(row, more) for k, row in rows.items()}) for time, rows in known.versions]
        known.changes = [wider_change(change, more) for change in known.changes]

    def set_window(self, collection: CollectionId, window_ms: int) -> None:
        self.collection(collection).window_ms = window_ms

    def drop_collection(self, collection: CollectionId) -> None:
        self._collections.pop(collection, None)
        self._holds = {token: held for token, held in self._holds.items() if held[0] != collection}
        self._kept = {h: Kept(tuple(c for c in k.on if c != collection), k.at) for h, k in self._kept.items()}

    def collections(self) -> Mapping[CollectionId, Layout]:
        return {id_: c.layout for id_, c in self._collections.items()}

    def create_state(self, state: StateId, layout: Layout) -> None:
        self._states.setdefault(state, State(layout))

    def drop_state(self, state: StateId) -> None:
        self._states.pop(state, None)

    def states(self) -> Mapping[StateId, Layout]:
        return {id_: s.layout for id_, s in self._states.items()}

    def create_outbox(self, query: QueryId, layout: Layout) -> None:
        known = self._outboxes.setdefault(query, Outbox(layout))
        more = len(layout.value) - len(known.layout.value)
        known.layout = layout
        known.rows = {time: [(key, wider(row, more)) for key, row in rows] for time, rows in known.rows.items()}

    def drop_outbox(self, query: QueryId) -> None:
        self._outboxes.pop(query, None)

    def queries(self) -> Set[QueryId]:
        return {query for query, found in self._positions.items() if found} | self._outboxes.keys()

    def forget_query(self, query: QueryId) -> None:
        self._positions.pop(query, None)
        self._facts = {key: value for key, value in self._facts.items() if not key.startswith(f"{query}/")}

    def last_time(self) -> Time:
        return self._last

    def committed_time(self) -> Time:
        return self._committed

    def reserve(self, until: Time) -> None:
        self._last = max(self._last, until)

    def frontier(self, collection: CollectionId) -> Frontier:
        return self.collection(collection).frontier

    def set_upper(self, collections: Sequence[CollectionId], upper: Time) -> None:
        for moved in map(self.collection, collections):
            if laws.is_building(moved.frontier):
                moved.frontier = laws.first_frontier(upper, history_from=moved.history_from, written=moved.written)
            else:
                moved.frontier = laws.raised_upper(moved.frontier, upper)

    def advance_since(self, collection: CollectionId, to: Time) -> None:
        moved = self.collection(collection)
        if laws.is_building(moved.frontier):
            moved.history_from = Time(max(to, moved.written, moved.history_from or 0))
        else:
            moved.wanted = Time(max(to, moved.wanted))
            self._advance(collection, moved.wanted)

    def hold(self, collection: CollectionId, at: Time) -> int:
        frontier = self.collection(collection).frontier
        if laws.is_building(frontier) or at < frontier.since:
            raise ReadError(f"{collection} cannot be read as of {at}")
        token = next(self._tokens)
        self._holds[token] = (collection, at)
        return token

    def release(self, token: int) -> None:
        self._holds.pop(token, None)

    def keep(self, hold: HoldId, on: Sequence[CollectionId], at: Time) -> None:
        for id_ in on:
            held = self.collection(id_)
            if not laws.is_keepable(held.frontier, held.history_from, at):
                raise ReadError(f"{id_} cannot be read as of {at}")
        self._kept[hold] = Kept(tuple(on), at)

    def move_kept(self, moves: Mapping[HoldId, Time]) -> Mapping[HoldId, ReadError]:
        refused: dict[HoldId, ReadError] = {}
        for hold, at in moves.items():
            if hold not in self._kept:
                raise StoreError(f"the store has no hold {hold}")
            try:
                self.keep(hold, self._kept[hold].on, at)
            except ReadError as error:
                refused[hold] = error
        return refused

    def drop_kept(self, holds: Sequence[HoldId]) -> None:
        for hold in holds:
            self._kept.pop(hold, None)

    def kept(self) -> Mapping[HoldId, Kept]:
        return dict(self._kept)

    def pinned(self, hold: HoldId) -> Pinned:
        rows = 0
        for id_ in self._kept[hold].on if hold in self._kept else ():
            held = self.collection(id_)
            if laws.is_building(held.frontier):
                continue
            others = [at for collection, at in self._holds.values() if collection == id_]
            others += [kept.at for other, kept in self._kept.items() if other != hold and id_ in kept.on]
            wanted = max(held.wanted, laws.implied_since(held.frontier.upper, held.window_ms))
            free = laws.held_since(held.frontier, Time(wanted), others)
            rows += sum(held.frontier.since < change.time <= free for change in held.changes)
        return Pinned(rows, rows)

    def implied_since(self, collection: CollectionId) -> Time:
        held = self.collection(collection)
        return laws.unheld_since(held.frontier, held.wanted, held.window_ms)

    def compact(self, *, limit: int) -> int:
        forgotten = 0
        for id_, collection in self._collections.items():
            bound = collection.history_from or Time(0)
            if not laws.is_building(collection.frontier):
                implied = laws.implied_since(collection.frontier.upper, collection.window_ms)
                self._advance(id_, max(collection.wanted, implied))
                bound = collection.frontier.since
                needed = [i for i, (time, _) in enumerate(collection.versions) if time <= bound]
                collection.versions = collection.versions[max(needed, default=0) :]
            old = [change for change in collection.changes if change.time <= bound][: limit - forgotten]
            collection.changes = collection.changes[len(old) :]
            forgotten += len(old)
        return forgotten

    def stage(self) -> MemoryStage:
        return MemoryStage(self)

    def positions(self, query: QueryId) -> Sequence[Position]:
        return list(self._positions.get(query, {}).values())

    def remap_ends(self) -> Sequence[Moved]:
        return _ends(self._remap, None)

    def remap_at(self, time: Time) -> Sequence[Moved]:
        return _ends(self._remap, time)

    def snapshot(self, collection: CollectionId, at: Time, *, page: PageSize = 50_000) -> Iterator[pa.Table]:
        held = self._readable(collection, at)
        rows, size = rows_table(held.at(at), held.layout), page if isinstance(page, int) else page()
        return (rows.slice(start, size) for start in range(0, rows.num_rows, size))

    def find(self, part: Part) -> pa.Table:
        held = self._readable(part.collection, part.at)
        rows, size = held.at(part.at), held.layout.group
        if part.groups is not None:
            asked = schemas.fit(part.groups, schemas.key_schema(schemas.group_layout(held.layout))).to_pylist()
            wanted = {group for row in asked if None not in (group := tuple(row.values()))}
            rows = {key: row for key, row in rows.items() if key[:size] in wanted}
        return schemas.part_rows(rows_table(rows, held.layout), held.layout)

    def changes(self, collection: CollectionId, after: Time, to: Time, keys: KeyRange | None = None) -> pa.Table:
        assert keys is None, "the model has no encoded keys"
        held = self._readable(collection, after)
        self._readable(collection, to)
        records = [
            {
                "time": c.time,
                **delta_record(c.key, c.before, c.after._replace(ts=c.after.ts if c.after.present else None)),
            }
            for c in held.changes
            if after < c.time <= to
        ]
        return pa.Table.from_pylist(records, schema=schemas.changes_schema(held.layout))

    def change_ranges(self, collection: CollectionId, after: Time, to: Time, *, rows: int) -> Sequence[ChangeRange]:
        self._readable(collection, after)
        self._readable(collection, to)
        del rows
        return [ChangeRange(after, to)] if self.changes(collection, after, to).num_rows else []

    def change_times(self, collection: CollectionId, after: Time, to: Time) -> Sequence[Time]:
        held = self._readable(collection, after)
        self._readable(collection, to)
        return sorted({change.time for change in held.changes if after < change.time <= to})

    def changed_at(self, collection: CollectionId) -> Time:
        return self.collection(collection).written

    def count(self, collection: CollectionId) -> int:
        return len(self.collection(collection).latest())

    def owed(self) -> Sequence[Owed]:
        found = [Owed(time, q, len(rows)) for q, outbox in self._outboxes.items() for time, rows in outbox.rows.items()]
        return sorted(found, key=lambda owed: (owed.time, owed.sink))

    def owed_rows(self, query: QueryId, time: Time) -> pa.Table:
        outbox = self.outbox(query)
        records = [{"present": row.present, **record(key, row)} for key, row in outbox.rows.get(time, [])]
        return pa.Table.from_pylist(records, schema=schemas.outbox_schema(outbox.layout))

    def settle(self, upto: Time, published: Sequence[Moved] = ()) -> None:
        self._published += [(upto, moved) for moved in published]
        for outbox in self._outboxes.values():
            outbox.rows = {time: rows for time, rows in outbox.rows.items() if time > upto}

    def published_at(self, time: Time) -> Sequence[Moved]:
        return _ends(self._published, time)

    def put(self, key: str, value: str | None) -> None:
        if value is None:
            self._facts.pop(key, None)
        else:
            self._facts[key] = value

    def get(self, key: str) -> str | None:
        return self._facts.get(key)

    def facts(self, prefix: str) -> Mapping[str, str]:
        return {key: value for key, value in self._facts.items() if key.startswith(prefix)}

    # -- for the stage -------------------------------------------------------------------------------

    def collection(self, id_: CollectionId) -> Collection:
        if id_ not in self._collections:
            raise StoreError(f"the store has no collection {id_}")
        return self._collections[id_]

    def state(self, id_: StateId) -> State:
        if id_ not in self._states:
            raise StoreError(f"the store has no state {id_}")
        return self._states[id_]

    def outbox(self, query: QueryId) -> Outbox:
        if query not in self._outboxes:
            raise StoreError(f"the store has no outbox of {query}")
        return self._outboxes[query]

    def commit(self, work: Mapping[QueryId, Work], remapped: Sequence[Moved], time: Time) -> None:
        deltas = {id_: delta for w in work.values() for id_, delta in w.collections.items()}
        for id_ in deltas:
            if time < self.collection(id_).frontier.upper or time <= self.collection(id_).written:
                raise StoreError(f"a tick cannot change {id_} at {time}")
        for id_, delta in deltas.items():
            self._commit_collection(self.collection(id_), delta, time)
        for query, staged in work.items():
            for state, delta in staged.states.items():
                after = self.state(state).rows | {key: after for key, (_, after) in delta.items()}
                self.state(state).rows = {key: row for key, row in after.items() if row.present}
            owed = [
                row
                for part in staged.outbox
                for row in (owed_of(deltas.get(part, {})) if isinstance(part, str) else part)
            ]
            if owed:
                self.outbox(query).rows[time] = owed
            for m in staged.moved:
                position = Position(query, m.topic, m.partition, m.end_offset)
                self._positions.setdefault(query, {})[m.topic, m.partition] = position
        self._remap += [(time, moved) for moved in remapped]
        self._last = max(self._last, time)
        self._committed = max(self._committed, time)

    def _commit_collection(self, collection: Collection, delta: Delta, time: Time) -> None:
        rows = dict(collection.latest())
        changed = {key: (b, a) for key, (b, a) in delta.items() if b.present or a.present}
        for key, (_, after) in changed.items():
            if after.present:
                rows[key] = after
            else:
                del rows[key]
        building = laws.is_building(collection.frontier)
        if not building or collection.history_from is not None:
            collection.changes += [Change(time, key, b, a) for key, (b, a) in changed.items()]
        collection.versions.append((time, rows))
        collection.written = time
        if not building:
            collection.frontier = laws.raised_upper(collection.frontier, Time(time + 1))

    def _advance(self, id_: CollectionId, wanted: Time) -> None:
        collection = self.collection(id_)
        holds = [at for held, at in self._holds.values() if held == id_]
        holds += [kept.at for kept in self._kept.values() if id_ in kept.on]
        since = laws.held_since(collection.frontier, wanted, holds)
        collection.frontier = Frontier(since, collection.frontier.upper)

    def _readable(self, id_: CollectionId, at: Time) -> Collection:
        collection = self.collection(id_)
        if not laws.is_readable(collection.frontier, at):
            raise ReadError(f"{id_} cannot be read as of {at}")
        return collection


def _no_evaluation(sql: str, _: Mapping[str, Any]) -> Any:
    raise NotImplementedError(f"this store was not given a way to evaluate {sql}")


def _ends(marks: Sequence[tuple[Time, Moved]], upto: Time | None) -> list[Moved]:
    last: dict[tuple[str, int], tuple[Time, Moved]] = {}
    for time, moved in marks:
        place = (moved.topic, moved.partition)
        if (upto is None or time <= upto) and (place not in last or time >= last[place][0]):
            last[place] = (time, moved)
    return [moved for _, moved in last.values()]
