"""Tables with holds, and a clock that the test advances."""

from pathlib import Path

from holdfast.catalog.snapshot import Catalog
from holdfast.coordinator.holds import Holds
from holdfast.runtime.progress import Progress
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.store.duckdb.store import DuckDbStore, open_store
from holdfast.runtime.store.port import Time
from holdfast.sql.bind.hold import BoundAdvanceHold
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse
from holdfast.testing.database import INTERVALS
from tests.serving.client_reads import Reading, plain

WINDOW = INTERVALS.window_ms
START = WINDOW + 1_000
"""The time at which the compaction window begins to advance."""


class World:
    """Tables with holds, and a clock that the test advances. With a folder, its store is on disk."""

    def __init__(self, engine: Engine, folder: Path | None = None) -> None:
        self._folder, self._opened = folder, list[DuckDbStore]()
        self.reading = Reading(engine, folder=folder and folder / "store")
        self.store, self._service = self.reading.store, self.reading.service
        self.go(START)

    def close(self) -> None:
        for store in self._opened:
            store.close()
        self.reading.close()

    # -- time ----------------------------------------------------------------------------------------

    def now(self) -> Time:
        return self.reading.now

    def go(self, to: int) -> None:
        """Advance the clock, run a tick at its end, and compact history."""
        self.reading.now = to - 1
        self.reading.put_all({"T": {"a": (to, "x")}, "I": {1: (to,)}})

    @property
    def progress(self) -> Progress:
        return self.reading.progress

    @progress.setter
    def progress(self, to: Progress) -> None:
        self.reading.progress = to

    # -- statements ----------------------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        return self._service.catalog

    def run(self, text: str) -> None:
        """Run a statement about holds, as the server does."""
        parsed = parse(text)[0]
        bound = bind(parsed.statement, self.catalog)
        if isinstance(bound, BoundAdvanceHold):
            self._service.advance_hold(bound)
        else:
            self._service.execute(parsed, {})

    def commit(self, text: str) -> None:
        """Run the statements of a transaction."""
        self.reading.driver.commit(text)

    def define(self, text: str) -> None:
        """Run a statement that creates an object."""
        self.reading.driver.execute(text)

    # -- results ------------------------------------------------------------------------------------

    @property
    def holds(self) -> Holds:
        return self._service._holds

    def at(self, name: str) -> int:
        return self.holds.at(self.catalog.hold(name))

    def rows(self, text: str) -> list[tuple]:
        return plain(self.reading.pull(text).rows)

    def reopened(self) -> DuckDbStore:
        """The store as another process would find it if this one were killed now."""
        assert self._folder is not None
        copy = self._folder / f"copy_{len(self._opened)}"
        copy.mkdir()
        for file, size in self.store.pin_files().items():
            (copy / file.name).write_bytes(file.read_bytes()[:size])
        self.store.unpin_files()
        self._opened.append(open_store(copy))
        return self._opened[-1]
