"""The registry of queries: what runs, and the status of each query."""

import logging
from collections.abc import Callable, Iterable, Mapping, Set

from holdfast import metrics
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.catalog.system import QUERY as SYSTEM_QUERY
from holdfast.config import Settings
from holdfast.coordinator import processing_log
from holdfast.coordinator.sink_records import SinkRecords
from holdfast.coordinator.upstream import Stop, Upstream
from holdfast.names import CollectionId, ObjectName, QueryId
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.program import Program, Sink
from holdfast.runtime.progress import Progress, Status

log = logging.getLogger(__name__)

REFUSED_RECORDS = "holdfast.refused.records"
"""The property of a query that says what happens to records that its sink topic refuses: FAIL or SKIP."""
SKIP = "SKIP"


class Queries:
    """The programs and their progress. Changed on the coordinator's thread.

    `status`, `stop` and `sinks` from any thread.
    """

    def __init__(self, settings: Settings, sink_records: SinkRecords) -> None:
        self._sink_records, self._log_sink = sink_records, processing_log.sink(settings)
        self._definitions: dict[QueryId, object] = {}
        self._upstream = Upstream(EMPTY)
        self._changes = 0
        """Counts the changes of statuses and of the catalog; raised after each."""
        self._frozen: tuple[int, Mapping[QueryId, Stop]] = (0, {})
        """The queries downstream of one that does not run, as of a count of changes."""
        self.reconciled_at = float("-inf")
        """When that was, by the monotonic clock."""
        self.dataflow = Dataflow()
        self.progress: dict[QueryId, Progress] = {}
        """Changed by `set`, `fail` and `remove` alone."""
        self._with_status: dict[tuple[Status, ...], dict[QueryId, Program]] = {}
        """What was asked for since the last change."""

    @property
    def catalog(self) -> Catalog:
        """The catalog that was reconciled last."""
        return self._upstream.catalog

    @catalog.setter
    def catalog(self, catalog: Catalog) -> None:
        self._upstream = Upstream(catalog)
        self._changes += 1

    # -- one query

    def status(self, query: QueryId) -> Progress | None:
        """The progress of a query. The query of the system tables always runs."""
        return Progress(Status.RUNNING) if query == SYSTEM_QUERY else self.progress.get(query)

    def is_defined_by(self, query: QueryId, definition: object) -> bool:
        """Whether a query runs, and was started from this definition."""
        return query in self.progress and self._definitions.get(query) == definition

    def define(self, query: QueryId, definition: object) -> None:
        """Remember what a query was started from."""
        self._definitions[query] = definition

    def set(self, query: QueryId, status: Status, *, done: float = 0.0, reason: str | None = None) -> None:
        known = self.progress.get(query)
        if known is None or known.status is not status or status is Status.BUILDING:  # It may have another program.
            self._with_status.clear()
        self.progress[query] = Progress(status, done, reason)
        if known is None or (known.status, known.reason) != (status, reason):
            self._changes += 1

    def stop(self, query: QueryId) -> Stop | None:
        """Which query keeps the upper of a query's collection from following the clock: itself, or one upstream.

        None while it follows the clock. Every status that was set before this call is seen.
        """
        if query == SYSTEM_QUERY:
            return None
        own, upstream = self._upstream.stop(query, self.progress), self.frozen().get(query)
        if own is None:
            return upstream
        known = self.progress.get(query)
        waits = known is not None and known.status is Status.BUILDING
        return upstream or own if waits else own

    def fail(self, query: QueryId, reason: str) -> None:
        """Set a query to ERROR."""
        known = self.progress.get(query)
        if known is None or known.status is not Status.ERROR:
            log.error("query failed: query=%s reason=%s", query, reason)
            metrics.QUERY_FAILURES.labels(query).inc()
        self.set(query, Status.ERROR, reason=reason)

    def remove(self, query: QueryId) -> Program | None:
        """Forget a query; returns its program, if it had one."""
        self.progress.pop(query, None)
        self._definitions.pop(query, None)
        self._changes += 1
        self._with_status.clear()
        return self.dataflow.remove(query)

    def skips_refused(self, query: QueryId) -> bool:
        """Whether a query skips the records that its sink topic refuses. From any thread."""
        entry = self.catalog.queries.get(query)
        policy = SKIP if entry is None else entry.properties.get(REFUSED_RECORDS, "FAIL")
        return policy.upper() == SKIP

    # -- several queries

    def with_status(self, *statuses: Status) -> Mapping[QueryId, Program]:
        """The programs of the queries with one of these statuses: the same mapping until a status changes."""
        if statuses not in self._with_status:
            self._with_status[statuses] = {
                query: program
                for query, program in self.dataflow.programs.items()
                if self.progress[query].status in statuses
            }
        return self._with_status[statuses]

    def running(self) -> Mapping[QueryId, Program]:
        return self.with_status(Status.RUNNING)

    def frozen(self) -> Mapping[QueryId, Stop]:
        """The queries downstream of one that does not run, with that one; computed once per change of a status."""
        changes, found = self._frozen
        if changes != self._changes:
            changes = self._changes
            found = self._upstream.frozen(self._upstream.stops(dict(self.progress)))
            self._frozen = (changes, found)
        return found

    def frozen_collections(self, failed: Set[QueryId] = frozenset()) -> Set[CollectionId]:
        """The collections of the frozen queries; also of those that freeze because some queries `failed`."""
        found = self.frozen()
        if failed:
            stops = {query: Stop(query, "stopped") for query in failed}
            found = self._upstream.frozen({**self._upstream.stops(self.progress), **stops})
        programs = self.dataflow.programs
        return set(collections(programs[query] for query in found if query in programs))

    def freezing_with(self, query: QueryId, is_live: Callable[[QueryId], bool]) -> Set[QueryId]:
        """A query and those downstream of it, without those that one that is not live has frozen before."""
        freezing = {query, *self._upstream.frozen({query: Stop(query, "stops")})}
        frozen = self._upstream.frozen({q: Stop(q, "stopped") for q in self._upstream.read if not is_live(q)})
        return {each for each in freezing - frozen.keys() if is_live(each)}

    def current(self, resumed: Set[QueryId] = frozenset()) -> dict[QueryId, Program]:
        """The running queries whose uppers follow the clock; with `resumed`, once those run as well."""
        found = self.frozen()
        if resumed:
            progress = {**self.progress, **dict.fromkeys(resumed, Progress(Status.RUNNING))}
            found = self._upstream.frozen(self._upstream.stops(progress))
        running = {q: p for q, p in self.dataflow.programs.items() if q in resumed} | dict(self.running())
        return {query: program for query, program in running.items() if query not in found}

    def live_dependents(self, programs: Iterable[Program]) -> dict[QueryId, Program]:
        """Running queries downstream of queries that catch up: those had failed, or write to a stream with others."""
        running = self.running()
        return {q: p for program in programs for q, p in self.dataflow.downstream(program, running).items()}

    def reads_tables(self, program: Program) -> bool:
        """Whether a program reads a table that another query maintains."""
        maintainers = [self.dataflow.maintainer(name) for name in program.objects]
        return any(maintainer is not None and maintainer.collection is not None for maintainer in maintainers)

    def upstream_runs(self, program: Program) -> bool:
        """Whether the queries that maintain a program's inputs run, and tables among the inputs are not frozen."""
        return all(self._can_be_read(name) for name in program.needs)

    def _can_be_read(self, name: ObjectName) -> bool:
        """Whether an object can be read: at least one of its maintaining queries runs, and none is building."""
        maintainers = self.dataflow.maintainers(name)
        if any(each.collection is not None and each.query in self.frozen() for each in maintainers):
            return False
        found = {self.progress[maintainer.query].status for maintainer in maintainers}
        return Status.RUNNING in found and Status.BUILDING not in found

    def sinks(self) -> dict[QueryId, Sink]:
        """The sink of each query, also of those that cannot run or were dropped: they may still have pending rows."""
        return {**self._sink_records.all(), processing_log.QUERY: self._log_sink}


def collections(programs: Iterable[Program]) -> list[CollectionId]:
    """The collections that some programs maintain."""
    return [program.collection for program in programs if program.collection is not None]
