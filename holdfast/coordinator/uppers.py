"""Uppers: up to where collections are final. Nothing else raises them."""

from collections.abc import Callable, Iterable, Sequence

from holdfast.catalog.objects import CatalogObject, Holdable, Index
from holdfast.coordinator.upstream import Stop
from holdfast.names import CollectionId, QueryId, table_query_id
from holdfast.runtime.progress import Progress, Status
from holdfast.runtime.store.port import Store, Time


class Uppers:
    """Raises uppers to the present, while the query that maintains a collection and all upstream of it run.

    From any thread.

    Readers let uppers follow the clock with `upper` and `reach`. `follow_clock` and `raise_past` are for the
    coordinator.
    """

    def __init__(
        self,
        store: Store,
        read_time: Callable[[], Time],
        progress: Callable[[QueryId], Progress | None],
        stop: Callable[[QueryId], Stop | None],
    ) -> None:
        """`read_time` gives the latest final time: no tick will commit at it or before it.

        `stop` names the query that keeps an upper from following the clock; None when it follows.
        """
        self._store, self._read_time, self._progress, self._stop = store, read_time, progress, stop

    def now(self) -> Time:
        """The latest time that is final for every live query."""
        return self._read_time()

    def progress(self, relation: CatalogObject | Index) -> Progress | None:
        """The progress of the query that maintains an object; None when there is none any more."""
        return self._progress(maintaining_query(relation))

    def stop(self, relation: CatalogObject | Index) -> Stop | None:
        """Which query keeps the upper of an object from following the clock: its own, or one upstream of it."""
        return self._stop(maintaining_query(relation))

    def upper(self, table: Holdable) -> Time | None:
        """The upper of a table or index now; None while it is being built, or when it never was."""
        collection = CollectionId(table.name)
        self.reach([table], self.now())
        progress = self.progress(table)
        known = self._store.frontier(collection).upper if collection in self._store.collections() else 0
        building = progress is not None and progress.status is Status.BUILDING
        return Time(known) if known and not building else None

    def reach(self, tables: Iterable[Holdable], time: Time) -> None:
        """Let the uppers of tables and indexes follow the clock past a time, which `now` must have reached.

        Those whose query, or one upstream of it, does not run stay where they are. The statuses are read after the
        time: a tick in which a query fails sets the status before `now` reaches the tick.
        """
        current = [CollectionId(table.name) for table in tables if self.stop(table) is None]
        if current:
            self.raise_past(current, time)

    def follow_clock(self, collections: Iterable[CollectionId]) -> Time:
        """Make the contents of collections final up to now; returns that time."""
        now = self._read_time()
        if found := list(collections):
            self.raise_past(found, now)
        return now

    def raise_past(self, collections: Sequence[CollectionId], time: Time) -> None:
        """Make the contents of collections final up to and including a time. They must be those of live queries.

        For the coordinator, which knows them; readers use `reach`.
        """
        self._store.set_upper(collections, Time(time + 1))


def maintaining_query(relation: CatalogObject | Index) -> QueryId:
    """The id of the query that maintains an object, or did."""
    return relation.query or table_query_id(relation.name)
