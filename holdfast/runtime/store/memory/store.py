"""A store in plain Python: the model that real stores are compared with, and a fake for tests.

Every commit copies the whole contents of what it changes, so a read as of a time is a lookup. The caller passes a
function that evaluates the SQL expressions of merges.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import count
from typing import Any
from uuid import uuid4

import pyarrow as pa

from holdfast.errors import ReadError, StoreError
from holdfast.names import CollectionId, HoldId, QueryId, StateId, StoreId, TopicName
from holdfast.runtime.store import frontier as laws
from holdfast.runtime.store import schemas
from holdfast.runtime.store.memory.rows import (
    Change,
    Delta,
    delta_record,
    outbox_rows,
    record,
    rows_table,
    wider,
    wider_change,
)
from holdfast.runtime.store.memory.stage import Collection, MemoryStage, Outbox, QueryWork, State
from holdfast.runtime.store.port import (
    NEW_QUERY,
    ChangeRange,
    EndOffset,
    Frontier,
    GroupRead,
    KeyRange,
    Layout,
    PageSize,
    PendingRows,
    QueryPosition,
    RetainedHistory,
    StoredHold,
    Time,
)

Evaluate = Callable[[str, Mapping[str, Any]], Any]
"""The value of a DuckDB expression over named values."""


class MemoryStore:
    """See `Store`. Nothing is durable, and nothing is safe across threads."""

    def __init__(self, evaluate: Evaluate | None = None) -> None:
        self.evaluate = evaluate or _no_evaluation
        self._id = StoreId(str(uuid4()))
        self._collections: dict[CollectionId, Collection] = {}
        self._states: dict[StateId, State] = {}
        self._outboxes: dict[QueryId, Outbox] = {}
        self._positions: dict[QueryId, QueryPosition] = {}
        self._remap: list[tuple[Time, EndOffset]] = []
        self._published: dict[tuple[TopicName, int], EndOffset] = {}
        self._facts: dict[str, str] = {}
        self._last = self._committed = Time(0)
        self._tokens = count(1)
        self._pins: dict[int, tuple[CollectionId, Time]] = {}
        self._holds: dict[HoldId, StoredHold] = {}

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
        self._pins = {token: pin for token, pin in self._pins.items() if pin[0] != collection}
        self._holds = {h: StoredHold(tuple(c for c in k.on if c != collection), k.at) for h, k in self._holds.items()}

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
        return self._positions.keys() | self._outboxes.keys()

    def forget_query(self, query: QueryId) -> None:
        self._positions.pop(query, None)
        self._facts = {key: value for key, value in self._facts.items() if not key.startswith(f"{query}/")}

    def last_time(self) -> Time:
        return self._last

    def committed_time(self) -> Time:
        return self._committed

    def reserve(self, until: Time) -> None:
        self._last = max(self._last, until)

    def try_reserve(self, until: Time) -> bool:
        self.reserve(until)
        return True

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

    def pin(self, collection: CollectionId, at: Time) -> int:
        frontier = self.collection(collection).frontier
        if laws.is_building(frontier) or at < frontier.since:
            raise ReadError(f"{collection} cannot be read as of {at}")
        token = next(self._tokens)
        self._pins[token] = (collection, at)
        return token

    def unpin(self, token: int) -> None:
        self._pins.pop(token, None)

    def put_hold(self, hold: HoldId, on: Sequence[CollectionId], at: Time) -> None:
        for id_ in on:
            found = self.collection(id_)
            if not laws.is_holdable(found.frontier, found.history_from, at):
                raise ReadError(f"{id_} cannot be read as of {at}")
        self._holds[hold] = StoredHold(tuple(on), at)

    def move_holds(self, moves: Mapping[HoldId, Time]) -> Mapping[HoldId, ReadError]:
        refused: dict[HoldId, ReadError] = {}
        for hold, at in moves.items():
            if hold not in self._holds:
                refused[hold] = ReadError(f'hold "{hold}" does not exist any more')
                continue
            try:
                self.put_hold(hold, self._holds[hold].on, at)
            except ReadError as error:
                refused[hold] = error
        return refused

    def drop_holds(self, ids: Sequence[HoldId]) -> None:
        for hold in ids:
            self._holds.pop(hold, None)

    def holds(self) -> Mapping[HoldId, StoredHold]:
        return dict(self._holds)

    def retained_by(self, hold: HoldId) -> RetainedHistory:
        rows = 0
        for id_ in self._holds[hold].on if hold in self._holds else ():
            found = self.collection(id_)
            if laws.is_building(found.frontier):
                continue
            others = [at for collection, at in self._pins.values() if collection == id_]
            others += [stored.at for other, stored in self._holds.items() if other != hold and id_ in stored.on]
            wanted = max(found.wanted, laws.implied_since(found.frontier.upper, found.window_ms))
            free = laws.held_since(found.frontier, Time(wanted), others)
            rows += sum(found.frontier.since < change.time <= free for change in found.changes)
        return RetainedHistory(rows, rows)

    def implied_since(self, collection: CollectionId) -> Time:
        found = self.collection(collection)
        return laws.unheld_since(found.frontier, found.wanted, found.window_ms)

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

    def position(self, query: QueryId) -> QueryPosition:
        return self._positions.get(query, NEW_QUERY)

    def remap_ends(self) -> Sequence[EndOffset]:
        return _ends(self._remap, None)

    def remap_at(self, time: Time) -> Sequence[EndOffset]:
        return _ends(self._remap, time)

    def snapshot(self, collection: CollectionId, at: Time, *, page: PageSize = 50_000) -> Iterator[pa.Table]:
        found = self._readable(collection, at)
        rows, size = rows_table(found.at(at), found.layout), page if isinstance(page, int) else page()
        return (rows.slice(start, size) for start in range(0, rows.num_rows, size))

    def read_groups(self, part: GroupRead) -> pa.Table:
        found = self._readable(part.collection, part.at)
        rows, size = found.at(part.at), found.layout.group
        if part.groups is not None:
            asked = schemas.fit(part.groups, schemas.key_schema(schemas.group_layout(found.layout))).to_pylist()
            wanted = {group for row in asked if None not in (group := tuple(row.values()))}
            rows = {key: row for key, row in rows.items() if key[:size] in wanted}
        if (number := found.layout.ordered) is not None:
            low, high = (
                (-math.inf if part.first is None else part.first),
                (math.inf if part.last is None else part.last),
            )
            rows = {key: row for key, row in rows.items() if low <= key[number] <= high}
        table = rows_table(rows, found.layout)
        return table if part.with_group else schemas.part_rows(table, found.layout)

    def changes(self, collection: CollectionId, after: Time, to: Time, keys: KeyRange | None = None) -> pa.Table:
        assert keys is None, "the model has no encoded keys"
        found = self._readable(collection, after)
        self._readable(collection, to)
        records = [
            {
                "time": c.time,
                **delta_record(c.key, c.before, c.after._replace(ts=c.after.ts if c.after.present else None)),
            }
            for c in found.changes
            if after < c.time <= to
        ]
        return pa.Table.from_pylist(records, schema=schemas.changes_schema(found.layout))

    def change_ranges(self, collection: CollectionId, after: Time, to: Time, *, rows: int) -> Sequence[ChangeRange]:
        self._readable(collection, after)
        self._readable(collection, to)
        del rows
        return [ChangeRange(after, to)] if self.changes(collection, after, to).num_rows else []

    def change_times(self, collection: CollectionId, after: Time, to: Time) -> Sequence[Time]:
        found = self._readable(collection, after)
        self._readable(collection, to)
        return sorted({change.time for change in found.changes if after < change.time <= to})

    def changed_at(self, collection: CollectionId) -> Time:
        return self.collection(collection).written

    def count(self, collection: CollectionId) -> int:
        return len(self.collection(collection).latest())

    def pending(self, of: Iterable[QueryId] | None = None) -> Sequence[PendingRows]:
        chosen = self._outboxes.keys() if of is None else set(of)
        found = [
            PendingRows(time, q, len(rows))
            for q, outbox in self._outboxes.items()
            if q in chosen
            for time, rows in outbox.rows.items()
        ]
        return sorted(found, key=lambda pending: (pending.time, pending.query))

    def pending_bytes(self, query: QueryId) -> int:
        return sum(self.pending_rows(query, each.time).nbytes for each in self.pending([query]))

    def pending_rows(self, query: QueryId, time: Time) -> pa.Table:
        outbox = self.outbox(query)
        records = [{"present": row.present, **record(key, row)} for key, row in outbox.rows.get(time, [])]
        return pa.Table.from_pylist(records, schema=schemas.outbox_schema(outbox.layout))

    def mark_published(self, upto: Mapping[QueryId, Time], ends: Sequence[EndOffset] = ()) -> None:
        self._published |= {(end.topic, end.partition): end for end in ends}
        self._published = {partition: end for partition, end in self._published.items() if end.offset}
        for query in upto.keys() & self._outboxes.keys():
            outbox = self._outboxes[query]
            outbox.rows = {time: rows for time, rows in outbox.rows.items() if time > upto[query]}

    def published_ends(self) -> Sequence[EndOffset]:
        return list(self._published.values())

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
            raise StoreError(f'"{id_}" does not exist in the store')
        return self._collections[id_]

    def state(self, id_: StateId) -> State:
        if id_ not in self._states:
            raise StoreError(f'state "{id_}" does not exist in the store')
        return self._states[id_]

    def outbox(self, query: QueryId) -> Outbox:
        if query not in self._outboxes:
            raise StoreError(f'query "{query}" has no outbox in the store')
        return self._outboxes[query]

    def commit(
        self, work: Mapping[QueryId, QueryWork], remapped: Sequence[EndOffset], time: Time, frozen: Set[CollectionId]
    ) -> None:
        deltas = {id_: delta for w in work.values() for id_, delta in w.collections.items()}
        for id_ in deltas:
            if time < self.collection(id_).frontier.upper or time <= self.collection(id_).written:
                raise StoreError(f"a tick cannot change {id_} at {time}")
        for id_, delta in deltas.items():
            self._commit_collection(self.collection(id_), delta, time, is_frozen=id_ in frozen)
        for query, staged in work.items():
            for state, delta in staged.states.items():
                after = self.state(state).rows | {key: after for key, (_, after) in delta.items()}
                self.state(state).rows = {key: row for key, row in after.items() if row.present}
            pending = [
                row
                for part in staged.outbox
                for row in (outbox_rows(deltas.get(part, {})) if isinstance(part, str) else part)
            ]
            if pending:
                self.outbox(query).rows[time] = pending
            for move in staged.moves:
                self._positions[query] = move(self.position(query))
        self._remap += [(time, moved) for moved in remapped]
        self._last = max(self._last, time)
        self._committed = max(self._committed, time)

    def _commit_collection(self, collection: Collection, delta: Delta, time: Time, *, is_frozen: bool) -> None:
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
        if not building and not is_frozen:
            collection.frontier = laws.raised_upper(collection.frontier, Time(time + 1))

    def _advance(self, id_: CollectionId, wanted: Time) -> None:
        collection = self.collection(id_)
        claims = [at for pinned, at in self._pins.values() if pinned == id_]
        claims += [hold.at for hold in self._holds.values() if id_ in hold.on]
        since = laws.held_since(collection.frontier, wanted, claims)
        collection.frontier = Frontier(since, collection.frontier.upper)

    def _readable(self, id_: CollectionId, at: Time) -> Collection:
        collection = self.collection(id_)
        if not laws.is_readable(collection.frontier, at):
            raise ReadError(f"{id_} cannot be read as of {at}")
        return collection


def _no_evaluation(sql: str, _: Mapping[str, Any]) -> Any:
    raise NotImplementedError(f"this store cannot evaluate {sql}")


def _ends(marks: Sequence[tuple[Time, EndOffset]], upto: Time | None) -> list[EndOffset]:
    last: dict[tuple[str, int], tuple[Time, EndOffset]] = {}
    for time, moved in marks:
        place = (moved.topic, moved.partition)
        if (upto is None or time <= upto) and (place not in last or time >= last[place][0]):
            last[place] = (time, moved)
    return [moved for _, moved in last.values()]
