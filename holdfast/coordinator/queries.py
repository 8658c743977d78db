"""The registry of queries: what runs, and the status of each query."""

import logging
from collections.abc import Iterable

from holdfast import metrics
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.catalog.system import QUERY as SYSTEM_QUERY
from holdfast.config import Settings
from holdfast.coordinator import processing_log
from holdfast.coordinator.sink_records import SinkRecords
from holdfast.names import CollectionId, ObjectName, QueryId
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.program import Program, Sink
from holdfast.runtime.progress import Progress, Status

log = logging.getLogger(__name__)

REFUSED_RECORDS = "holdfast.refused.records"
"""The property of a query that says what happens to records that its sink topic refuses: FAIL or SKIP."""
SKIP = "SKIP"


class Queries:
    """The programs and their progress. Changed on the coordinator's thread; `status` and `sinks` from any thread."""

    def __init__(self, settings: Settings, sink_records: SinkRecords) -> None:
        self._sink_records, self._log_sink = sink_records, processing_log.sink(settings)
        self._definitions: dict[QueryId, object] = {}
        self.catalog: Catalog = EMPTY
        """The catalog that was reconciled last."""
        self.reconciled_at = float("-inf")
        """When that was, by the monotonic clock."""
        self.dataflow = Dataflow()
        self.progress: dict[QueryId, Progress] = {}

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
        self.progress[query] = Progress(status, done, reason)

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
        return self.dataflow.remove(query)

    def skips_refused(self, query: QueryId) -> bool:
        """Whether a query skips the records that its sink topic refuses. From any thread."""
        entry = self.catalog.queries.get(query)
        policy = SKIP if entry is None else entry.properties.get(REFUSED_RECORDS, "FAIL")
        return policy.upper() == SKIP

    # -- several queries

    def with_status(self, *statuses: Status) -> dict[QueryId, Program]:
        """The programs of the queries with one of these statuses."""
        programs = self.dataflow.programs
        return {query: program for query, program in programs.items() if self.progress[query].status in statuses}

    def running(self) -> dict[QueryId, Program]:
        return self.with_status(Status.RUNNING)

    def live_dependents(self, programs: Iterable[Program]) -> dict[QueryId, Program]:
        """Running queries downstream of queries that catch up: those had failed, or write to a stream with others."""
        running = self.running()
        return {q: p for program in programs for q, p in self.dataflow.downstream(program, running).items()}

    def reads_tables(self, program: Program) -> bool:
        """Whether a program reads a table that another query maintains."""
        maintainers = [self.dataflow.maintainer(name) for name in program.objects]
        return any(maintainer is not None and maintainer.collection is not None for maintainer in maintainers)

    def upstream_runs(self, program: Program) -> bool:
        """Whether the queries that maintain a program's inputs run."""
        return all(self._can_be_read(name) for name in program.needs)

    def _can_be_read(self, name: ObjectName) -> bool:
        """Whether an object can be read: at least one of its maintaining queries runs, and none is building."""
        found = {self.progress[maintainer.query].status for maintainer in self.dataflow.maintainers(name)}
        return Status.RUNNING in found and Status.BUILDING not in found

    def sinks(self) -> dict[QueryId, Sink]:
        """The sink of each query, also of those that cannot run or were dropped: they may still have pending rows."""
        return {**self._sink_records.all(), processing_log.QUERY: self._log_sink}


def collections(programs: Iterable[Program]) -> list[CollectionId]:
    """The collections that some programs maintain."""
    return [program.collection for program in programs if program.collection is not None]
