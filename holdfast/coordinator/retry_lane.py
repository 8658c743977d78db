"""The retry lane: tries blocked topics one at a time, and the outboxes that write to a topic one at a time.

So a refusal is of one topic or of one outbox. Which of its records is refused is found with fewer and fewer rows.
"""

import logging
from collections.abc import Callable, Set

from holdfast.coordinator import processing_log
from holdfast.coordinator.blocked_topics import BlockedTopics, reason_of
from holdfast.coordinator.outbox_batch import Batch, OutboxReader
from holdfast.coordinator.outbox_lane import OutboxLane, SinkTopics
from holdfast.coordinator.skipped_records import SkippedRecord, SkippedRecords
from holdfast.kafka.markers import Marker
from holdfast.kafka.port import RecordRefused, TransactionAborted
from holdfast.names import QueryId, TopicName

log = logging.getLogger(__name__)


class RetryLane:
    """Publishes to blocked topics, each with pauses of its own. `freed` is called when the main lane gets one back."""

    def __init__(
        self,
        lane: OutboxLane,
        reader: OutboxReader,
        markers: dict[QueryId, Marker],
        topics: SinkTopics,
        blocked: BlockedTopics,
        skipped: SkippedRecords,
        *,
        skips: Callable[[QueryId], bool],
        uncreated: Callable[[], Set[TopicName]],
        freed: Callable[[], None],
    ) -> None:
        self._lane, self._reader, self._markers, self._topics = lane, reader, markers, topics
        self._blocked, self._skipped = blocked, skipped
        self._skips, self._uncreated, self._on_freed = skips, uncreated, freed

    def publish(self) -> bool:
        """Try the topics that are due, each once and then again while there is progress; False if nothing was sent."""
        published = False
        while due := self._blocked.due():
            for topic in due:
                with self._lane.turn:
                    published |= self._try(topic)
        return published

    def _try(self, topic: TopicName) -> bool:
        """Publish rows of the outbox that has waited longest; the topic is blocked no more once nothing is pending."""
        self._lane.prepare()
        self._skipped.decide(self._markers)
        rows = self._blocked.rows(topic)
        if rows is None:  # Unblocked meanwhile: the topic is the main lane's.
            return False
        query = self._reader.oldest(lambda each, to: to == topic and not self._blocked.is_stopped(each))
        if query is None:
            self._blocked.unblock(topic)
            self._on_freed()
            return False
        batch = Batch([], {})
        try:
            batch = self._reader.next(lambda each, _topic: each == query, rows=rows)
            self._lane.send(batch)
        except TransactionAborted as error:
            if isinstance(error, RecordRefused) and error.topic != topic:
                raise
            self._refused(topic, query, batch, error)
            return False
        self._blocked.set_rows(topic, rows * 2)
        return True

    def _refused(self, topic: TopicName, query: QueryId, batch: Batch, error: TransactionAborted) -> None:
        if not error.lasting or topic in self._uncreated():
            self._blocked.block([topic], error)
        elif not isinstance(error, RecordRefused) or not error.of_record:
            self._fail_writers(topic, error)
        elif (tried := batch.count or self._blocked.rows(topic) or 1) > 1:
            self._blocked.set_rows(topic, tried // 2)
        elif self._skips(query):
            self._skip(topic, query, error)
        else:
            log.warning("record refused: query=%s topic=%s reason=%s", query, topic, reason_of(error))
            self._blocked.stop(query, reason_of(error))

    def _fail_writers(self, topic: TopicName, error: TransactionAborted) -> None:
        """The topic takes no record of anybody. No statement resumes the processing log: it is tried again."""
        writers = [query for query in self._topics.writers(topic) if query != processing_log.QUERY]
        self._blocked.fail(writers, reason_of(error))
        self._blocked.block([topic], error, ever=not writers)

    def _skip(self, topic: TopicName, query: QueryId, error: TransactionAborted) -> None:
        part = self._reader.first_row(query)
        if part is not None:
            self._skipped.announce(SkippedRecord(query, part.time, part.first, topic, reason_of(error)))
            self._lane.send(Batch([part], {}))
            self._skipped.decide(self._markers)
