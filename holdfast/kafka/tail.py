"""The records of a topic as they come, apart from ticks and from what any query reads."""

from collections.abc import Mapping
from typing import Self

import pyarrow as pa

from holdfast.config import Settings
from holdfast.errors import UnknownObject
from holdfast.kafka.admin import Admin
from holdfast.kafka.consumer import TopicReader
from holdfast.kafka.records import Partition
from holdfast.names import TopicName

BATCH = 1_000


class TopicTail:
    """Reads one topic from its present end, or from its start. For one thread."""

    def __init__(self, settings: Settings, admin: Admin, topic: TopicName, *, from_beginning: bool) -> None:
        known = admin.describe([topic]).get(topic)
        if known is None:
            raise UnknownObject(topic, kind="topic", known=admin.topics())
        partitions: list[Partition] = [(topic, number) for number in range(known.partitions)]
        starts: Mapping[Partition, int] = admin.starts(partitions) if from_beginning else admin.ends(partitions)
        self._reader = TopicReader(settings, admin)
        self._reader.assign(starts)

    def next(self, timeout: float) -> pa.Table:
        """What has come, at most within `timeout` seconds; each partition's records are in order."""
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
