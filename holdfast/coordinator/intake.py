"""What the next tick reads: the records that the consumer has, or, far behind, ranges for Spark to read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.config import Settings
from holdfast.coordinator.slices import Ends, Partition, Slices
from holdfast.errors import TopicChanged
from holdfast.kafka.consumer import TopicReader
from holdfast.names import TopicName
from holdfast.runtime.spark.engine import RECORDS, OffsetRange, TopicRange, ViewInput
from holdfast.runtime.store.port import Moved


@dataclass(frozen=True, slots=True)
class Taken:
    """The inputs of a tick and how far they go; `lost` are partitions that can be read no more."""

    topics: Mapping[TopicName, ViewInput]
    moved: tuple[Moved, ...]
    lost: Mapping[Partition, TopicChanged]


class Intake:
    """Follows every topic of the remap."""

    def __init__(self, settings: Settings, reader: TopicReader, slices: Slices) -> None:
        self._small = settings.small_tick_records
        self._reader, self._slices = reader, slices
        self._ends: dict[Partition, int] = {}

    def follow(self, ends: Ends) -> None:
        """Read exactly these partitions: a new one from its end in the remap, the others from where they are."""
        if self._ends.keys() != ends.keys():
            self._ends = {partition: self._ends.get(partition, end) for partition, end in ends.items()}
            self._reader.assign(self._ends)

    def take(self, timeout: float) -> Taken:
        """What has come since the last tick that was taken."""
        if not self._ends:
            return Taken({}, (), {})
        try:
            fetched = self._reader.poll(self._small, timeout)
            if fetched.records.num_rows >= self._small and sum(self._reader.backlog().values()) > self._small:
                return self._take_ranges(fetched.changed)
        except BaseException:
            # The consumer may have moved on: what it brought must come again.
            self._reader.seek(self._ends)
            raise
        self._ends |= fetched.positions
        return Taken(by_topic(fetched.records), as_moved(self._ends), fetched.changed)

    def rewind(self, ends: Ends) -> None:
        """Read again from the last committed ends, after a tick that did not commit."""
        self._ends |= ends
        self._reader.seek(self._ends)

    def _take_ranges(self, lost: Mapping[Partition, TopicChanged]) -> Taken:
        until = self._slices.cut(self._ends, self._reader.ends(), passed_on=True)
        topics = ranges_by_topic({p: (self._ends[p], end) for p, end in until.items()})
        self._ends |= until
        self._reader.seek(self._ends)
        return Taken(topics, as_moved(self._ends), lost)


def ranges_by_topic(ranges: Mapping[Partition, tuple[int, int]]) -> dict[TopicName, ViewInput]:
    found: dict[TopicName, list[OffsetRange]] = {}
    for (topic, partition), (start, end) in ranges.items():
        if end > start:
            found.setdefault(topic, []).append(OffsetRange(partition, start, end))
    return {topic: TopicRange(topic, tuple(parts)) for topic, parts in found.items()}


def by_topic(records: pa.Table) -> dict[TopicName, ViewInput]:
    """The records of each topic, as the engine names their columns."""
    if records.num_rows == 0:
        return {}
    topics = pc.unique(records.column("topic")).to_pylist()
    if len(topics) == 1:
        return {TopicName(topics[0]): raw(records)}
    return {TopicName(t): raw(records.filter(pc.equal(records.column("topic"), t))) for t in topics}


def length(records: ViewInput) -> int:
    """How many records there are, or offsets for Spark to read."""
    if isinstance(records, TopicRange):
        return sum(part.end - part.start for part in records.ranges)
    return int(records.num_rows)


def raw(records: pa.Table) -> pa.Table:
    names = {"part": "partition", "off": "offset", "ts": "timestamp", "key": "key", "value": "value"}
    found = {name: records.column(column) for name, column in names.items()}
    return pa.table({**found, "hdr": positional(records.column("headers"))})


def positional(headers: pa.ChunkedArray) -> pa.Array:
    """Headers with the names that the parts of a STRUCT have inside; nulls when there are none at all."""
    whole, type_ = headers.combine_chunks(), RECORDS.field("hdr").type
    if len(whole.flatten()) == 0:
        return pa.nulls(len(whole), type_)
    parts = [whole.values.field(i) for i in range(2)]
    return pa.ListArray.from_arrays(whole.offsets, pa.StructArray.from_arrays(parts, fields=list(type_.value_type)))


def as_moved(ends: Ends) -> tuple[Moved, ...]:
    return tuple(Moved(topic, partition, end) for (topic, partition), end in ends.items())


def as_ends(moved: Iterable[Moved]) -> dict[Partition, int]:
    return {(m.topic, m.partition): m.end_offset for m in moved}
