"""Topics in memory, one partition each, with what readers ask of Kafka."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from holdfast.kafka.records import NO_RECORDS, RECORDS, Partition
from holdfast.names import TopicName
from holdfast.runtime.spark.engine import RECORDS as RAW


@dataclass(frozen=True, slots=True)
class Written:
    """A record as it is in a topic."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Sequence[Mapping[str, Any]] = ()
    """Each with `key` and `value`."""


class Topics:
    """Records by topic, in the order they were written."""

    def __init__(self) -> None:
        self._records: dict[TopicName, list[Written]] = {}

    def append(self, topic: TopicName, records: Iterable[Written]) -> None:
        self._records.setdefault(topic, []).extend(records)

    def of(self, topic: TopicName) -> Sequence[Written]:
        return self._records.get(topic, ())

    def end(self, topic: TopicName) -> int:
        return len(self.of(topic))

    def raw(self, topic: TopicName, start: int, end: int) -> pa.Table:
        """A range of a topic, as a tick reads it."""
        rows = [
            {"part": 0, "off": start + i, "ts": r.timestamp, "key": r.key, "value": r.value, "hdr": _positional(r)}
            for i, r in enumerate(self.of(topic)[start:end])
        ]
        return pa.Table.from_pylist(rows, schema=RAW)

    # -- as readers of Kafka ask ---------------------------------------------------------------------

    def starts(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        return dict.fromkeys(partitions, 0)

    def read(self, ranges: Mapping[Partition, tuple[int, int]]) -> pa.Table:
        rows: list[dict[str, object]] = [
            {
                "topic": topic,
                "partition": partition,
                "offset": start + i,
                "timestamp": record.timestamp,
                "key": record.key,
                "value": record.value,
                "headers": list(record.headers),
            }
            for (topic, partition), (start, end) in ranges.items()
            for i, record in enumerate(self.of(topic)[start:end])
        ]
        return pa.Table.from_pylist(rows, schema=RECORDS) if rows else NO_RECORDS


def _positional(record: Written) -> list[dict[str, Any]]:
    return [{"f0": header["key"], "f1": header["value"]} for header in record.headers]
