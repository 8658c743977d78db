"""The embedded store: one DuckDB file, one writer at a time, any number of readers."""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from holdfast.errors import ReadError
from holdfast.names import CollectionId, HoldId, QueryId, StateId, StoreId
from holdfast.runtime.store import frontier as laws
from holdfast.runtime.store.duckdb import (
    catalog,
    change_ranges,
    committing,
    compaction,
    fetching,
    folding,
    keeping,
    outbox,
    reading,
)
from holdfast.runtime.store.duckdb.core import Core, unreadable
from holdfast.runtime.store.duckdb.deadlines import Deadlines
from holdfast.runtime.store.duckdb.facts import Facts
from holdfast.runtime.store.duckdb.files import (
    data_bytes,
    file_sizes,
    open_calculator,
    open_database,
    open_in_memory,
    wal_bytes,
)
from holdfast.runtime.store.duckdb.ledger import Entry, ends_at
from holdfast.runtime.store.duckdb.pinning import Pins
from holdfast.runtime.store.duckdb.problems import telling
from holdfast.runtime.store.duckdb.relations import Read
from holdfast.runtime.store.duckdb.stage import DuckDbStage
from holdfast.runtime.store.port import (
    ChangeRange,
    Frontier,
    Kept,
    KeyRange,
    Layout,
    Moved,
    Named,
    Owed,
    PageSize,
    Part,
    Pinned,
    Position,
    Relation,
    Time,
)

CHECKPOINT_BYTES = 64 * 1024 * 1024
"""A log longer than this is folded into the file by the next compaction; the ticks wait meanwhile."""

CHECKPOINT_AT_ONCE_BYTES = 16 * CHECKPOINT_BYTES
"""A log longer than this is folded by the commit that finds it: reopening must not take minutes."""

BACKUP_LOG_BYTES = 1024 * 1024
"""A longer log is folded into the file before a backup, if no reader is in the way."""


T = TypeVar("T")


def open_store(
    folder: Path, *, memory_limit: str | None = None, threads: int = 2, read_timeout: float = 60.0
) -> "DuckDbStore":
    """The store of a data folder, made when there is none. One process at a time has it."""
    database, id_ = open_database(folder, memory_limit=memory_limit, threads=threads)
    with telling():
        return DuckDbStore(Core(folder, database, open_calculator(), Deadlines(read_timeout)), id_)


def open_memory_store(*, threads: int = 2, read_timeout: float = 60.0) -> "DuckDbStore":
    """A store that nothing outlives: for tests of queries."""
    database, id_ = open_in_memory(threads=threads)
    with telling():
        return DuckDbStore(Core(None, database, open_calculator(), Deadlines(read_timeout)), id_)


class DuckDbStore:
    """See `Store` and `SqlReader`."""

    def __init__(self, core: Core, id_: StoreId) -> None:
        self._core = core
        self._id = id_
        self._facts = Facts(core)
        self._pins = Pins(core)

    @property
    def id(self) -> StoreId:
        return self._id

    def sizes(self) -> Mapping[str, int]:
        """Bytes on disk: of the data, and of the log that is not folded into it yet."""
        return {"data": data_bytes(self._core.folder), "log": wal_bytes(self._core.folder)}

    def keep_files(self) -> Mapping[Path, int]:
        """The files and how much of each is the store as of now; that much stays as it is until `release_files`.

        DuckDB changes what its file holds only in a checkpoint, and adds to its log at the end.
        """
        with self._core.writing:
            self._core.flush()
            self._core.checkpoint(beyond=BACKUP_LOG_BYTES)
            self._core.kept = True
            return file_sizes(self._core.folder)

    def release_files(self) -> None:
        with self._core.writing:
            self._core.kept = False

    def close(self) -> None:
        with self._core.writing, telling():
            try:
                if self._core.folder is not None:
                    self._core.flush()
                    folding.fold_all(self._core)
            finally:
                self._core.close()

    # -- objects -------------------------------------------------------------------------------------

    def create_collection(self, collection: CollectionId, layout: Layout, *, window_ms: int) -> None:
        with self._core.writing:
            catalog.create_collection(self._core, collection, layout, window_ms)

    def set_window(self, collection: CollectionId, window_ms: int) -> None:
        with self._core.writing:
            catalog.set_window(self._core, collection, window_ms)

    def drop_collection(self, collection: CollectionId) -> None:
        with self._core.writing:
            catalog.drop_collection(self._core, collection)

    def collections(self) -> Mapping[CollectionId, Layout]:
        with self._core.times:
            return {c.id: c.layout for c in self._core.objects.collections.values()}

    def create_state(self, state: StateId, layout: Layout) -> None:
        with self._core.writing:
            catalog.create_state(self._core, state, layout)

    def drop_state(self, state: StateId) -> None:
        with self._core.writing:
            catalog.drop_state(self._core, state)

    def states(self) -> Mapping[StateId, Layout]:
        with self._core.times:
            return {s.id: s.layout for s in self._core.objects.states.values()}

    def create_outbox(self, query: QueryId, layout: Layout) -> None:
        with self._core.writing:
            catalog.create_outbox(self._core, query, layout)

    def drop_outbox(self, query: QueryId) -> None:
        with self._core.writing:
            catalog.drop_outbox(self._core, query)

    def queries(self) -> Set[QueryId]:
        with self._core.times:
            reading = {query for query, offsets in self._core.ledger.positions.items() if offsets}
            return reading | self._core.objects.outboxes.keys()

    def forget_query(self, query: QueryId) -> None:
        with self._core.writing:
            self._core.write([Entry("forgotten", query)])
            self._facts.forget(query)

    # -- time ----------------------------------------------------------------------------------------

    def last_time(self) -> Time:
        with self._core.times:
            return max(self._core.ledger.committed, self._core.ledger.reserved)

    def committed_time(self) -> Time:
        with self._core.times:
            return self._core.ledger.committed

    def reserve(self, until: Time) -> None:
        with self._core.writing:
            if until > self._core.ledger.reserved:
                self._core.write([Entry("reserved", numbers=(until,))])

    def frontier(self, collection: CollectionId) -> Frontier:
        with self._core.times:
            return self._core.objects.collection(collection).frontier

    def set_upper(self, collections: Sequence[CollectionId], upper: Time) -> None:
        with self._core.times:
            for moved in map(self._core.objects.collection, collections):
                if laws.is_building(moved.frontier):
                    start = moved.history_from
                    moved.frontier = laws.first_frontier(upper, history_from=start, written=moved.written)
                else:
                    moved.frontier = laws.raised_upper(moved.frontier, upper)
                self._core.changed.add(moved.id)

    def advance_since(self, collection: CollectionId, to: Time) -> None:
        with self._core.times:
            moved = self._core.objects.collection(collection)
            if laws.is_building(moved.frontier):
                moved.history_from = Time(max(to, moved.written, moved.history_from or 0))
            else:
                moved.wanted = Time(max(to, moved.wanted))
                since = laws.held_since(moved.frontier, moved.wanted, self._core.held(collection))
                moved.frontier = Frontier(since, moved.frontier.upper)
            self._core.changed.add(collection)

    def hold(self, collection: CollectionId, at: Time) -> int:
        with self._core.times:
            frontier = self._core.objects.collection(collection).frontier
            if laws.is_building(frontier) or at < frontier.since:
                raise unreadable(collection, at, frontier)
            return self._core.holds.take(collection, at)

    def release(self, token: int) -> None:
        with self._core.times:
            self._core.holds.release(token)

    def keep(self, hold: HoldId, on: Sequence[CollectionId], at: Time) -> None:
        with self._core.writing:
            keeping.keep(self._core, hold, on, at)

    def move_kept(self, moves: Mapping[HoldId, Time]) -> Mapping[HoldId, ReadError]:
        with self._core.writing:
            return keeping.move(self._core, moves)

    def drop_kept(self, holds: Sequence[HoldId]) -> None:
        with self._core.writing:
            keeping.drop(self._core, holds)

    def kept(self) -> Mapping[HoldId, Kept]:
        with self._core.times:
            return dict(self._core.ledger.kept)

    def pinned(self, hold: HoldId) -> Pinned:
        with self._core.writing:
            return self._pins.of(hold)

    def implied_since(self, collection: CollectionId) -> Time:
        with self._core.times:
            found = self._core.objects.collection(collection)
            return laws.unheld_since(found.frontier, found.wanted, found.window_ms)

    def compact(self, *, limit: int) -> int:
        with self._core.writing:
            forgotten = compaction.compact(self._core, limit)
            self._core.checkpoint(beyond=CHECKPOINT_BYTES)
            return forgotten

    # -- ticks ---------------------------------------------------------------------------------------

    def stage(self) -> DuckDbStage:
        with telling():
            return DuckDbStage(self._core, self._core.database.cursor(), self._commit)

    def _commit(self, stage: DuckDbStage, time: Time) -> None:
        with self._core.writing:
            committing.commit(self._core, stage, time)
            stage.abandon()
            self._core.checkpoint(beyond=CHECKPOINT_AT_ONCE_BYTES)

    def positions(self, query: QueryId) -> Sequence[Position]:
        with self._core.times:
            return self._core.ledger.read_by(query)

    def remap_ends(self) -> Sequence[Moved]:
        with self._core.times:
            return ends_at(self._core.ledger.remap, None)

    def remap_at(self, time: Time) -> Sequence[Moved]:
        with self._core.times:
            return ends_at(self._core.ledger.remap, time)

    # -- reading -------------------------------------------------------------------------------------

    def snapshot(self, collection: CollectionId, at: Time, *, page: PageSize = 50_000) -> Iterator[pa.Table]:
        self._core.readable(collection, at)
        return self._pages(collection, at, page)

    def _pages(self, collection: CollectionId, at: Time, page: PageSize) -> Iterator[pa.Table]:
        with self._core.holding(collection, at) as held:
            yield from reading.read_pages(self._core, held, at, page)

    def changes(self, collection: CollectionId, after: Time, to: Time, keys: KeyRange | None = None) -> pa.Table:
        self._core.readable(collection, to)
        with self._core.holding(collection, after) as held:
            return reading.read_changes(self._core, held, after, to, keys)

    def change_ranges(self, collection: CollectionId, after: Time, to: Time, *, rows: int) -> Sequence[ChangeRange]:
        self._core.readable(collection, to)
        with self._core.holding(collection, after) as held:
            return change_ranges.change_ranges(self._core, held, after, to, rows)

    def change_times(self, collection: CollectionId, after: Time, to: Time) -> Sequence[Time]:
        self._core.readable(collection, to)
        with self._core.holding(collection, after) as held:
            return change_ranges.change_times(self._core, held, after, to)

    def changed_at(self, collection: CollectionId) -> Time:
        with self._core.times:
            return self._core.objects.collection(collection).written

    def count(self, collection: CollectionId) -> int:
        return reading.count(self._core, self._core.objects.collection(collection))

    def evaluate(self, sql: str, relations: Mapping[str, Relation], parameters: Sequence[object] = ()) -> pa.Table:
        return self._evaluate(sql, relations, parameters, fetching.as_arrow)

    def evaluate_tuples(
        self, sql: str, relations: Mapping[str, Relation], parameters: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        return self._evaluate(sql, relations, parameters, fetching.as_tuples)

    def _evaluate(
        self,
        sql: str,
        relations: Mapping[str, Relation],
        parameters: Sequence[object],
        fetch: fetching.Fetch[T],
    ) -> T:
        with ExitStack() as held:
            found = {name: self._read(relation, held) for name, relation in relations.items()}
            return reading.evaluate(self._core, sql, found, parameters, fetch)

    def _read(self, relation: Relation, held: ExitStack) -> Read:
        id_, at = (relation.collection, relation.at) if isinstance(relation, Part | Named) else relation
        return Read.of(self._core, relation, held.enter_context(self._core.holding(id_, at)))

    def find(self, part: Part) -> pa.Table:
        self._core.readable(part.collection, part.at)
        with self._core.holding(part.collection, part.at) as held:
            return reading.find(self._core, held, part)

    def evaluate_over(self, sql: str, tables: Mapping[str, pa.Table], parameters: Sequence[object] = ()) -> pa.Table:
        return reading.evaluate_over(self._core, sql, tables, parameters)

    # -- outbox --------------------------------------------------------------------------------------

    def owed(self) -> Sequence[Owed]:
        return outbox.owed(self._core)

    def owed_rows(self, query: QueryId, time: Time) -> pa.Table:
        return outbox.owed_rows(self._core, query, time)

    def settle(self, upto: Time, published: Sequence[Moved] = ()) -> None:
        with self._core.writing:
            outbox.settle(self._core, upto, published)

    def published_at(self, time: Time) -> Sequence[Moved]:
        with self._core.times:
            return ends_at(self._core.ledger.published, time)

    # -- small facts ---------------------------------------------------------------------------------

    def put(self, key: str, value: str | None) -> None:
        self._facts.put(key, value)

    def get(self, key: str) -> str | None:
        return self._facts.get(key)

    def facts(self, prefix: str) -> Mapping[str, str]:
        return self._facts.starting(prefix)
