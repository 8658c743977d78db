"""The embedded store: one DuckDB file, one writer at a time, any number of readers."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from holdfast.errors import ReadError, StoreEnded, StoreError
from holdfast.names import CollectionId, HoldId, QueryId, StateId, StoreId
from holdfast.runtime.store import frontier as laws
from holdfast.runtime.store.duckdb import (
    catalog,
    commit,
    compaction,
    holds,
    outbox,
    read,
)
from holdfast.runtime.store.duckdb.core import Core, unreadable
from holdfast.runtime.store.duckdb.disk import flush
from holdfast.runtime.store.duckdb.disk.files import (
    data_bytes,
    file_sizes,
    open_calculator,
    open_database,
    open_in_memory,
    wal_bytes,
)
from holdfast.runtime.store.duckdb.disk.wal import WalEntry, ends_at
from holdfast.runtime.store.duckdb.errors import translate_errors
from holdfast.runtime.store.duckdb.facts import Facts
from holdfast.runtime.store.duckdb.holds import HoldSizes
from holdfast.runtime.store.duckdb.relations import RelationRead
from holdfast.runtime.store.duckdb.stage import DuckDbStage
from holdfast.runtime.store.duckdb.statements import Deadlines, Fetch, as_bounded_arrow, as_tuples
from holdfast.runtime.store.port import (
    ChangeRange,
    EndOffset,
    Frontier,
    GroupRead,
    KeyRange,
    KeyRead,
    Layout,
    PageSize,
    PendingRows,
    QueryPosition,
    Relation,
    RetainedHistory,
    StoredHold,
    Time,
)

log = logging.getLogger(__name__)

CHECKPOINT_BYTES = 64 * 1024 * 1024
"""The next compaction runs a checkpoint when DuckDB's log is longer than this; ticks wait for it."""

CHECKPOINT_AT_ONCE_BYTES = 16 * CHECKPOINT_BYTES
"""A commit itself runs a checkpoint when the log is longer than this: reopening must not take minutes."""

BACKUP_LOG_BYTES = 1024 * 1024
"""A backup first runs a checkpoint when the log is longer than this, unless a reader prevents it."""


MAX_RESULT_BYTES = 256 * 1024 * 1024
"""The size of the largest result of a read, unless another limit is set."""

T = TypeVar("T")


def open_store(
    folder: Path,
    *,
    memory_limit: str | None = None,
    threads: int = 2,
    read_timeout: float = 60.0,
    max_result_bytes: int = MAX_RESULT_BYTES,
) -> "DuckDbStore":
    """The store of a data folder, created if missing. One process at a time can open it."""
    database, id_ = open_database(folder, memory_limit=memory_limit, threads=threads)
    with translate_errors():
        return DuckDbStore(Core(folder, database, open_calculator(), Deadlines(read_timeout)), id_, max_result_bytes)


def open_memory_store(*, threads: int = 2, read_timeout: float = 60.0) -> "DuckDbStore":
    """A store in memory, for tests of queries."""
    database, id_ = open_in_memory(threads=threads)
    with translate_errors():
        return DuckDbStore(Core(None, database, open_calculator(), Deadlines(read_timeout)), id_)


class DuckDbStore:
    """See `Store` and `SqlReader`. Each method takes the lock it needs and delegates to the module of its part.

    What writes holds `core.write_lock`; what reads or changes memory holds `core.memory_lock`; reads through DuckDB
    hold neither, but pin their time.
    """

    def __init__(self, core: Core, id_: StoreId, max_result_bytes: int = MAX_RESULT_BYTES) -> None:
        self._core = core
        self._id = id_
        self.max_result_bytes = max_result_bytes
        self._facts = Facts(core)
        self._hold_sizes = HoldSizes(core)
        self._layouts: Mapping[CollectionId, Layout] | None = None
        """What `collections` returns, until one is created or dropped."""

    @property
    def id(self) -> StoreId:
        return self._id

    def sizes(self) -> Mapping[str, int]:
        """Bytes on disk: of the data, and of the log that is not checkpointed yet."""
        return {"data": data_bytes(self._core.folder), "log": wal_bytes(self._core.folder)}

    def pin_files(self) -> Mapping[Path, int]:
        """The files, and how many bytes of each are the store as of now. Those do not change until `unpin_files`.

        DuckDB changes its file only in a checkpoint, and appends to its log.
        """
        with self._core.write_lock:
            self._core.write_frontiers()
            self._core.checkpoint(beyond=BACKUP_LOG_BYTES)
            self._core.files_pinned = True
            return file_sizes(self._core.folder)

    def unpin_files(self) -> None:
        with self._core.write_lock:
            self._core.files_pinned = False

    def close(self) -> None:
        with self._core.write_lock, translate_errors():
            try:
                if self._core.folder is not None:
                    # After a fatal error nothing can be written; what was committed is in DuckDB's log.
                    with suppress(StoreEnded), translate_errors():
                        self._core.write_frontiers()
                        flush.flush_all(self._core)
            finally:
                self._core.close()

    # -- objects -------------------------------------------------------------------------------------

    def create_collection(self, collection: CollectionId, layout: Layout, *, window_ms: int) -> None:
        with self._core.write_lock:
            catalog.create_collection(self._core, collection, layout, window_ms)
            with self._core.memory_lock:
                self._layouts = None

    def set_window(self, collection: CollectionId, window_ms: int) -> None:
        with self._core.write_lock:
            catalog.set_window(self._core, collection, window_ms)

    def drop_collection(self, collection: CollectionId) -> None:
        with self._core.write_lock:
            catalog.drop_collection(self._core, collection)
            with self._core.memory_lock:
                self._layouts = None

    def collections(self) -> Mapping[CollectionId, Layout]:
        with self._core.memory_lock:
            if self._layouts is None:
                self._layouts = {c.id: c.layout for c in self._core.objects.collections.values()}
            return self._layouts

    def create_state(self, state: StateId, layout: Layout) -> None:
        with self._core.write_lock:
            catalog.create_state(self._core, state, layout)

    def drop_state(self, state: StateId) -> None:
        with self._core.write_lock:
            catalog.drop_state(self._core, state)

    def states(self) -> Mapping[StateId, Layout]:
        with self._core.memory_lock:
            return {s.id: s.layout for s in self._core.objects.states.values()}

    def create_outbox(self, query: QueryId, layout: Layout) -> None:
        with self._core.write_lock:
            catalog.create_outbox(self._core, query, layout)

    def drop_outbox(self, query: QueryId) -> None:
        with self._core.write_lock:
            catalog.drop_outbox(self._core, query)

    def queries(self) -> Set[QueryId]:
        with self._core.memory_lock:
            reading = {query for query, offsets in self._core.wal.positions.items() if offsets}
            return reading | self._core.objects.outboxes.keys()

    def forget_query(self, query: QueryId) -> None:
        with self._core.write_lock:
            self._core.write([WalEntry("forgotten", query)])
            self._facts.forget(query)

    # -- time ----------------------------------------------------------------------------------------

    def last_time(self) -> Time:
        with self._core.memory_lock:
            return max(self._core.wal.committed, self._core.wal.reserved)

    def committed_time(self) -> Time:
        with self._core.memory_lock:
            return self._core.wal.committed

    def reserve(self, until: Time) -> None:
        with self._core.write_lock:
            if until > self._core.wal.reserved:
                self._core.write([WalEntry("reserved", numbers=(until,))])

    def try_reserve(self, until: Time) -> bool:
        if not self._core.write_lock.acquire(blocking=False):
            return False
        try:
            self.reserve(until)
        finally:
            self._core.write_lock.release()
        return True

    def frontier(self, collection: CollectionId) -> Frontier:
        with self._core.memory_lock:
            return self._core.objects.collection(collection).frontier

    def set_upper(self, collections: Sequence[CollectionId], upper: Time) -> None:
        with self._core.memory_lock:
            for moved in map(self._core.objects.collection, collections):
                if laws.is_building(moved.frontier):
                    start = moved.history_from
                    moved.frontier = laws.first_frontier(upper, history_from=start, written=moved.written)
                    self._core.changed.add(moved.id)
                elif upper > moved.frontier.upper:
                    moved.frontier = laws.raised_upper(moved.frontier, upper)
                    self._core.advanced.add(moved.id)

    def advance_since(self, collection: CollectionId, to: Time) -> None:
        with self._core.memory_lock:
            moved = self._core.objects.collection(collection)
            if laws.is_building(moved.frontier):
                moved.history_from = Time(max(to, moved.written, moved.history_from or 0))
            else:
                moved.wanted = Time(max(to, moved.wanted))
                since = laws.held_since(moved.frontier, moved.wanted, self._core.claims(collection))
                moved.frontier = Frontier(since, moved.frontier.upper)
            self._core.changed.add(collection)

    def pin(self, collection: CollectionId, at: Time) -> int:
        with self._core.memory_lock:
            frontier = self._core.objects.collection(collection).frontier
            if laws.is_building(frontier) or at < frontier.since:
                raise unreadable(collection, at, frontier)
            return self._core.pins.add(collection, at)

    def unpin(self, token: int) -> None:
        with self._core.memory_lock:
            self._core.pins.remove(token)

    def put_hold(self, hold: HoldId, on: Sequence[CollectionId], at: Time) -> None:
        with self._core.write_lock:
            holds.put(self._core, hold, StoredHold(tuple(on), at))

    def move_holds(self, moves: Mapping[HoldId, Time]) -> Mapping[HoldId, ReadError]:
        with self._core.write_lock:
            return holds.move(self._core, moves)

    def drop_holds(self, ids: Sequence[HoldId]) -> None:
        with self._core.write_lock:
            holds.drop(self._core, ids)

    def holds(self) -> Mapping[HoldId, StoredHold]:
        with self._core.memory_lock:
            return dict(self._core.wal.holds)

    def retained_by(self, hold: HoldId) -> RetainedHistory:
        with self._core.write_lock:
            return self._hold_sizes.of(hold)

    def implied_since(self, collection: CollectionId) -> Time:
        with self._core.memory_lock:
            found = self._core.objects.collection(collection)
            return laws.unheld_since(found.frontier, found.wanted, found.window_ms)

    def compact(self, *, limit: int) -> int:
        with self._core.write_lock:
            forgotten = compaction.compact(self._core, limit)
            self._core.checkpoint(beyond=CHECKPOINT_BYTES)
            return forgotten

    # -- ticks ---------------------------------------------------------------------------------------

    def stage(self) -> DuckDbStage:
        with translate_errors():
            return DuckDbStage(self._core, self._core.database.cursor(), self._commit)

    def _commit(self, stage: DuckDbStage, time: Time, frozen: Set[CollectionId]) -> None:
        with self._core.write_lock:
            commit.commit(self._core, stage, time, frozen)
            stage.abandon()
            try:
                self._core.checkpoint(beyond=CHECKPOINT_AT_ONCE_BYTES)
            except StoreEnded:
                raise
            except StoreError as problem:
                # The tick is durable. The next commit or compaction tries again.
                log.warning("checkpoint failed: error=%s", problem)

    def position(self, query: QueryId) -> QueryPosition:
        with self._core.memory_lock:
            return self._core.wal.position(query)

    def remap_ends(self) -> Sequence[EndOffset]:
        with self._core.memory_lock:
            return ends_at(self._core.wal.remap, None)

    def remap_at(self, time: Time) -> Sequence[EndOffset]:
        with self._core.memory_lock:
            return ends_at(self._core.wal.remap, time)

    # -- reading -------------------------------------------------------------------------------------

    def snapshot(self, collection: CollectionId, at: Time, *, page: PageSize = 50_000) -> Iterator[pa.Table]:
        self._core.readable(collection, at)
        return self._pages(collection, at, page)

    def _pages(self, collection: CollectionId, at: Time, page: PageSize) -> Iterator[pa.Table]:
        with self._core.pinned(collection, at) as held:
            yield from read.read_pages(self._core, held, at, page)

    def changes(self, collection: CollectionId, after: Time, to: Time, keys: KeyRange | None = None) -> pa.Table:
        self._core.readable(collection, to)
        with self._core.pinned(collection, after) as held:
            return read.read_changes(self._core, held, after, to, keys)

    def change_ranges(self, collection: CollectionId, after: Time, to: Time, *, rows: int) -> Sequence[ChangeRange]:
        self._core.readable(collection, to)
        with self._core.pinned(collection, after) as held:
            return read.change_ranges(self._core, held, after, to, rows)

    def change_times(self, collection: CollectionId, after: Time, to: Time) -> Sequence[Time]:
        self._core.readable(collection, to)
        with self._core.pinned(collection, after) as held:
            return read.change_times(self._core, held, after, to)

    def changed_at(self, collection: CollectionId) -> Time:
        with self._core.memory_lock:
            return self._core.objects.collection(collection).written

    def count(self, collection: CollectionId) -> int:
        return read.count(self._core, self._core.objects.collection(collection))

    def evaluate(self, sql: str, relations: Mapping[str, Relation], parameters: Sequence[object] = ()) -> pa.Table:
        return self._evaluate(sql, relations, parameters, as_bounded_arrow(self.max_result_bytes))

    def evaluate_tuples(
        self, sql: str, relations: Mapping[str, Relation], parameters: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        return self._evaluate(sql, relations, parameters, as_tuples)

    def _evaluate(
        self,
        sql: str,
        relations: Mapping[str, Relation],
        parameters: Sequence[object],
        fetch: Fetch[T],
    ) -> T:
        with ExitStack() as held:
            found = {name: self._read(relation, held) for name, relation in relations.items()}
            return read.evaluate(self._core, sql, found, parameters, fetch)

    def _read(self, relation: Relation, held: ExitStack) -> RelationRead:
        id_, at = (relation.collection, relation.at) if isinstance(relation, GroupRead | KeyRead) else relation
        return RelationRead.of(self._core, relation, held.enter_context(self._core.pinned(id_, at)))

    def read_groups(self, part: GroupRead) -> pa.Table:
        self._core.readable(part.collection, part.at)
        with self._core.pinned(part.collection, part.at) as held:
            return read.find(self._core, held, part)

    def evaluate_over(self, sql: str, tables: Mapping[str, pa.Table], parameters: Sequence[object] = ()) -> pa.Table:
        return read.evaluate_over(self._core, sql, tables, parameters)

    # -- outbox --------------------------------------------------------------------------------------

    def pending(self, of: Iterable[QueryId] | None = None) -> Sequence[PendingRows]:
        return outbox.pending(self._core, of)

    def pending_bytes(self, query: QueryId) -> int:
        return outbox.pending_bytes(self._core, query)

    def pending_rows(self, query: QueryId, time: Time) -> pa.Table:
        return outbox.pending_rows(self._core, query, time)

    def mark_published(self, upto: Mapping[QueryId, Time], ends: Sequence[EndOffset] = ()) -> None:
        with self._core.write_lock:
            outbox.mark_published(self._core, upto, ends)

    def published_ends(self) -> Sequence[EndOffset]:
        with self._core.memory_lock:
            return [EndOffset(*partition, end) for partition, end in self._core.wal.published.items()]

    # -- small facts ---------------------------------------------------------------------------------

    def put(self, key: str, value: str | None) -> None:
        self._facts.put(key, value)

    def get(self, key: str) -> str | None:
        return self._facts.get(key)

    def facts(self, prefix: str) -> Mapping[str, str]:
        return self._facts.starting(prefix)
