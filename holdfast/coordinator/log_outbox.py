"""The outbox of the processing log, whose topic may take no records for long: its rows must not fill the disk."""

import pyarrow as pa

from holdfast import metrics
from holdfast.coordinator import processing_log
from holdfast.errors import size_text
from holdfast.runtime.outcome import Outcome
from holdfast.runtime.store.port import Store


class LogOutbox:
    """Beyond `max_bytes` the log has how many records were skipped, without the records.

    `notice` says so while that is the case. On the coordinator's thread, except `notice`.
    """

    def __init__(self, store: Store, max_bytes: int) -> None:
        self._store, self._max_bytes = store, max_bytes
        self.notice: str | None = None

    def rows(self, outcome: Outcome, now_ms: int) -> pa.Table | None:
        """The log rows for what a tick could not decode, process or compute."""
        entries = processing_log.rows(outcome, now_ms)
        if entries is None:
            return None
        self.measure()
        if self.notice is None:
            return entries
        metrics.UNLOGGED.inc(sum(problem.records.num_rows for problem in outcome.undecodable))
        return processing_log.counts(outcome, now_ms)

    def measure(self) -> None:
        pending = self._store.pending_bytes(processing_log.QUERY)
        if pending <= self._max_bytes:
            self.notice = None
        else:
            self.notice = (
                f"{processing_log.NAME} counts bad records and leaves them out: {size_text(pending)} of it are not yet "
                f"published (outbox_bytes is {size_text(self._max_bytes)})"
            )
