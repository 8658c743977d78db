"""How much is read at once: so many records of each partition, and fewer where they are long."""

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.config import Settings
from holdfast.kafka.consumer import RangeReader
from holdfast.names import TopicName

PASSED_ON = 4
"""A slice whose rows may all come back from Spark has this part of what one may have: they must fit its memory."""
SAMPLED = 20
"""So many records at both ends of a partition's range tell how long those between are."""
UNWEIGHED = 100
"""So few records are read however long they are."""

Partition = tuple[TopicName, int]
Ends = Mapping[Partition, int]


class Slices:
    """Cuts slices of topics that fit in memory."""

    def __init__(self, settings: Settings, ranges: RangeReader) -> None:
        self._records, self._bytes = settings.max_records_per_tick, settings.max_bytes_per_tick
        self._ranges = ranges

    def cut(self, starts: Ends, ends: Ends, *, passed_on: bool) -> dict[Partition, int]:
        """Where the next slice ends; it is smaller where its rows are `passed_on`, and never empty."""
        share = PASSED_ON if passed_on else 1
        until = bounded(starts, ends, -(-self._records // share))
        offsets = sum(end - starts[p] for p, end in until.items())
        if offsets <= UNWEIGHED:
            return until
        fitting = self._bytes * offsets // (share * max(1, self._weight(starts, until)))
        return until if offsets <= fitting else bounded(starts, until, max(UNWEIGHED, fitting))

    def _weight(self, starts: Ends, until: Ends) -> int:
        """About how many bytes there are: no partition is taken for lighter than the heavier of its two ends."""
        heads = self._lengths({p: (starts[p], min(end, starts[p] + SAMPLED)) for p, end in until.items()})
        tails = self._lengths({p: (max(starts[p], end - SAMPLED), end) for p, end in until.items()})
        return int(sum((end - starts[p]) * max(heads.get(p, 0), tails.get(p, 0)) for p, end in until.items()))

    def _lengths(self, ranges: Mapping[Partition, tuple[int, int]]) -> dict[Partition, float]:
        return mean_lengths(self._ranges.read(ranges))


def mean_lengths(records: pa.Table) -> dict[Partition, float]:
    """The mean number of bytes of each partition's records, keys and values together."""
    parts = [pc.fill_null(pc.binary_length(records.column(name)), 0) for name in ("key", "value")]
    measured = records.select(["topic", "partition"]).append_column("length", pc.add(*parts))
    found = measured.group_by(["topic", "partition"]).aggregate([("length", "mean")])
    return {(TopicName(row["topic"]), row["partition"]): row["length_mean"] for row in found.to_pylist()}


def bounded(starts: Ends, ends: Ends, most: int) -> dict[Partition, int]:
    """Ends that leave at most `most` offsets in all, each partition getting its share of what it is behind."""
    behind = {p: max(0, ends[p] - start) for p, start in starts.items() if p in ends}
    total = sum(behind.values())
    if total <= most:
        return {p: starts[p] + n for p, n in behind.items()}
    return {p: starts[p] + -(-n * most // total) for p, n in behind.items()}


def in_step(
    starts: Ends, until: Ends, following: Mapping[Partition, int], offsets_at: Callable[[int], Ends]
) -> dict[Partition, int]:
    """Ends that leave no partition further in time than the one that is behind.

    `following` are the timestamps of the records at ends where a partition does not end yet.
    """
    if not following:
        return dict(until)
    stop = min(following.values())
    reached = offsets_at(stop)
    return {
        # The one that is behind goes on: there is always one that does.
        p: end if following.get(p) == stop else max(starts[p], min(end, reached.get(p, end)))
        for p, end in until.items()
    }
