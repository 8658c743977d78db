"""Which time objects can be read at, and the holds that keep it readable while they are."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from time import monotonic, sleep

from holdfast.catalog.objects import CatalogObject, Held, Index, Table
from holdfast.catalog.system import is_system
from holdfast.errors import ReadError
from holdfast.names import CollectionId, ObjectName, QueryId
from holdfast.runtime.progress import Progress, Status
from holdfast.runtime.store.port import Frontier, Store, Time
from holdfast.serving.timestamps import Bounds, NamedHold, TimeChoice, choose, no_valid_time
from holdfast.sql.moments import BoundAsOf

PATIENCE = 5.0
"""Seconds that a read waits for a table that is being built: most are there in less, and a new user expects it."""
LOOK_AGAIN = 0.02
"""Seconds between two looks at what is waited for."""


@dataclass(frozen=True, slots=True)
class Readable:
    """A time to read at; `notice` names an object whose upper no longer follows the clock."""

    time: Time
    notice: str | None = None


class Times:
    """Chooses read times. From any thread. `holds` gives the holds that users made on an object."""

    def __init__(
        self,
        store: Store,
        read_time: Callable[[], Time],
        progress: Callable[[QueryId], Progress | None],
        holds: Callable[[ObjectName], Sequence[NamedHold]] = lambda _name: (),
        before: Callable[[], None] = lambda: None,
    ) -> None:
        """`before` is called before a system table is read: what it tells is brought up to date."""
        self._before = before
        self._store, self._read_time, self._progress, self._holds = store, read_time, progress, holds

    def now(self) -> Time:
        """The latest time that is final for what is kept current."""
        return self._read_time()

    def upper(self, table: Held) -> Time | None:
        """The upper of a table or index as it is now; None while it is being built, or never was."""
        progress, collection = self._progress(_keeper(table)), CollectionId(table.name)
        if progress is not None and progress.status is Status.RUNNING:
            self._store.set_upper([collection], Time(self._read_time() + 1))
        known = self._store.frontier(collection).upper if collection in self._store.collections() else 0
        building = progress is not None and progress.status is Status.BUILDING
        return Time(known) if known and not building else None

    def latest_of(self, relation: CatalogObject) -> Readable:
        assert isinstance(relation, Table)
        return self.latest(relation)

    def building(self, relation: CatalogObject | Index) -> bool:
        """Whether a table or index has no readable time yet but will have one."""
        progress = self._progress(_keeper(relation))
        return progress is not None and progress.status is Status.BUILDING

    def follows(self, relation: CatalogObject | Index) -> bool:
        """Whether a table or index is kept current."""
        progress = self._progress(_keeper(relation))
        return progress is not None and progress.status is Status.RUNNING

    def latest(self, table: Table) -> Readable:
        """The latest final time of a table, or why it has none."""
        collection = CollectionId(table.name)
        if is_system(table):
            self._before()
        self._await_built(table)
        progress = self._progress(_keeper(table))
        if progress is not None and progress.status is Status.RUNNING:
            time = self._read_time()
            self._store.set_upper([collection], Time(time + 1))
            return Readable(time)
        bounds = self._bounds(table, Time(0))
        assert bounds.frozen is not None
        notice = f'{table.KIND} "{table.name}" is not kept current, its query {bounds.frozen}'
        return Readable(Time(bounds.frontier.upper - 1), notice)

    def choose(
        self, tables: Sequence[Table], as_of: BoundAsOf | None = None, indexes: Sequence[Index] = ()
    ) -> TimeChoice:
        """The time at which tables are read together. It may be in the future; nothing is held.

        A table can also be read where one of `indexes`, which have all its columns, still has what it was.
        """
        if any(map(is_system, tables)):
            self._before()
        for table in tables:
            self._await_built(table)
        now = self._read_time()
        return choose([self._bounds(table, now, indexes) for table in tables], now, as_of)

    def left_ms(self, tables: Sequence[Table], as_of: BoundAsOf | None, indexes: Sequence[Index] = ()) -> int:
        """Milliseconds until the time that is wanted is final; 0 when it is. Errors as `choose` has them."""
        if as_of is None:
            return 0
        choice = self.choose(tables, as_of, indexes)
        return max(0, choice.time - self._read_time())

    @contextmanager
    def reading(
        self, tables: Sequence[Table], as_of: BoundAsOf | None = None, indexes: Sequence[Index] = ()
    ) -> Iterator[TimeChoice]:
        """The time at which tables are read together, kept readable for the length of the block.

        A time in the future is waited for, unless one of the tables stops short of it. What is `readable` then is each
        table, or an index on it, or both.
        """
        with ExitStack() as held:
            choice = self._held(tables, as_of, indexes, held)
            while self._read_time() < choice.time:
                for table in tables:
                    now = self._read_time()
                    bounds = self._bounds(table, now)
                    if bounds.frozen is not None and bounds.frontier.upper <= choice.time:
                        raise no_valid_time([self._bounds(each, now) for each in tables], choice.time, as_of)
                sleep(LOOK_AGAIN)
            running = [CollectionId(b.name) for b in choice.bounds if b.frozen is None]
            running += [CollectionId(index.name) for index in indexes if self.follows(index)]
            self._store.set_upper(running, Time(choice.time + 1))
            readable = tuple(name for name in choice.readable if self._reaches(name, choice.time))
            yield replace(choice, readable=readable)

    def _held(
        self, tables: Sequence[Table], as_of: BoundAsOf | None, indexes: Sequence[Index], held: ExitStack
    ) -> TimeChoice:
        """A choice with a hold on each table or on indexes of it. Where since moved on between the two, the choice is
        made again."""
        while True:
            choice = self.choose(tables, as_of, indexes)
            with ExitStack() as taken:
                names: list[ObjectName] = []
                for table in tables:
                    paths = [table.name, *(index.name for index in indexes if index.on == table.name)]
                    kept = [name for name in paths if self._hold(name, choice.time, taken)]
                    if not kept:
                        break
                    names += kept
                else:
                    held.push(taken.pop_all())
                    return replace(choice, readable=tuple(names))

    def _hold(self, name: ObjectName, time: Time, taken: ExitStack) -> bool:
        collection = CollectionId(name)
        if collection not in self._store.collections():
            return False
        try:
            token = self._store.hold(collection, time)
        except ReadError:
            return False
        taken.callback(self._store.release, token)
        return True

    def _reaches(self, name: ObjectName, time: Time) -> bool:
        """Whether something is final at a time; an index that is not kept current may not be."""
        return self._store.frontier(CollectionId(name)).upper > time

    def _await_built(self, table: Table) -> None:
        deadline = monotonic() + PATIENCE
        while self.building(table) and monotonic() < deadline:
            sleep(LOOK_AGAIN)

    def _bounds(self, table: Table, now: Time, indexes: Sequence[Index] = ()) -> Bounds:
        """Of a table that is readable, itself or through indexes; else why it is not."""
        bounds = self._own_bounds(table, now)
        since = [self._since(index, bounds.frontier.since) for index in indexes if index.on == table.name]
        least = min([bounds.frontier.since, *since])
        return replace(bounds, frontier=Frontier(least, bounds.frontier.upper))

    def _since(self, index: Index, own: Time) -> Time:
        """From where on an index can stand for its table, which has `own` itself: if it goes on up to there."""
        collection = CollectionId(index.name)
        if collection not in self._store.collections():
            return own
        frontier = self._store.frontier(collection)
        reaches = self.follows(index) or frontier.upper > own
        return frontier.since if frontier.upper > 0 and reaches else own

    def _own_bounds(self, table: Table, now: Time) -> Bounds:
        collection, progress = CollectionId(table.name), self._progress(_keeper(table))
        holds = tuple(self._holds(table.name))
        if progress is not None and progress.status is Status.BUILDING:
            raise ReadError(
                f'{table.KIND} "{table.name}" is still building, {progress.done:.0%}',
                hint="It can be read once it has caught up; SHOW QUERIES tells how far it is.",
            )
        if progress is not None and progress.status is Status.RUNNING:
            self._store.set_upper([collection], Time(now + 1))
            return Bounds(table.name, self._store.frontier(collection), None, holds, table.KIND)
        frontier = self._store.frontier(collection)
        if frontier.upper == 0:
            raise ReadError(
                f'{table.KIND} "{table.name}" was never built', detail=f"The reason is: its query {_stopped(progress)}."
            )
        return Bounds(table.name, frontier, _stopped(progress), holds, table.KIND)


def _stopped(progress: Progress | None) -> str:
    """What became of a query that does not run."""
    if progress is None:
        return "was terminated"
    return "is paused" if progress.status is Status.PAUSED else f"stopped: {progress.reason}"


def _keeper(relation: CatalogObject | Index) -> QueryId:
    return relation.query or QueryId(f"TABLE_{relation.name}")
