"""The half-done tick: every query's result in temporary tables of its own connection, checked there.

A staged collection is one temporary table: per key the row before the tick, with the row id and the seq it
has, and the row after it. `commit` then only moves rows between tables, and cannot fail for what is in them.

Row ids hold until a checkpoint; `Writer.epoch` tells whether one came between, and they are found again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import duckdb
import pyarrow as pa

from holdfast.errors import StoreError
from holdfast.names import CollectionId, QueryId, StateId
from holdfast.runtime.expressions.physical import duckdb_type
from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb import columns
from holdfast.runtime.store.duckdb.columns import listed, renamed
from holdfast.runtime.store.duckdb.ledger import Entry
from holdfast.runtime.store.duckdb.objects import Collection, Objects, State
from holdfast.runtime.store.duckdb.one import one
from holdfast.runtime.store.duckdb.problems import telling
from holdfast.runtime.store.port import Layout, Merge, Moved, RideAlong, Time
from holdfast.runtime.store.schemas import names
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True)
class Counts:
    """What a staged table will do; both false (a delete of nothing) is none of them."""

    updates: int
    inserts: int
    deletes: int

    @property
    def changes(self) -> int:
        return self.updates + self.inserts + self.deletes


@dataclass(slots=True)
class Work:
    """All that is staged for one query."""

    collections: dict[CollectionId, Counts] = field(default_factory=dict)
    states: dict[StateId, Counts] = field(default_factory=dict)
    outbox: list[pa.Table | CollectionId] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Written:
    """What the store has to remember once the transaction is durable."""

    entries: list[Entry]
    collections: dict[CollectionId, Counts]
    owed: dict[QueryId, int]


class Writer(Protocol):
    """The store, as a stage sees it."""

    @property
    def objects(self) -> Objects: ...

    @property
    def epoch(self) -> int: ...

    def commit(self, stage: "DuckDbStage", time: Time) -> None: ...


class DuckDbStage:
    """See `TickStage`."""

    def __init__(self, writer: Writer, connection: duckdb.DuckDBPyConnection) -> None:
        self._writer = writer
        self.connection = connection
        self.work: dict[QueryId, Work] = {}
        self.remapped: list[Moved] = []
        self._epoch = writer.epoch

    # -- staging -------------------------------------------------------------------------------------

    def upsert(self, query: QueryId, collection: CollectionId, rows: pa.Table) -> None:
        target = self._claim(collection)
        layout = target.layout
        key, value = names("k", layout.key), names("c", layout.value)
        self._register(schemas.fit(rows, schemas.upsert_schema(layout)))
        source = f"SELECT {columns.key_sql(layout, key)} AS k, {listed(key, value, ['ts', 'present'])} FROM arriving"
        self._stage_rows(query, target, source)

    def merge(self, query: QueryId, state: StateId, partials: pa.Table, merge: Merge) -> None:
        target = self._writer.objects.state(state)
        if any(state in work.states for work in self.work.values()):
            raise StoreError(f"the state {state} is already merged in this tick")
        layout = target.layout
        key, s, p = names("k", layout.key), names("s", layout.value), names("p", layout.value)
        self._register(schemas.fit(partials, schemas.rows_schema(layout, value="p")))
        known = [f"CASE WHEN t.k IS NULL THEN {_cast(i, t)} ELSE t.{name} END AS {name}"
                 for name, i, t in zip(s, merge.initial, layout.value, strict=True)]  # fmt: skip
        merged = [f"{_cast(e, t)} AS a{i}" for i, (e, t) in enumerate(zip(merge.merged, layout.value, strict=True))]
        before = names("b", layout.value)
        source = f"SELECT {columns.key_sql(layout, key)} AS k, {listed(key, p, ['ts'])} FROM arriving"
        joined = (
            f"SELECT {listed(_of_x(['k', *key, *p]), ['t.rowid AS r', 't.k IS NOT NULL AS b_present'])}, "
            f"{listed(renamed('t', s, before), ['t.ts AS b_ts'], known, ['x.ts AS p_ts'])} "
            f"FROM ({source}) x LEFT JOIN {target.table} t ON t.k = x.k"
        )
        select = (
            f"SELECT {listed(['k'], key, ['r', 'b_present'], before, ['b_ts', 'TRUE AS a_present'], merged)}, "
            f"greatest(b_ts, p_ts) AS a_ts FROM ({joined})"
        )
        counts = self._create(_state_stage(target), select)
        self._work(query).states[state] = counts

    def derive(self, query: QueryId, state: StateId, collection: CollectionId, along: RideAlong) -> None:
        merged, target = self._writer.objects.state(state), self._claim(collection)
        if state not in self._work(query).states:
            raise StoreError(f"the state {state} is not merged in this tick")
        layout = target.layout
        if layout.key != merged.layout.key:
            raise StoreError(f"the collection {collection} has other key columns than the state {state}")
        key, s, a = names("k", layout.key), names("s", merged.layout.value), names("a", merged.layout.value)
        shown = [f"CASE WHEN present THEN {_cast(e, t)} END AS c{i}"
                 for i, (e, t) in enumerate(zip(along.projection, layout.value, strict=True))]  # fmt: skip
        states = f"SELECT {listed(['k'], key, (f'{x} AS {y}' for x, y in zip(a, s, strict=True)))}, a_ts AS ts"
        present = f"({along.having}) IS TRUE" if along.having else "TRUE"
        source = (
            f"SELECT {listed(['k'], key, shown)}, ts, present "
            f"FROM (SELECT *, {present} AS present FROM ({states} FROM {_state_stage(merged)}))"
        )
        self._stage_rows(query, target, source)

    def append(self, query: QueryId, rows: pa.Table) -> None:
        outbox = self._writer.objects.outbox(query)
        if "present" not in rows.column_names:
            rows = rows.append_column("present", pa.repeat(pa.scalar(True), rows.num_rows))
        if rows.num_rows:
            self._work(query).outbox.append(schemas.fit(rows, schemas.outbox_schema(outbox.layout)))

    def owe(self, query: QueryId, collection: CollectionId) -> None:
        outbox, owed = self._writer.objects.outbox(query), self._writer.objects.collection(collection)
        if outbox.layout != owed.layout:
            raise StoreError(f"the outbox of {query} has other columns than the collection {collection}")
        self._work(query).outbox.append(collection)

    def move(self, query: QueryId, moved: Sequence[Moved]) -> None:
        self._work(query).moved.extend(moved)

    def remap(self, moved: Sequence[Moved]) -> None:
        self.remapped.extend(moved)

    def discard(self, query: QueryId) -> None:
        self.work.pop(query, None)

    # -- reading what is staged ----------------------------------------------------------------------

    def delta(self, collection: CollectionId) -> pa.Table:
        target = self._writer.objects.collection(collection)
        staged = any(collection in work.collections for work in self.work.values())
        return self._read_delta(target.layout, _collection_stage(target) if staged else None)

    def state_delta(self, state: StateId) -> pa.Table:
        target = self._writer.objects.state(state)
        staged = any(state in work.states for work in self.work.values())
        return self._read_delta(target.layout, _state_stage(target) if staged else None)

    def lookup(self, collection: CollectionId, keys: pa.Table) -> pa.Table:
        target = self._writer.objects.collection(collection)
        key = names("k", target.layout.key)
        self._register(schemas.fit(keys, schemas.key_schema(target.layout)))
        schema = schemas.rows_schema(target.layout)
        sql = (
            f"SELECT {listed(f't.{name}' for name in schema.names)} "
            f"FROM (SELECT DISTINCT {columns.key_sql(target.layout, key)} AS k FROM arriving) x "
            f"JOIN {target.current} t ON t.k = x.k"
        )
        with telling():
            return schemas.fit(self.connection.sql(sql).to_arrow_table(), schema)

    # -- the end -------------------------------------------------------------------------------------

    def commit(self, time: Time) -> None:
        self._writer.commit(self, time)

    def abandon(self) -> None:
        self.work.clear()
        self.remapped.clear()
        self.connection.close()

    def collections(self) -> list[CollectionId]:
        """The collections that the tick changes."""
        return [collection for work in self.work.values() for collection in work.collections]

    def write(self, time: Time, run: Callable[[str], object]) -> Written:
        """Run the tick's statements, inside the store's transaction and under its lock."""
        objects, moved_on = self._writer.objects, self._writer.epoch != self._epoch
        written: dict[CollectionId, Counts] = {}
        entries = [Entry("remap", "", m.topic, m.partition, (time, m.end_offset)) for m in self.remapped]
        entries.append(Entry("committed", numbers=(time,)))
        for query, work in self.work.items():
            for state, counts in work.states.items():
                _write_state(objects.state(state), counts, run, find_again=moved_on)
            for collection, counts in work.collections.items():
                _write_collection(objects.collection(collection), counts, time, run, find_again=moved_on)
                written[collection] = counts
            entries += [Entry("position", query, m.topic, m.partition, (m.end_offset,)) for m in work.moved]
        owed = {query: self._write_outbox(query, work, written, time, run) for query, work in self.work.items()}
        return Written(entries, written, {query: rows for query, rows in owed.items() if rows})

    def _write_outbox(
        self,
        query: QueryId,
        work: Work,
        written: dict[CollectionId, Counts],
        time: Time,
        run: Callable[[str], object],
    ) -> int:
        n = 0
        for part in work.outbox:
            outbox = self._writer.objects.outbox(query)
            key, value = names("k", outbox.layout.key), names("c", outbox.layout.value)
            if isinstance(part, pa.Table):
                order = pa.array(range(n, n + part.num_rows), pa.uint64())
                self._register(part.append_column("n", order))
                run(
                    f"INSERT INTO {outbox.table} "
                    f"SELECT {time}, n, {listed(['present'], key, value, ['ts'])} FROM arriving ORDER BY n"
                )
                n += part.num_rows
            elif part in written and written[part].changes:
                after = names("a", outbox.layout.value)
                stage = _collection_stage(self._writer.objects.collection(part))
                run(
                    f"INSERT INTO {outbox.table} "
                    f"SELECT {time}, {n} - 1 + row_number() OVER (), {listed(['a_present'], key, after, ['a_ts'])} "
                    f"FROM {stage} WHERE a_present OR b_present"
                )
                n += written[part].changes
        return n

    # -- temporary tables ----------------------------------------------------------------------------

    def _work(self, query: QueryId) -> Work:
        return self.work.setdefault(query, Work())

    def _claim(self, collection: CollectionId) -> Collection:
        if any(collection in work.collections for work in self.work.values()):
            raise StoreError(f"the collection {collection} is already written in this tick")
        return self._writer.objects.collection(collection)

    def _register(self, rows: pa.Table) -> None:
        self.connection.register("arriving", rows)

    def _stage_rows(self, query: QueryId, target: Collection, source: str) -> None:
        """Stage ``k, k0.., c0.., ts, present`` beside the row that each key has now."""
        layout = target.layout
        key, value = names("k", layout.key), names("c", layout.value)
        before, after = names("b", layout.value), names("a", layout.value)
        arriving = [f"CASE WHEN x.present THEN x.{c} END AS {a}" for c, a in zip(value, after, strict=True)]
        select = (
            f"SELECT {listed(_of_x(['k', *key]), ['t.rowid AS r', 't.seq', 't.since'])}, "
            f"t.k IS NOT NULL AS b_present, {listed(renamed('t', value, before), ['t.ts AS b_ts'])}, "
            f"x.present AS a_present, {listed(arriving, ['x.ts AS a_ts'])} "
            f"FROM ({source}) x LEFT JOIN {target.current} t ON t.k = x.k"
        )
        counts = self._create(_collection_stage(target), select)
        self._work(query).collections[target.id] = counts

    def _create(self, table: str, select: str) -> Counts:
        with telling():
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {select}")
            row = one(
                self.connection,
                "SELECT count(*) FILTER (b_present AND a_present), count(*) FILTER (NOT b_present AND a_present), "
                "count(*) FILTER (b_present AND NOT a_present), count(*), count(DISTINCT k), count(a_present) "
                f"FROM {table}",
            )
        updates, inserts, deletes, rows, keys, told = row
        if keys != rows:
            raise StoreError("a tick has keys that are null or not unique", detail=f"{rows} rows, {keys} keys.")
        if told != rows:
            raise StoreError("rows of a tick do not say whether they are present")
        return Counts(updates, inserts, deletes)

    def _read_delta(self, layout: Layout, table: str | None) -> pa.Table:
        schema = schemas.delta_schema(layout)
        if table is None:
            return schema.empty_table()
        with telling():
            sql = f"SELECT {listed(schema.names)} FROM {table}"
            return schemas.fit(self.connection.sql(sql).to_arrow_table(), schema)


def _of_x(columns_: Sequence[str]) -> list[str]:
    return [f"x.{column}" for column in columns_]


def _cast(expression: str, type_: SqlType) -> str:
    return f"CAST({expression} AS {duckdb_type(type_)})"


def _collection_stage(collection: Collection) -> str:
    return f"temp.stage_{collection.current}"


def _state_stage(state: State) -> str:
    return f"temp.stage_{state.table}"


LOOKED_UP = 1_000
"""Up to this many keys are found through the index, more by the row ids found when staging.

CPU time of a tick, index against row ids: no difference at 1,000,000 keys; at 10,000,000 31 to 35 ms (20 keys) and
213 to 296 ms (1,000 keys).
"""


def _same_row(table: str, stage: str, keys: int, run: Callable[[str], object], *, find_again: bool) -> str:
    """The condition that joins a staged row `x` to the row that it replaces."""
    if keys <= LOOKED_UP:
        return f"{table}.k = x.k"
    if find_again:
        run(f"UPDATE {stage} SET r = t.rowid FROM {table} t WHERE t.k = {stage}.k")
    return f"{table}.rowid = x.r"


def _write_state(state: State, counts: Counts, run: Callable[[str], object], *, find_again: bool) -> None:
    stage, key = _state_stage(state), names("k", state.layout.key)
    s, a = names("s", state.layout.value), names("a", state.layout.value)
    if counts.updates:
        same_row = _same_row(state.table, stage, counts.updates, run, find_again=find_again)
        sets = listed((f"{x} = x.{y}" for x, y in zip(s, a, strict=True)), ["ts = x.a_ts"])
        run(f"UPDATE {state.table} SET {sets} FROM {stage} x WHERE {same_row} AND x.b_present")
    if counts.inserts:
        run(f"INSERT INTO {state.table} SELECT {listed(['k'], key, a)}, a_ts FROM {stage} WHERE NOT b_present")


def _write_collection(
    collection: Collection, counts: Counts, time: Time, run: Callable[[str], object], *, find_again: bool
) -> None:
    stage, current, layout = _collection_stage(collection), collection.current, collection.layout
    key, value = names("k", layout.key), names("c", layout.value)
    before, after = names("b", layout.value), names("a", layout.value)
    replaced = counts.updates + counts.deletes
    same_row = _same_row(current, stage, replaced, run, find_again=find_again)
    if collection.keeps_history and counts.changes:
        run(
            f"INSERT INTO {collection.history} "
            f"SELECT {listed(['k', 'seq'], key, before, ['b_ts', 'since', str(time), 'b_present'])} "
            f"FROM {stage} WHERE a_present OR b_present"
        )
    if counts.updates:
        sets = listed((f"{c} = x.{a}" for c, a in zip(value, after, strict=True)), ["ts = x.a_ts", f"since = {time}"])
        run(f"UPDATE {current} SET {sets} FROM {stage} x WHERE {same_row} AND x.b_present AND x.a_present")
    if counts.deletes:
        run(f"DELETE FROM {current} USING {stage} x WHERE {same_row} AND x.b_present AND NOT x.a_present")
    if counts.inserts:
        run(
            f"INSERT INTO {current} SELECT k, {collection.next_seq} + row_number() OVER () - 1, "
            f"{listed(key, after, ['a_ts', str(time)])} FROM {stage} WHERE a_present AND NOT b_present"
        )
