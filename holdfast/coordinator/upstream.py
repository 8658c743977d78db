"""Which queries have an upstream query that does not run: the uppers of their collections are frozen."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from holdfast.catalog.objects import QueryState, Table
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.names import ObjectName, QueryId, table_query_id
from holdfast.runtime.progress import Progress, Status


@dataclass(frozen=True, slots=True)
class Stop:
    """A query that does not run, and why."""

    query: QueryId
    why: str

    def seen_from(self, query: QueryId) -> str:
        """Why the upper of a query's collection is frozen."""
        if query == self.query:
            return f"its query {query} {self.why}"
        return f"query {self.query} upstream of it {self.why}"


def _stop_of(query: QueryId, progress: Progress) -> Stop | None:
    """Why a query does not run, None when it does."""
    match progress.status:
        case Status.RUNNING:
            return None
        case Status.BUILDING:
            return Stop(query, "is catching up")
        case Status.WAITING:
            return Stop(query, f"waits: {progress.reason}")
        case Status.PAUSED:
            return Stop(query, "is paused")
        case Status.ERROR:
            return Stop(query, f"stopped: {progress.reason}")
        case Status.INCOMPATIBLE:
            return Stop(query, f"cannot run: {progress.reason}")


class Upstream:
    """The queries of a catalog by what they read from each other.

    Built from the catalog, because a query that this release cannot build has no program. An object whose query was
    terminated does not change any more, and does not freeze the queries that read it.
    """

    def __init__(self, catalog: Catalog = EMPTY) -> None:
        self.catalog = catalog
        self._dependents = _dependents(catalog)

    @property
    def read(self) -> Set[QueryId]:
        """The queries that others read."""
        return self._dependents.keys()

    def stops(self, progress: Mapping[QueryId, Progress]) -> dict[QueryId, Stop]:
        """The queries that do not run, of those that others read."""
        found = {query: stop for query in self._dependents if (stop := self.stop(query, progress)) is not None}
        # One that catches up may wait for another one: the other one is the cause.
        waits = [query for query in found if query in progress and progress[query].status is Status.BUILDING]
        return {query: found[query] for query in [*(found.keys() - waits), *waits]}

    def frozen(self, stops: Mapping[QueryId, Stop]) -> dict[QueryId, Stop]:
        """The queries downstream of some that do not run, each with the first of these."""
        found: dict[QueryId, Stop] = {}
        for query, stop in stops.items():
            waiting = [query]
            while waiting:
                for reader in self._dependents.get(waiting.pop(), ()):
                    if reader not in found:
                        found[reader] = stop
                        waiting.append(reader)
        return found

    def stop(self, query: QueryId, progress: Mapping[QueryId, Progress]) -> Stop | None:
        """Why a query does not run itself, None when it does. The catalog has no query that was terminated."""
        entry, known = self.catalog.queries.get(query), progress.get(query)
        if entry is not None and entry.state is QueryState.INCOMPATIBLE:
            return Stop(query, f"cannot run: {entry.reason}")
        if known is not None:
            return _stop_of(query, known)
        starts = entry is not None or query in self._dependents
        return Stop(query, "is starting" if starts else "was terminated")


def _dependents(catalog: Catalog) -> dict[QueryId, Set[QueryId]]:
    """The queries that read what each query maintains."""
    writers: dict[ObjectName, list[QueryId]] = {}
    for entry in catalog.queries.values():
        if entry.sink is not None:
            writers.setdefault(entry.sink, []).append(entry.id)
    found: dict[QueryId, set[QueryId]] = {}
    for entry in catalog.queries.values():
        for name in entry.sources:
            for writer in _maintainers(catalog, name, writers.get(name, ())):
                found.setdefault(writer, set()).add(entry.id)
    return {query: frozenset(readers) for query, readers in found.items()}


def _maintainers(catalog: Catalog, name: ObjectName, writers: Iterable[QueryId]) -> Iterable[QueryId]:
    """The queries whose rows a reader of an object takes from the tick; those of other topics go through Kafka."""
    relation = catalog.find(name)
    if isinstance(relation, Table) and relation.topic is not None and not relation.derived:
        return (table_query_id(name),)
    return writers if relation is not None and relation.maintained else ()
