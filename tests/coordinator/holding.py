"""Tables, holds on them, and a clock that the test moves."""

from pathlib import Path

from holdfast.catalog.commands import apply, decode_command, encode_command, fold
from holdfast.catalog.snapshot import Catalog
from holdfast.coordinator.holds import Holds
from holdfast.names import CollectionId
from holdfast.planner.commands import OfHolds, commands_for, hold_of
from holdfast.planner.draft import Draft
from holdfast.planner.plan import Plannable
from holdfast.runtime.progress import Progress, Status
from holdfast.runtime.store.duckdb.store import DuckDbStore, open_store
from holdfast.runtime.store.port import Time
from holdfast.serving.times import Times
from holdfast.sql.bind import bind
from holdfast.sql.bound import BoundDrop
from holdfast.sql.bound_hold import BoundAdvanceHold, BoundCreateHold
from holdfast.sql.parse import parse
from tests.serving.reading import Reading, plain

WINDOW = 1_000_000
START = WINDOW + 1_000
"""A present at which the compaction window begins to move."""
CEILING = 604_800_000


class World:
    """Tables, holds on them, and a clock that the test moves."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._opened = folder, list[DuckDbStore]()
        self.reading = Reading(folder / "store")
        self.store = self.reading.store
        self.catalog: Catalog = self.reading.driver.catalog
        self.progress = Progress(Status.RUNNING)
        times = Times(self.store, self.now, lambda _query: self.progress, lambda name: self.holds.on(name))
        self.reading.times = times
        self.holds = Holds(self.store, times, lambda: self.catalog, CEILING)
        self.go(START)

    def now(self) -> Time:
        return Time(self.reading.now)

    def go(self, to: int) -> None:
        """Let time pass, with a tick at its end, and history be forgotten."""
        self.reading.now = to - 1
        self.reading.put("T", {"a": (to, "x")})
        self.reading.put("I", {1: (to,)})
        for name in ("T", "I"):
            self.store.set_upper([CollectionId(name)], Time(self.reading.now + 1))
        self.holds.settle()
        self.holds.advance_overdue()
        self.store.compact(limit=10_000)

    def run(self, text: str) -> None:
        """A statement about holds, as the server runs it."""
        parsed = parse(text)[0]
        bound = bind(parsed.statement, self.catalog)
        if isinstance(bound, BoundAdvanceHold):
            self.holds.advance(bound.hold, bound.to)
            return
        assert isinstance(bound, OfHolds | BoundDrop)
        number = len(self.catalog.holds) + 10
        if isinstance(bound, BoundCreateHold):
            self.holds.place(hold_of(bound, text=text, number=number), bound.at)
        (command,) = commands_for(bound, text=parsed.text, number=number)
        self.catalog = fold([decode_command(*encode_command(command))], self.catalog)
        self.holds.settle()

    def commit(self, text: str) -> None:
        """The statements of a transaction."""
        draft = Draft()
        for parsed in parse(text):
            draft, _ = draft.adding(parsed, {}, self.catalog)
        draft.check_whole()
        command = draft.command(draft.planned(self.catalog, number=99), None)
        self.catalog = apply(self.catalog, decode_command(*encode_command(command), offset=99))
        self.holds.settle()

    def define(self, text: str) -> None:
        """A statement that creates something."""
        (parsed,) = parse(text)
        bound = bind(parsed.statement, self.catalog)
        assert isinstance(bound, Plannable)
        self.catalog = fold(commands_for(bound, text=parsed.text, number=len(self.catalog.objects)), self.catalog)

    def reopened(self) -> DuckDbStore:
        """The store as another process would find it, were this one killed now."""
        copy = self._folder / f"copy_{len(self._opened)}"
        copy.mkdir()
        for file, size in self.store.keep_files().items():
            (copy / file.name).write_bytes(file.read_bytes()[:size])
        self.store.release_files()
        self._opened.append(open_store(copy))
        return self._opened[-1]

    def close(self) -> None:
        for store in self._opened:
            store.close()
        self.reading.close()

    def at(self, name: str) -> int:
        return self.holds.at(self.catalog.hold(name))

    def rows(self, text: str) -> list[tuple]:
        return plain(self.reading.pull(text).rows)
