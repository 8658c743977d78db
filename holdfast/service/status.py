"""What the server reports about itself: queries, health, lags, sizes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.catalog.objects import QueryState
from holdfast.catalog.snapshot import Catalog
from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime.progress import Progress
from holdfast.runtime.store.duckdb.store import DuckDbStore
from holdfast.service.lag import Lag, Lags


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """A query as SHOW QUERIES lists it; `done` is the finished fraction of its backfill, from 0 to 1."""

    id: QueryId
    statement: str
    sources: tuple[ObjectName, ...]
    sink: ObjectName | None
    sink_topic: TopicName | None
    state: str
    reason: str | None
    done: float


@dataclass(frozen=True, slots=True)
class Health:
    """Whether everything works; `problems` maps each failing part to its problem, `notices` others to what they do."""

    healthy: bool
    problems: Mapping[str, str]
    notices: Mapping[str, str] = field(default_factory=dict)


class ServiceStatus:
    """Collects the status. Thread-safe. `problems` returns the current problem of each part, or None; `notices` what a
    part is doing that takes long. Neither waits for the coordinator or the store."""

    def __init__(
        self,
        store: DuckDbStore,
        lags: Lags,
        progress: Callable[[QueryId], Progress | None],
        catalog: Callable[[], Catalog],
        blocked: Callable[[QueryId], str | None],
        frozen: Callable[[QueryId], str | None],
        problems: Callable[[], Mapping[str, str | None]],
        notices: Callable[[], Mapping[str, str | None]],
    ) -> None:
        self._store, self._lags, self._progress = store, lags, progress
        self._catalog, self._blocked, self._frozen = catalog, blocked, frozen
        self._problems, self._notices = problems, notices

    def queries(self) -> list[QueryInfo]:
        catalog = self._catalog()
        found = []
        for entry in catalog.queries.values():
            progress = self._progress(entry.id)
            state = entry.state.value if entry.state is QueryState.INCOMPATIBLE or not progress else progress.status
            sink = catalog.find(entry.sink) if entry.sink else None
            found.append(
                QueryInfo(
                    id=entry.id,
                    statement=entry.statement,
                    sources=entry.sources,
                    sink=entry.sink,
                    sink_topic=sink.topic if sink else None,
                    state=str(state),
                    reason=entry.reason
                    or (progress.reason if progress else None)
                    or self._blocked(entry.id)
                    or self._frozen(entry.id),
                    done=progress.done if progress and state == "BUILDING" else 1.0,
                )
            )
        return found

    def health(self) -> Health:
        problems = {part: problem for part, problem in self._problems().items() if problem}
        notices = {part: notice for part, notice in self._notices().items() if notice and part not in problems}
        return Health(not problems, problems, notices)

    def lags(self) -> Mapping[QueryId, Sequence[Lag]]:
        """How far each query is behind the topics that it reads."""
        return self._lags.lags()

    def store_bytes(self) -> Mapping[str, int]:
        """The size of the store's files, by kind."""
        return self._store.sizes()

    def pending_rows(self) -> int:
        """Rows that are still to be written to sink topics."""
        return sum(each.rows for each in self._store.pending())
