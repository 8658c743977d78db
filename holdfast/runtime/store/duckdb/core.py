"""What all parts of the embedded store share: the database, two locks, and what is kept in memory.

`writing` is held over every transaction that writes, so that ticks, compaction and small facts never meet.
`times` guards what is in memory; it is never held while DuckDB works, so readers never wait for a tick.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock

import duckdb

from holdfast.errors import ReadError
from holdfast.names import CollectionId
from holdfast.runtime.store import frontier as laws
from holdfast.runtime.store.duckdb.applying import apply
from holdfast.runtime.store.duckdb.deadlines import Deadlines
from holdfast.runtime.store.duckdb.files import wal_bytes
from holdfast.runtime.store.duckdb.holds import Holds
from holdfast.runtime.store.duckdb.journal import decode
from holdfast.runtime.store.duckdb.ledger import Change, Entry, Ledger
from holdfast.runtime.store.duckdb.objects import Collection, Objects
from holdfast.runtime.store.duckdb.prepared import Statements
from holdfast.runtime.store.duckdb.problems import telling, told
from holdfast.runtime.store.port import Frontier, Time

MEMORY_ROWS = 200_000
"""About how many rows memory has of all collections and states, beside those that tables do not have yet."""


class Core:
    """The open database. Methods that write are called with `writing` held."""

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
        self.expressions = Statements(calculator)
        """Over Arrow tables alone."""
        self.lookups = Statements(database)
        self.writing = RLock()
        self.times = RLock()
        self.ledger, changes = Ledger.read(database)
        self.objects = Objects.read(database)
        self.holds = Holds()
        self.changed: set[CollectionId] = set()
        """Collections whose times in memory are ahead of the ledger's."""
        self.epoch = 0
        """Counts checkpoints: row ids that were found in an earlier epoch may have moved."""
        self.kept = False
        """True while what the files hold must stay as it is: a log that only grows, and no checkpoint."""
        for collection in self.objects.collections.values():
            collection.recall(self.ledger.collections[collection.id])
        self._replay(changes)

    def _replay(self, changes: Sequence[Change]) -> None:
        """Have in memory again what the tables do not have."""
        objects = self.objects.by_number()
        for number, time, encoded in changes:
            parts = [part for part in decode(encoded, objects) if number > self.ledger.folded.get(part.object, -1)]
            apply(objects, parts, number, time, settled=self.ledger.settled)

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
        """All or nothing: committed when the block ends well, else rolled back."""
        run = connection or self.database
        with telling():
            run.execute("BEGIN")
            try:
                yield run
                run.execute("COMMIT")
            except BaseException:
                with suppress(duckdb.Error):
                    run.execute("ROLLBACK")
                raise

    def write(self, entries: Sequence[Entry]) -> None:
        """Make ledger entries durable."""
        with self.transaction() as run:
            self.ledger.write(run, entries)
        with self.times:
            self.ledger.apply(entries)

    def flush(self) -> None:
        """Make the times durable that only memory knows."""
        with self.changed_entries() as entries:
            if entries:
                self.write(entries)

    @contextmanager
    def changed_entries(self, without: Sequence[CollectionId] = ()) -> Iterator[list[Entry]]:
        """Entries of the times that only memory knows; known to be durable when the block ends well."""
        with self.times:
            changed, self.changed = self.changed, set()
            entries = [self.objects.collection(c).entry() for c in changed if c not in without]
        try:
            yield entries
        except BaseException:
            with self.times:
                self.changed |= changed
            raise

    def checkpoint(self, *, beyond: int) -> bool:
        """Fold the log into the file when it is longer; False when a reader or a backup is in the way."""
        if wal_bytes(self.folder) <= beyond:
            return True
        if self.kept:
            return False
        # Also before it starts: a stage that reads row ids meanwhile must not think them good.
        self.epoch += 1
        try:
            self.database.execute("CHECKPOINT")
        except duckdb.TransactionException:
            return False
        except duckdb.Error as problem:
            raise told(problem) from problem
        finally:
            self.epoch += 1
        return True

    def held(self, collection: CollectionId) -> list[Time]:
        """The times that readers and holds need of a collection."""
        return [*self.holds.on(collection), *(kept.at for kept in self.ledger.kept.values() if collection in kept.on)]

    def readable(self, collection: CollectionId, at: Time) -> Collection:
        """The collection, when it can be read at a time."""
        with self.times:
            found = self.objects.collection(collection)
            if not laws.is_readable(found.frontier, at):
                raise unreadable(collection, at, found.frontier)
            return found

    @contextmanager
    def holding(self, collection: CollectionId, at: Time) -> Iterator[Collection]:
        """The collection, kept readable at a time for the length of the block."""
        with self.times:
            found = self.readable(collection, at)
            token = self.holds.take(collection, at)
        try:
            yield found
        finally:
            with self.times:
                self.holds.release(token)


def unreadable(collection: CollectionId, at: Time, frontier: Frontier) -> ReadError:
    if laws.is_building(frontier):
        return ReadError(f"{collection} has no readable time yet", detail="It is still being built.")
    return ReadError(
        f"{collection} cannot be read as of {at}",
        detail=f"Its readable times are from {frontier.since} up to, and without, {frontier.upper}.",
    )
