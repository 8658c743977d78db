"""Which time an object can be read at."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep

from holdfast.catalog.objects import CatalogObject, Table
from holdfast.errors import ReadError
from holdfast.names import CollectionId, QueryId
from holdfast.runtime.progress import Progress, Status
from holdfast.runtime.store.port import Store, Time

PATIENCE = 5.0
"""Seconds that a read waits for a table that is being built: most are there in less, and a new user expects it."""


@dataclass(frozen=True, slots=True)
class Readable:
    """A time to read at; `notice` names an object whose upper no longer follows the clock."""

    time: Time
    notice: str | None = None


class Times:
    """Chooses read times. From any thread."""

    def __init__(
        self, store: Store, read_time: Callable[[], Time], progress: Callable[[QueryId], Progress | None]
    ) -> None:
        self._store, self._read_time, self._progress = store, read_time, progress

    def latest_of(self, relation: CatalogObject) -> Readable:
        assert isinstance(relation, Table)
        return self.latest(relation)

    def building(self, relation: CatalogObject) -> bool:
        """Whether a table has no readable time yet but will have one."""
        progress = self._progress(_keeper(relation))
        return progress is not None and progress.status is Status.BUILDING

    def latest(self, table: Table) -> Readable:
        """The latest final time of a table, or why it has none."""
        collection = CollectionId(table.name)
        deadline = monotonic() + PATIENCE
        while self.building(table) and monotonic() < deadline:
            sleep(0.02)
        progress = self._progress(_keeper(table))
        if progress is not None and progress.status is Status.RUNNING:
            time = self._read_time()
            self._store.set_upper([collection], Time(time + 1))
            return Readable(time)
        if progress is not None and progress.status is Status.BUILDING:
            raise ReadError(
                f'table "{table.name}" is still building, {progress.done:.0%}',
                hint="It can be read once it has caught up; SHOW QUERIES tells how far it is.",
            )
        frontier = self._store.frontier(collection)
        if frontier.upper == 0:
            why = progress.reason if progress and progress.reason else "its query was terminated"
            raise ReadError(f'table "{table.name}" was never built', detail=f"The reason is: {why}.")
        why = f"stopped: {progress.reason}" if progress else "was terminated"
        return Readable(Time(frontier.upper - 1), f'table "{table.name}" is not kept current, its query {why}')


def _keeper(relation: CatalogObject) -> QueryId:
    return relation.query or QueryId(f"TABLE_{relation.name}")
