"""Chooses the time of a read, and pins it while the read runs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from holdfast.catalog.objects import CatalogObject, Holdable, Index, NamedHold, Table
from holdfast.catalog.system import is_system
from holdfast.coordinator.uppers import Uppers, maintaining_query
from holdfast.coordinator.upstream import Stop
from holdfast.errors import ReadError
from holdfast.names import CollectionId, ObjectName
from holdfast.runtime.progress import Status
from holdfast.runtime.store.port import Frontier, Store, Time
from holdfast.serving.time.choice import Bounds, TimeChoice, choose, no_valid_time
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.literals.moment import BoundAsOf
from holdfast.wall_clock import WallClock

BUILD_WAIT_SECONDS = 5.0
"""How long a read waits for a table that is being built. Most are ready sooner, and a new user expects to read them."""
POLL_SECONDS = 0.02
"""How often a waiting read looks again: not everything that it waits for comes with a commit."""


@dataclass(frozen=True, slots=True)
class Readable:
    """A time to read at; `notice` names an object whose upper no longer follows the clock."""

    time: Time
    notice: str | None = None


class Times:
    """Chooses read times. Thread-safe. `holds` returns the holds on an object."""

    def __init__(
        self,
        store: Store,
        uppers: Uppers,
        clock: WallClock,
        wakeup: Wakeup,
        holds: Callable[[ObjectName], Sequence[NamedHold]] = lambda _name: (),
        refresh_system: Callable[[], None] = lambda: None,
    ) -> None:
        """`refresh_system` is called before a system table is read, to bring it up to date."""
        self._refresh_system = refresh_system
        self._store, self._uppers, self._holds = store, uppers, holds
        self._clock, self._wakeup = clock, wakeup

    def now(self) -> Time:
        """The latest time that is final for all objects whose upper follows the clock."""
        return self._uppers.now()

    def upper(self, table: Holdable) -> Time | None:
        """The upper of a table or index now; None while it is being built, or if it never was."""
        return self._uppers.upper(table)

    def building(self, relation: CatalogObject | Index) -> bool:
        """Whether a table or index is being built: it has no readable time yet."""
        progress = self._uppers.progress(relation)
        return progress is not None and progress.status is Status.BUILDING

    def stop(self, relation: CatalogObject | Index) -> Stop | None:
        """The query that keeps the upper of a table or index from following the clock."""
        return self._uppers.stop(relation)

    def is_current(self, relation: CatalogObject | Index) -> bool:
        """Whether the upper of a table or index follows the clock."""
        return self.stop(relation) is None

    def following(self, table: Table) -> Bounds:
        """The bounds of a table whose changes are read. Does not wait: a table that catches up has the upper it had."""
        if is_system(table):
            self._refresh_system()
        frozen = self._reach(table, self.now())
        return Bounds(table.name, self._store.frontier(CollectionId(table.name)), frozen, kind=table.KIND)

    def latest(self, table: Table) -> Readable:
        """The latest final time of a table, or an error that says why it has none."""
        if is_system(table):
            self._refresh_system()
        self._await_built(table)
        now = self.now()
        bounds = self._own_bounds(table, now)
        notice = bounds.notice if bounds.frozen is not None else None
        return Readable(Time(min(now, bounds.frontier.upper - 1)), notice)

    def choose(
        self, tables: Sequence[Table], as_of: BoundAsOf | None = None, indexes: Sequence[Index] = ()
    ) -> TimeChoice:
        """The time at which tables are read together. It may be in the future; nothing is pinned.

        A table is also readable at times at which one of its `indexes` is, as they have all its columns.
        """
        if any(map(is_system, tables)):
            self._refresh_system()
        for table in tables:
            self._await_built(table)
        now = self.now()
        return choose([self._bounds(table, now, indexes) for table in tables], now, as_of)

    def left_ms(self, tables: Sequence[Table], as_of: BoundAsOf | None, indexes: Sequence[Index] = ()) -> int:
        """Milliseconds until the requested time is final; 0 if it is. Raises like `choose`."""
        if as_of is None:
            return 0
        choice = self.choose(tables, as_of, indexes)
        return max(0, choice.time - self.now())

    @contextmanager
    def reading(
        self, tables: Sequence[Table], as_of: BoundAsOf | None = None, indexes: Sequence[Index] = ()
    ) -> Iterator[TimeChoice]:
        """The time at which tables are read together, pinned until the block ends.

        Waits for a time in the future; raises if the upper of a table froze before it. `readable` then has each table,
        an index on it, or both.
        """
        with ExitStack() as pins:
            choice = self._pin_choice(tables, as_of, indexes, pins)
            self._await_time(choice.time, tables, as_of)
            self._uppers.reach([*tables, *indexes], choice.time)
            readable = tuple(name for name in choice.readable if self._reaches(name, choice.time))
            yield replace(choice, readable=readable)

    def _pin_choice(
        self, tables: Sequence[Table], as_of: BoundAsOf | None, indexes: Sequence[Index], pins: ExitStack
    ) -> TimeChoice:
        """Choose a time and pin each table or its indexes. Chooses again if a since advanced in between."""
        while True:
            choice = self.choose(tables, as_of, indexes)
            with ExitStack() as chosen:
                names: list[ObjectName] = []
                for table in tables:
                    paths = [table.name, *(index.name for index in indexes if index.on == table.name)]
                    pinned = [name for name in paths if self._pin(name, choice.time, chosen)]
                    if not pinned:
                        break
                    names += pinned
                else:
                    pins.push(chosen.pop_all())
                    return replace(choice, readable=tuple(names))

    def _pin(self, name: ObjectName, time: Time, pins: ExitStack) -> bool:
        collection = CollectionId(name)
        if collection not in self._store.collections():
            return False
        try:
            token = self._store.pin(collection, time)
        except ReadError:
            return False
        pins.callback(self._store.unpin, token)
        return True

    def _reaches(self, name: ObjectName, time: Time) -> bool:
        """Whether an object is final at a time; an index whose upper froze may not be."""
        return self._store.frontier(CollectionId(name)).upper > time

    def _await_time(self, time: Time, tables: Sequence[Table], as_of: BoundAsOf | None) -> None:
        """Wait until a time is final; raises if the upper of a table froze before it."""
        seen = self._wakeup.count
        while (now := self.now()) < time:
            bounds = [self._bounds(table, now) for table in tables]
            if any(each.frozen is not None and each.frontier.upper <= time for each in bounds):
                raise no_valid_time(bounds, time, as_of)
            seen = self._wakeup.wait(seen, min(POLL_SECONDS, (time - now) / 1_000))

    def _await_built(self, table: Table) -> None:
        deadline = self._clock.monotonic() + BUILD_WAIT_SECONDS
        while self.building(table) and self._clock.monotonic() < deadline:
            self._clock.sleep(POLL_SECONDS)

    def _bounds(self, table: Table, now: Time, indexes: Sequence[Index] = ()) -> Bounds:
        """The bounds of a table, including what its indexes make readable; raises if it is not readable at all."""
        bounds = self._own_bounds(table, now)
        since = [self._since(index, bounds.frontier.since) for index in indexes if index.on == table.name]
        least = min([bounds.frontier.since, *since])
        return replace(bounds, frontier=Frontier(least, bounds.frontier.upper))

    def _since(self, index: Index, own: Time) -> Time:
        """The since of a table if it is read through an index, which must reach the table's `own` since."""
        collection = CollectionId(index.name)
        if collection not in self._store.collections():
            return own
        frontier = self._store.frontier(collection)
        reaches = self.is_current(index) or frontier.upper > own
        return frontier.since if frontier.upper > 0 and reaches else own

    def _own_bounds(self, table: Table, now: Time) -> Bounds:
        progress, frozen = self._uppers.progress(table), self._reach(table, now)
        if progress is not None and progress.status is Status.BUILDING:
            stop = self._uppers.stop(table)
            waits = stop is not None and stop.query != maintaining_query(table)
            raise ReadError(
                f'{table.KIND} "{table.name}" is still building, {progress.done:.0%}',
                detail=f"It waits: {frozen}." if waits else None,
                hint="It can be read once it has caught up; SHOW QUERIES shows its progress.",
            )
        frontier = self._store.frontier(CollectionId(table.name))
        if frontier.upper == 0:
            raise ReadError(f'{table.KIND} "{table.name}" has no readable time yet', detail=f"The reason: {frozen}.")
        return Bounds(table.name, frontier, frozen, tuple(self._holds(table.name)), table.KIND)

    def _reach(self, table: Table, now: Time) -> str | None:
        """Let the upper of a table follow the clock; returns why it is frozen instead."""
        self._uppers.reach([table], now)
        stop = self._uppers.stop(table)
        return stop.seen_from(maintaining_query(table)) if stop is not None else None
