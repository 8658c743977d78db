"""What happens to a query whose sink topic refuses a record: it fails, or the record is skipped and logged."""

from holdfast.coordinator import processing_log
from holdfast.coordinator.commit import CommitPoint
from holdfast.coordinator.drains import Drains
from holdfast.coordinator.freeze import Freezer
from holdfast.coordinator.publishing import Publishing
from holdfast.runtime.store.port import Store
from holdfast.wall_clock import WallClock


class Refusals:
    """Carries what the publisher found over to the queries. On the coordinator's thread."""

    def __init__(
        self,
        store: Store,
        publishing: Publishing,
        freezer: Freezer,
        drains: Drains,
        commit: CommitPoint,
        clock: WallClock,
    ) -> None:
        self._store, self._publishing, self._freezer, self._drains = store, publishing, freezer, drains
        self._commit, self._clock = commit, clock

    def settle(self) -> None:
        """Between ticks."""
        for query, reason in self._publishing.failures().items():
            if not self._drains.fail(query, reason):
                self._freezer.fail(query, f"{reason} Then PAUSE and RESUME the query.")
            self._publishing.failed(query)
        if skipped := self._publishing.skipped():
            stage = self._store.stage()
            stage.enqueue(processing_log.QUERY, processing_log.refused(skipped, self._clock.now_ms()))
            self._commit.commit(stage)
            self._publishing.logged(skipped)
        self._drains.finish()
        self._freezer.resolve()
