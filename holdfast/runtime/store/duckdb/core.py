"""What the parts of the embedded store share: the database, two locks, and what is in memory.

Lock order: `write_lock`, then `memory_lock`.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from threading import RLock

import duckdb

from holdfast.errors import ReadError
from holdfast.names import CollectionId
from holdfast.runtime.store import frontier as laws
from holdfast.runtime.store.duckdb.disk.files import wal_bytes
from holdfast.runtime.store.duckdb.disk.wal import LoggedTick, WalEntry, WriteAheadLog
from holdfast.runtime.store.duckdb.errors import translate, translate_errors
from holdfast.runtime.store.duckdb.memtable.changes import apply, decode
from holdfast.runtime.store.duckdb.objects import Collection, Objects
from holdfast.runtime.store.duckdb.statements import Deadlines, PreparedStatements
from holdfast.runtime.store.port import Frontier, Time

MEMORY_ROWS = 200_000
"""About how many rows memory has of all collections and states, beside those that tables do not have yet."""


class Pins:
    """Times that open readers of this process need. Callers hold `memory_lock`."""

    def __init__(self) -> None:
        self._tokens = count(1)
        self._pins: dict[int, tuple[CollectionId, Time]] = {}

    def add(self, collection: CollectionId, at: Time) -> int:
        token = next(self._tokens)
        self._pins[token] = (collection, at)
        return token

    def remove(self, token: int) -> None:
        self._pins.pop(token, None)

    def on(self, collection: CollectionId) -> list[Time]:
        return [at for pinned, at in self._pins.values() if pinned == collection]

    def all(self) -> Iterable[tuple[CollectionId, Time]]:
        return self._pins.values()

    def forget(self, collection: CollectionId) -> None:
        self._pins = {token: pin for token, pin in self._pins.items() if pin[0] != collection}


class Core:
    """The open database. Methods that write are called with `write_lock` held."""

    def __init__(
        self,
        folder: Path | None,
        database: duckdb.DuckDBPyConnection,
        calculator: duckdb.DuckDBPyConnection,
        deadlines: Deadlines,
    ) -> None:
        self.folder = folder
        self.database = database
        self._calculator = calculator
        self.deadlines = deadlines
        self.expressions = PreparedStatements(calculator)
        """Over Arrow tables alone."""
        self.lookups = PreparedStatements(database)
        self.write_lock = RLock()
        """Held during every transaction that writes: ticks, flushes, compaction and facts exclude each other."""
        self.memory_lock = RLock()
        """Guards what is in memory. Never held while DuckDB works, so that readers do not wait for a tick."""
        self.wal, changes = WriteAheadLog.read(database)
        self.objects = Objects.read(database)
        self.pins = Pins()
        self.changed: set[CollectionId] = set()
        """Collections whose frontiers the next commit makes durable: they became readable, or their since was set."""
        self.advanced: set[CollectionId] = set()
        """Other collections whose frontiers in memory are ahead of the log's, as after each tick of a live query.

        The log may lag: a lower since is still correct while no history was forgotten because of it, and after a start
        the uppers of live queries follow the clock anyway. These frontiers become durable with what depends on them:
        changes of the collection, forgotten history, and a query that freezes.
        """
        self.froze = False
        """Whether the last tick froze a query: a reader may have raised its upper meanwhile."""
        self.epoch = 0
        """Counts checkpoints: row ids that were found in an earlier epoch may have moved."""
        self.files_pinned = False
        """While a backup copies the files, DuckDB's log may only grow and no checkpoint may run."""
        for collection in self.objects.collections.values():
            collection.restore(self.wal.collections[collection.id])
        self._replay(changes)

    def _replay(self, changes: Sequence[LoggedTick]) -> None:
        """Restore in memory what the tables do not have."""
        objects = self.objects.by_number()
        for number, time, encoded in changes:
            found = [change for change in decode(encoded, objects) if number > self.wal.flushed.get(change.object, -1)]
            apply(objects, found, number, time, published_to=self.wal.published_to)

    def close(self) -> None:
        self.deadlines.close()
        self.lookups.close()
        self.expressions.close()
        self._calculator.close()
        self.database.close()

    def allowance(self) -> int:
        """How many rows memory may have of one object beside those that it must have."""
        objects = len(self.objects.collections) + len(self.objects.states)
        return max(MEMORY_ROWS // max(objects, 1), 1_000)

    @contextmanager
    def transaction(self, connection: duckdb.DuckDBPyConnection | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """All or nothing: committed when the block ends without an error, else rolled back."""
        run = connection or self.database
        with translate_errors():
            run.execute("BEGIN")
            try:
                yield run
                run.execute("COMMIT")
            except BaseException:
                with suppress(duckdb.Error):
                    run.execute("ROLLBACK")
                raise

    def write(self, entries: Sequence[WalEntry]) -> None:
        """Make entries of the write-ahead log durable."""
        with self.transaction() as run:
            self.wal.write(run, entries)
        with self.memory_lock:
            self.wal.apply(entries)

    def write_frontiers(self) -> None:
        """Make the frontiers durable that are only in memory."""
        with self.changed_entries(self.advanced) as entries:
            if entries:
                self.write(entries)

    @contextmanager
    def changed_entries(
        self, advanced: Iterable[CollectionId] = (), *, without: Iterable[CollectionId] = ()
    ) -> Iterator[list[WalEntry]]:
        """Entries of the changed frontiers, and of those that advanced among some collections.

        They are durable when the block ends without an error. The caller writes those of the collections `without`.
        """
        with self.memory_lock:
            changed, moved = self.changed, self.advanced.intersection(advanced)
            written = (changed | moved).difference(without)
            self.changed = set()
            self.advanced -= moved | changed
            entries = [self.objects.collection(c).entry() for c in written]
        try:
            yield entries
        except BaseException:
            with self.memory_lock:
                self.changed |= changed
                self.advanced |= moved
            raise

    def checkpoint(self, *, beyond: int) -> bool:
        """Run a checkpoint when DuckDB's log is longer than `beyond`; False when a reader or a backup prevents it."""
        if wal_bytes(self.folder) <= beyond:
            return True
        if self.files_pinned:
            return False
        # Also before it starts: a stage that reads row ids meanwhile must not think them good.
        self.epoch += 1
        try:
            self.database.execute("CHECKPOINT")
        except duckdb.TransactionException:
            return False
        except duckdb.Error as problem:
            raise translate(problem) from problem
        finally:
            self.epoch += 1
        return True

    def claims(self, collection: CollectionId) -> list[Time]:
        """The times that pins and holds need of a collection."""
        return [*self.pins.on(collection), *(hold.at for hold in self.wal.holds.values() if collection in hold.on)]

    def least_claims(self) -> dict[CollectionId, Time]:
        """The least time that pins and holds need of each collection that they are on."""
        least: dict[CollectionId, Time] = {}
        held = ((collection, hold.at) for hold in self.wal.holds.values() for collection in hold.on)
        for collection, at in chain(self.pins.all(), held):
            least[collection] = min(at, least.get(collection, at))
        return least

    def readable(self, collection: CollectionId, at: Time) -> Collection:
        """The collection, when it can be read at a time."""
        with self.memory_lock:
            found = self.objects.collection(collection)
            if not laws.is_readable(found.frontier, at):
                raise unreadable(collection, at, found.frontier)
            return found

    @contextmanager
    def pinned(self, collection: CollectionId, at: Time) -> Iterator[Collection]:
        """The collection, pinned at a time for the length of the block."""
        with self.memory_lock:
            found = self.readable(collection, at)
            token = self.pins.add(collection, at)
        try:
            yield found
        finally:
            with self.memory_lock:
                self.pins.remove(token)


def unreadable(collection: CollectionId, at: Time, frontier: Frontier) -> ReadError:
    if laws.is_building(frontier):
        return ReadError(f"{collection} has no readable time yet", detail="It is still being built.")
    return ReadError(
        f"{collection} cannot be read as of {at}",
        detail=f"Its readable times are from {frontier.since} up to, and without, {frontier.upper}.",
    )
