"""How much of its topics one tick or backfill slice reads: a number of records, fewer where they are long."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.config import Settings
from holdfast.kafka.port import Ranges
from holdfast.names import TopicName

RETURNED_SHARE = 4
"""Where all rows may come back from Spark, one read has this fraction of the limits: the rows must fit in memory."""
SAMPLE = 20
"""Records at both ends of a partition's range, whose length is taken for that of the records between."""
SILENT_SECONDS = 15.0
"""How long a topic may send nothing to the coordinator, which has others to read."""
UNMEASURED = 100
"""Up to this many records are read however long they are."""

Partition = tuple[TopicName, int]
Ends = Mapping[Partition, int]


MAX_ROWS_AT_ONCE = 500_000
"""Tables with up to this many rows in all are read in one slice."""
SHRINK_FACTOR = 16
LARGEST_DIVISOR = SHRINK_FACTOR**2
"""How much smaller than their settings limits get at once, and at most."""


@dataclass(frozen=True, slots=True)
class LengthSample:
    """The mean number of bytes of the records before an offset."""

    end: int
    length: float


class ReadLimits:
    """Cuts ranges that fit in memory: the limits of the settings, or less when Spark ran out of memory with those."""

    def __init__(self, settings: Settings, ranges: Ranges) -> None:
        self._max_records, self._max_bytes = settings.max_records_per_tick, settings.max_bytes_per_tick
        self._polled = settings.small_tick_records
        self._ranges = ranges
        self._divisor = 1
        self._measured: dict[Partition, LengthSample] = {}
        """The last sample of each partition: that before the end of one slice is that of the start of the next."""

    @property
    def polled(self) -> int:
        """How many records a tick takes from the consumer; with more to read, Spark reads them."""
        return max(1, self._polled // self._divisor)

    def shrink(self) -> None:
        """Read much less at a time."""
        self._divisor = min(self._divisor * SHRINK_FACTOR, LARGEST_DIVISOR)

    def grow(self) -> None:
        """Read twice as much at a time, up to the limits of the settings."""
        self._divisor = max(1, self._divisor // 2)

    @property
    def rows_at_once(self) -> int:
        """Tables with more rows than this in all are read in slices of `returned_bytes`."""
        return MAX_ROWS_AT_ONCE // self._divisor

    @property
    def returned_bytes(self) -> int:
        """The bytes of one slice whose rows may all come back from Spark."""
        return max(1, self._bytes // RETURNED_SHARE)

    @property
    def _records(self) -> int:
        return max(1, self._max_records // self._divisor)

    @property
    def _bytes(self) -> int:
        return max(1, self._max_bytes // self._divisor)

    def cut(self, starts: Ends, ends: Ends, *, returned: bool) -> dict[Partition, int]:
        """Where the next range of each partition ends. Smaller where the rows are `returned`, and never empty."""
        share = RETURNED_SHARE if returned else 1
        until = bounded(starts, ends, -(-self._records // share))
        offsets = sum(end - starts[p] for p, end in until.items())
        if offsets <= UNMEASURED:
            return until
        fitting = self._bytes * offsets // (share * max(1, self._estimated_bytes(starts, until)))
        return until if offsets <= fitting else bounded(starts, until, max(UNMEASURED, fitting))

    def _estimated_bytes(self, starts: Ends, until: Ends) -> int:
        """About how many bytes the ranges have: each partition counts with the longer records of its two ends."""
        known = {p: s.length for p, s in self._measured.items() if starts.get(p) == s.end}
        unknown = {p: (starts[p], min(end, starts[p] + SAMPLE)) for p, end in until.items() if p not in known}
        heads = known | (self._lengths(unknown) if unknown else {})
        tails = self._lengths({p: (max(starts[p], end - SAMPLE), end) for p, end in until.items()})
        self._measured = {p: LengthSample(until[p], length) for p, length in tails.items()}
        return int(sum((end - starts[p]) * max(heads.get(p, 0), tails.get(p, 0)) for p, end in until.items()))

    def _lengths(self, ranges: Mapping[Partition, tuple[int, int]]) -> dict[Partition, float]:
        return mean_lengths(self._ranges.read(ranges, timeout=SILENT_SECONDS))


def mean_lengths(records: pa.Table) -> dict[Partition, float]:
    """The mean number of bytes of each partition's records, keys and values together."""
    parts = [pc.fill_null(pc.binary_length(records.column(name)), 0) for name in ("key", "value")]
    measured = records.select(["topic", "partition"]).append_column("length", pc.add(*parts))
    found = measured.group_by(["topic", "partition"]).aggregate([("length", "mean")])
    return {(TopicName(row["topic"]), row["partition"]): row["length_mean"] for row in found.to_pylist()}


def bounded(starts: Ends, ends: Ends, most: int) -> dict[Partition, int]:
    """Ends with at most `most` offsets in all, shared among the partitions in proportion to how far each is behind."""
    behind = {p: max(0, ends[p] - start) for p, start in starts.items() if p in ends}
    total = sum(behind.values())
    if total <= most:
        return {p: starts[p] + n for p, n in behind.items()}
    return {p: starts[p] + -(-n * most // total) for p, n in behind.items()}


def aligned(
    starts: Ends, until: Ends, following: Mapping[Partition, int], offsets_at: Callable[[int], Ends]
) -> dict[Partition, int]:
    """Ends at which no partition is further in time than the one that is most behind.

    `following` are the timestamps of the next records of partitions that do not end there.
    """
    if not following:
        return dict(until)
    stop = min(following.values())
    reached = offsets_at(stop)
    return {
        # The partition that is most behind moves on: there is always one.
        p: end if following.get(p) == stop else max(starts[p], min(end, reached.get(p, end)))
        for p, end in until.items()
    }
