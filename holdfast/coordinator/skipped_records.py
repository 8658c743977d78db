"""Records that their topics refused and that are skipped, until the processing log has them."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from holdfast import metrics
from holdfast.kafka.markers import Marker
from holdfast.names import QueryId, TopicName
from holdfast.runtime.store.port import Store, Time

log = logging.getLogger(__name__)

PREFIX = "skipped/"


@dataclass(frozen=True, slots=True)
class SkippedRecord:
    """Row number `row` of a tick in a query's outbox, which its topic refused."""

    query: QueryId
    time: Time
    row: int
    topic: TopicName
    reason: str

    @property
    def key(self) -> str:
        return f"{PREFIX}{self.query}/{self.time}/{self.row}"

    def is_covered(self, marker: Marker | None) -> bool:
        """Whether the outbox is published past the record."""
        return marker is not None and (marker.time, marker.rows) > (self.time, self.row)


class SkippedRecords:
    """Stored as facts from before a record is skipped until it is logged: a kill loses none, and may log one twice.

    `announce` and `decide` are the publisher's, `done` and `forget` the coordinator's.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        """Protects the fields that follow."""
        self._announced = {record.key: record for record in map(_decode, store.facts(PREFIX).items())}
        self._done: dict[str, SkippedRecord] = {}

    def announce(self, record: SkippedRecord) -> None:
        """Before the transaction that skips a record; durable on return."""
        fields = {"query": record.query, "time": record.time, "row": record.row}
        self._store.put(record.key, json.dumps({**fields, "topic": record.topic, "reason": record.reason}))
        with self._lock:
            self._announced[record.key] = record

    def decide(self, markers: Mapping[QueryId, Marker]) -> None:
        """Once the transaction has ended and its markers are known: was the record skipped, or is it still pending?

        Before anything else of its outbox is published, which would also cover it.
        """
        with self._lock:
            announced, self._announced = list(self._announced.values()), {}
        for record in announced:
            if record.is_covered(markers.get(record.query)):
                log.warning("record skipped: query=%s topic=%s reason=%s", record.query, record.topic, record.reason)
                metrics.RECORDS_REFUSED.labels(record.topic).inc()
                with self._lock:
                    self._done[record.key] = record
            else:
                self._store.put(record.key, None)

    def done(self) -> Sequence[SkippedRecord]:
        """The records that were skipped and are not in the processing log yet."""
        with self._lock:
            return list(self._done.values())

    def forget(self, records: Iterable[SkippedRecord]) -> None:
        """The processing log has these."""
        for record in records:
            self._store.put(record.key, None)
            with self._lock:
                self._done.pop(record.key, None)


def _decode(fact: tuple[str, str]) -> SkippedRecord:
    fields = json.loads(fact[1])
    return SkippedRecord(
        QueryId(fields["query"]),
        Time(fields["time"]),
        int(fields["row"]),
        TopicName(fields["topic"]),
        str(fields["reason"]),
    )
