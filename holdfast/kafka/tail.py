"""The records of a topic as they arrive, independent of ticks and queries."""

from collections.abc import Mapping
from typing import Self

import pyarrow as pa

from holdfast.errors import UnknownObject
from holdfast.kafka.port import Kafka
from holdfast.kafka.records import Partition
from holdfast.names import TopicName

BATCH = 1_000


class TopicTail:
    """Reads one topic from its end or its beginning. For one thread."""

    def __init__(self, kafka: Kafka, topic: TopicName, *, from_beginning: bool) -> None:
        topics = kafka.topics
        known = topics.describe([topic]).get(topic)
        if known is None:
            raise UnknownObject(topic, kind="topic", known=topics.topics())
        partitions: list[Partition] = [(topic, number) for number in range(known.partitions)]
        starts: Mapping[Partition, int] = topics.starts(partitions) if from_beginning else topics.ends(partitions)
        self._reader = kafka.consumer()
        self._reader.assign(starts)

    def next(self, timeout: float) -> pa.Table:
        """The records that arrive within `timeout` seconds; each partition's are in order."""
        fetched = self._reader.poll(BATCH, timeout)
        for problem in fetched.changed.values():
            raise problem
        return fetched.records

    def close(self) -> None:
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
