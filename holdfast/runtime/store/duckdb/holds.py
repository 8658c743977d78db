"""SQL holds: times that stay readable across restarts, and the history that each of them retains.

A hold is durable through an entry of the write-ahead log, which also has every since: no order of crashes can leave a
since beyond a hold. While its entry is being written its times are pinned, because `memory_lock` is not held then.

Without a hold, since would be further, and compaction could forget the versions that were superseded in between: the
hold retains those. They cannot change, so a count of them stays right until since moves, and counting again has to look
only at what was superseded after the last count.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from holdfast.errors import ReadError
from holdfast.names import HoldId
from holdfast.runtime.store import frontier as laws
from holdfast.runtime.store.duckdb.core import Core, unreadable
from holdfast.runtime.store.duckdb.disk.wal import WalEntry, hold_entry
from holdfast.runtime.store.duckdb.errors import translate_errors
from holdfast.runtime.store.duckdb.objects import Collection
from holdfast.runtime.store.duckdb.relations import Contents
from holdfast.runtime.store.duckdb.statements import as_arrow, one
from holdfast.runtime.store.port import Frontier, RetainedHistory, StoredHold, Time


def put(core: Core, id_: HoldId, hold: StoredHold) -> None:
    with _pinned(core, hold):
        core.write([hold_entry(id_, hold)])


def move(core: Core, moves: Mapping[HoldId, Time]) -> Mapping[HoldId, ReadError]:
    refused: dict[HoldId, ReadError] = {}
    entries: list[WalEntry] = []
    with ExitStack() as pinned:
        for id_, at in moves.items():
            known = core.wal.holds.get(id_)
            if known is None:
                refused[id_] = ReadError(f'hold "{id_}" does not exist any more')
                continue
            hold = StoredHold(known.on, at)
            try:
                pinned.enter_context(_pinned(core, hold))
            except ReadError as error:
                refused[id_] = error
            else:
                entries.append(hold_entry(id_, hold))
        if entries:
            core.write(entries)
    return refused


def drop(core: Core, holds: Sequence[HoldId]) -> None:
    entries = [WalEntry("let_go", hold) for hold in holds if hold in core.wal.holds]
    if entries:
        core.write(entries)


@contextmanager
def _pinned(core: Core, hold: StoredHold) -> Iterator[None]:
    """Since cannot move beyond the hold's time within the block."""
    with core.memory_lock:
        for id_ in hold.on:
            found = core.objects.collection(id_)
            if not laws.is_holdable(found.frontier, found.history_from, hold.at):
                raise unreadable(id_, hold.at, found.frontier)
        tokens = [core.pins.add(id_, hold.at) for id_ in hold.on]
    try:
        yield
    finally:
        with core.memory_lock:
            for token in tokens:
                core.pins.remove(token)


SAMPLE = 1_000
"""Versions of which the mean size is taken."""


@dataclass(slots=True)
class Counted:
    """How many versions were superseded after `after` and up to `to`, and how large each is on the average."""

    after: Time
    to: Time
    rows: int = 0
    measured: int = 0
    width: float = 0.0


class HoldSizes:
    """The history that holds retain. Callers hold `write_lock`: compaction must not forget what is being counted."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._counted: dict[int, Counted] = {}

    def of(self, hold: HoldId) -> RetainedHistory:
        stored = self._core.wal.holds.get(hold)
        rows = size = 0
        for id_ in stored.on if stored is not None else ():
            collection = self._core.objects.collections[id_]
            with self._core.memory_lock:
                frontier, free = collection.frontier, self._without(hold, collection)
            if free <= frontier.since:
                continue
            counted = self._count(collection, frontier, free)
            rows, size = rows + counted.rows, size + round(counted.rows * counted.width)
        return RetainedHistory(rows, size)

    def _without(self, hold: HoldId, collection: Collection) -> Time:
        """Where since would be without the hold."""
        if laws.is_building(collection.frontier):
            return collection.frontier.since
        others = [other.at for id_, other in self._core.wal.holds.items() if id_ != hold and collection.id in other.on]
        wanted = max(collection.wanted, laws.implied_since(collection.frontier.upper, collection.window_ms))
        return laws.held_since(collection.frontier, Time(wanted), [*self._core.pins.on(collection.id), *others])

    def _count(self, collection: Collection, frontier: Frontier, to: Time) -> Counted:
        found = self._counted.get(collection.number)
        if found is None or found.after != frontier.since or found.to > to:
            found = self._counted[collection.number] = Counted(frontier.since, frontier.since)
        if to > found.to:
            found.rows += self._rows(collection, found.to, to)
            found.to = to
        if found.rows > found.measured + found.measured // 4:
            found.measured, found.width = found.rows, self._width(collection, found.after, to)
        return found

    def _rows(self, collection: Collection, after: Time, to: Time) -> int:
        """Times before the memtable's are counted in the tables alone, without comparing keys."""
        contents = Contents.of(self._core, collection)
        stored = to if contents.unflushed is None else Time(min(to, contents.unflushed.first - 1))
        counts = f"SELECT count(*) FROM {collection.history} WHERE until > {after} AND until <= {stored}"
        later = Time(max(after, stored))
        if later < to:
            more = f"SELECT count(*) FROM ({contents.history()}) WHERE until > {later} AND until <= {to}"
            counts = f"SELECT ({counts}) + ({more})"
        with translate_errors(), closing(self._core.database.cursor()) as cursor:
            contents.register(cursor)
            [rows] = one(cursor, counts)
            return int(rows)

    def _width(self, collection: Collection, after: Time, to: Time) -> float:
        contents = Contents.of(self._core, collection)
        sql = f"SELECT * FROM ({contents.history()}) WHERE until > {after} AND until <= {to} LIMIT {SAMPLE}"
        with translate_errors(), closing(self._core.database.cursor()) as cursor:
            contents.register(cursor)
            sample = as_arrow(cursor, sql)
        return sample.nbytes / sample.num_rows if sample.num_rows else 0.0
