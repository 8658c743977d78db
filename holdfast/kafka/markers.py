"""The marker topic: how far each outbox is published. A marker is written in the transaction of the rows it covers."""

import json
from dataclasses import dataclass

from holdfast.config import Settings
from holdfast.errors import KafkaError
from holdfast.kafka.port import Kafka, TopicSpec
from holdfast.names import QueryId, StoreId
from holdfast.runtime.store.port import Time

LANES = 2
"""A partition for each lane: an open transaction of one lane hides what comes after it in its partition."""
CONFIG = {"cleanup.policy": "compact", "segment.bytes": "16777216", "min.cleanable.dirty.ratio": "0.1"}
"""Small segments are compacted soon: a start reads the topic whole."""


@dataclass(frozen=True, slots=True, order=True)
class Marker:
    """All rows of an outbox before `time`, and the first `rows` rows of `time`, are published. Markers are ordered."""

    time: Time
    rows: int
    store: StoreId

    def encode(self) -> bytes:
        return json.dumps({"store": self.store, "time": self.time, "rows": self.rows}).encode()

    @staticmethod
    def decode(value: bytes) -> "Marker":
        try:
            fields = json.loads(value)
            return Marker(Time(fields["time"]), int(fields["rows"]), StoreId(fields["store"]))
        except (ValueError, KeyError, TypeError) as cause:
            raise KafkaError(
                "the marker of published rows cannot be read",
                detail=f"It is {value[:200]!r}.",
                hint="Another program writes to the service's internal topics; choose another service_id.",
            ) from cause


class MarkerTopic:
    """Reads the markers. From any thread."""

    def __init__(self, settings: Settings, kafka: Kafka) -> None:
        self.name = settings.marker_topic
        self._topics, self._ranges = kafka.topics, kafka.internal_ranges

    def create(self) -> None:
        self._topics.create(TopicSpec(name=self.name, partitions=LANES, config=CONFIG))

    def read(self, store: StoreId, *, lane: int | None = None) -> dict[QueryId, Marker]:
        """The latest marker of each outbox of a store; of all lanes, or of one.

        Exact for lanes whose id was initialised since their last transaction: the broker makes a commit visible after
        it has answered, and initialising the id waits for that. The markers of an abandoned store say nothing about
        another.
        """
        partitions = [(self.name, number) for number in (range(LANES) if lane is None else (lane,))]
        starts, ends = self._topics.starts(partitions), self._topics.ends(partitions)
        found = self._ranges.read({p: (starts[p], ends[p]) for p in partitions if ends[p] > starts[p]})
        markers: dict[QueryId, Marker] = {}
        for key, value in zip(found["key"].to_pylist(), found["value"].to_pylist(), strict=True):
            if key is not None and value is not None:
                query, marker = QueryId(key.decode()), Marker.decode(value)
                if marker.store == store:
                    markers[query] = max(marker, markers.get(query, marker))
        return markers
