"""The ids of sink topics: a topic of the same name that was created again has other records at the same offsets."""

import logging
from collections.abc import Mapping

from holdfast.coordinator.barriers import Barriers
from holdfast.coordinator.publishing import Publishing
from holdfast.coordinator.queries import Queries
from holdfast.coordinator.topics.known import recreated_reason
from holdfast.errors import KafkaError
from holdfast.kafka.port import Topic, TopicAdmin
from holdfast.names import QueryId, TopicName
from holdfast.runtime.progress import Status
from holdfast.runtime.store.port import EndOffset, Placement, Store

log = logging.getLogger(__name__)


class SinkIds:
    """Stores the id of each sink topic. On the coordinator's thread."""

    def __init__(
        self, store: Store, topics: TopicAdmin, publishing: Publishing, barriers: Barriers, queries: Queries
    ) -> None:
        self._store, self._topics, self._publishing = store, topics, publishing
        self._barriers, self._queries = barriers, queries

    def compare(self, existing: Mapping[TopicName, Topic]) -> None:
        """Find the sink topics that no longer have the id that they had, and stop who has a position in them."""
        for name, topic in existing.items():
            known = self._store.get(sink_id_key(name))
            if known is None:
                self._store.put(sink_id_key(name), topic.id)
            elif known != topic.id:
                try:
                    self._replace(topic, known)
                except KafkaError as error:  # The next check tries again.
                    log.warning("sink topic not followed: topic=%s error=%s", name, error)

    def _replace(self, topic: Topic, known: str) -> None:
        """Take a topic for a new one. A crash repeats all of it: the id is stored last."""
        with self._publishing.paused([topic.name]) as paused:
            if not paused or not self._publishing.is_settled:
                return  # The next check tries again.
            reason = recreated_reason(topic.name, known, topic.id)
            log.warning("sink topic recreated: topic=%s id=%s was=%s", topic.name, topic.id, known)
            for query in self._readers(topic.name):
                self._store.put(lost_sink_key(query), reason)
                status = self._queries.status(query)
                if status is not None and status.status is Status.BUILDING:
                    self._queries.fail(query, reason)
            self._store.mark_published(self._publishing.published(topic.name), self._ends(topic))
            for key in self._store.facts(f"floor/{topic.name}/"):
                self._store.put(key, None)
            self._publishing.forget_partitions()
            self._store.put(sink_id_key(topic.name), topic.id)

    def _readers(self, topic: TopicName) -> list[QueryId]:
        """The queries that stopped at a position in the topic, or are reading it."""
        positions = {query: self._store.position(query) for query in self._store.queries()}
        return [
            query
            for query, position in positions.items()
            if position.placement is Placement.BEHIND
            and query not in self._barriers
            and any(partition[0] == topic for partition in position.offsets)
        ]

    def _ends(self, topic: Topic) -> list[EndOffset]:
        """Where the new topic ends, and 0 for each partition that is gone."""
        written = self._topics.written([(topic.name, partition) for partition in range(topic.partitions)])
        gone = [end for end in self._store.published_ends() if end.topic == topic.name]
        ends = {(end.topic, end.partition): 0 for end in gone} | dict(written)
        return [EndOffset(name, partition, end) for (name, partition), end in ends.items()]


def sink_id_key(topic: TopicName) -> str:
    """The fact with the id of a sink topic."""
    return f"sink_topic/{topic}"


def lost_sink_key(query: QueryId) -> str:
    """The fact that says why a query cannot go on in a sink topic that it reads. It goes with the query."""
    return f"{query}/lost_sink"
