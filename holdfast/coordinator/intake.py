"""What the next tick reads: the records that the consumer has, or, far behind, ranges for Spark to read."""

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.coordinator.read_limits import Ends, Partition, ReadLimits
from holdfast.errors import TopicChanged
from holdfast.kafka.port import Consumer, Fetched, TopicProblem
from holdfast.names import TopicName
from holdfast.runtime import physical_columns as col
from holdfast.runtime.spark.engine import RECORDS, OffsetRange, TopicRange, ViewInput
from holdfast.runtime.store.port import EndOffset


@dataclass(frozen=True, slots=True)
class TickRecords:
    """The records of a tick and where they end.

    `lost` are partitions that can no longer be read, `refused` topics that Kafka does not let this user read now.
    """

    topics: Mapping[TopicName, ViewInput]
    ends: tuple[EndOffset, ...]
    lost: Mapping[Partition, TopicChanged]
    refused: Mapping[TopicName, TopicProblem]


class Intake:
    """Follows every topic of the remap. On the coordinator's thread."""

    def __init__(self, consumer: Consumer, limits: ReadLimits) -> None:
        self._consumer, self._limits = consumer, limits
        self._ends: dict[Partition, int] = {}

    def follow(self, ends: Ends) -> None:
        """Read exactly these partitions: a new one from its end in the remap, the others from where they are."""
        if self._ends.keys() != ends.keys():
            self._ends = {partition: self._ends.get(partition, end) for partition, end in ends.items()}
            self._consumer.assign(self._ends)

    def poll(self, timeout: float) -> Fetched:
        """Wait for records. What was polled has to be given to `choose`."""
        if not self._ends:
            return Fetched()
        with self._rewound_on_error():
            return self._consumer.poll(self._limits.polled, timeout)

    def choose(self, polled: Fetched) -> TickRecords:
        """The records of the next tick: those polled, or, far behind, ranges for Spark to read."""
        with self._rewound_on_error():
            small = self._limits.polled
            if polled.records.num_rows >= small and sum(self._consumer.backlog().values()) > small:
                return self._choose_ranges(polled)
        self._ends |= polled.positions
        refused = {topic: problem for (topic, _), problem in polled.refused.items()}
        chosen = TickRecords(by_topic(polled.records), as_end_offsets(self._ends), polled.changed, refused)
        self._leave(polled.changed.keys() | polled.refused.keys())
        return chosen

    def rewind(self, ends: Ends) -> None:
        """Read again from the last committed ends, after a tick that did not commit."""
        self._ends |= {partition: end for partition, end in ends.items() if partition in self._ends}
        self._consumer.seek(self._ends)

    def _leave(self, partitions: Set[Partition]) -> None:
        """Stop reading partitions until `follow` has them again."""
        if not partitions:
            return
        self._consumer.remove(partitions)
        self._ends = {partition: end for partition, end in self._ends.items() if partition not in partitions}

    @contextmanager
    def _rewound_on_error(self) -> Iterator[None]:
        """The consumer may have moved on when it fails: its records have to come again."""
        try:
            yield
        except BaseException:
            self._consumer.seek(self._ends)
            raise

    def _choose_ranges(self, polled: Fetched) -> TickRecords:
        refused = {topic: problem for (topic, _), problem in polled.refused.items()}
        self._leave(polled.changed.keys() | polled.refused.keys())
        ends = self._consumer.ends()
        while True:
            try:
                until = self._limits.cut(self._ends, ends, returned=True)
                break
            except TopicProblem as problem:
                refused[problem.topic] = problem
                self._leave({partition for partition in self._ends if partition[0] == problem.topic})
        topics = ranges_by_topic({p: (self._ends[p], end) for p, end in until.items()})
        self._ends |= until
        self._consumer.seek(self._ends)
        return TickRecords(topics, as_end_offsets(self._ends), polled.changed, refused)


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
    """The number of records, or of offsets that Spark will read."""
    if isinstance(records, TopicRange):
        return sum(part.end - part.start for part in records.ranges)
    return int(records.num_rows)


def raw(records: pa.Table) -> pa.Table:
    """Records with the columns of the engine's raw views."""
    names = {
        col.PARTITION: "partition",
        col.OFFSET: "offset",
        col.ROW_TIME: "timestamp",
        "key": "key",
        "value": "value",
    }
    found = {name: records.column(column) for name, column in names.items()}
    return pa.table({**found, col.HEADERS: positional(records.column("headers"))})


def positional(headers: pa.ChunkedArray) -> pa.Array:
    """Headers with positional field names, as structs have them in the engine; nulls when no record has any."""
    whole, type_ = headers.combine_chunks(), RECORDS.field(col.HEADERS).type
    if len(whole.flatten()) == 0:
        return pa.nulls(len(whole), type_)
    parts = [whole.values.field(i) for i in range(2)]
    return pa.ListArray.from_arrays(whole.offsets, pa.StructArray.from_arrays(parts, fields=list(type_.value_type)))


def as_end_offsets(ends: Ends) -> tuple[EndOffset, ...]:
    return tuple(EndOffset(topic, partition, end) for (topic, partition), end in ends.items())


def as_ends(ends: Iterable[EndOffset]) -> dict[Partition, int]:
    return {(end.topic, end.partition): end.offset for end in ends}
