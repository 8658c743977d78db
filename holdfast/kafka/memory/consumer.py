"""Reading the in-memory Kafka: as topics grow, and ranges of them."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import merge
from itertools import islice

import pyarrow as pa

from holdfast.kafka.changes import truncated
from holdfast.kafka.memory.broker import LogEntry, MemoryBroker
from holdfast.kafka.port import Fetched, TopicSilent
from holdfast.kafka.records import NO_RECORDS, RECORDS, Partition


class MemoryConsumer:
    """Implements `port.Consumer`. Records of several partitions come in the order in which they were written."""

    def __init__(self, broker: MemoryBroker, limit: Callable[[], int | None] = lambda: None) -> None:
        self._broker, self._limit = broker, limit
        self._positions: dict[Partition, int] = {}

    @property
    def positions(self) -> Mapping[Partition, int]:
        return dict(self._positions)

    def assign(self, positions: Mapping[Partition, int]) -> None:
        self._positions = dict(positions)

    def seek(self, positions: Mapping[Partition, int]) -> None:
        self._positions |= positions

    def remove(self, partitions: Iterable[Partition]) -> None:
        for partition in list(partitions):
            self._positions.pop(partition, None)

    def poll(self, max_records: int, timeout: float) -> Fetched:
        limit = self._limit()
        most = max_records if limit is None else min(max_records, limit)
        deadline = time.monotonic() + timeout
        with self._broker.changed:
            while self._broker.is_away or (fetched := self._fetch(most)) is None:
                left = deadline - time.monotonic()
                if left <= 0 or not self._broker.changed.wait(left):
                    return Fetched()
            return fetched

    def _fetch(self, most: int) -> Fetched | None:
        """The next records, or None when nothing has changed."""
        denied = self._broker.problems | self._broker.unreadable
        refused = {p: denied[p[0]] for p in self._positions if p[0] in denied}
        self.remove(refused)
        logs = {p: log for p in self._positions if (log := self._broker.find_log(p)) is not None}
        lost = {
            p: truncated(p, self._positions[p], log.start, log.end)
            for p, log in logs.items()
            if not log.start <= self._positions[p] <= log.end
        }
        readable = {p: log for p, log in logs.items() if p not in lost}
        ahead = [log.committed(self._positions[p], log.stable_end) for p, log in readable.items()]
        taken = list(islice(merge(*ahead, key=lambda entry: entry.sequence), most))
        moved = {p: self._positions[p] for p in readable} | {(e.topic, e.partition): e.offset + 1 for e in taken}
        for partition, log in readable.items():
            # After the last record there may be markers and aborted records.
            if next(log.committed(moved[partition], log.stable_end), None) is None:
                moved[partition] = max(log.stable_end, moved[partition])
        moved = {p: at for p, at in moved.items() if at != self._positions[p]}
        if not moved and not lost and not refused:
            return None
        self._positions |= moved
        self.remove(lost)
        return Fetched(to_arrow(taken), moved, lost, refused)

    def backlog(self) -> Mapping[Partition, int]:
        with self._broker.changed:
            logs = {p: self._broker.find_log(p) for p in self._positions}
            return {p: max(0, log.stable_end - self._positions[p]) if log else 0 for p, log in logs.items()}

    def ends(self) -> Mapping[Partition, int]:
        with self._broker.request():
            readable = [p for p in self._positions if p[0] not in self._broker.problems]
            return {partition: self._broker.log(partition).stable_end for partition in readable}

    def close(self) -> None:
        self._positions.clear()


class MemoryRanges:
    """Implements `port.Ranges`."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    def read(self, ranges: Mapping[Partition, tuple[int, int]], *, timeout: float = 60.0) -> pa.Table:
        wanted = {partition: range_ for partition, range_ in ranges.items() if range_[0] < range_[1]}
        with self._broker.request():
            if not self._broker.changed.wait_for(lambda: self._is_stable(wanted), timeout):
                raise TopicSilent(next(iter(wanted))[0], detail="A transaction is open.")
            return to_arrow(
                [e for p, (start, end) in wanted.items() for e in self._broker.log(p).committed(start, end)]
            )

    def _is_stable(self, ranges: Mapping[Partition, tuple[int, int]]) -> bool:
        denied = self._broker.problems | self._broker.unreadable
        for partition, (start, end) in ranges.items():
            if partition[0] in denied:
                raise denied[partition[0]]
            log = self._broker.log(partition)
            if start < log.start:
                raise truncated(partition, start, log.start, log.end)
            if end > log.end:
                raise truncated(partition, end, log.start, log.end)
            if end > log.stable_end:
                return False
        return True


def to_arrow(entries: Sequence[LogEntry]) -> pa.Table:
    if not entries:
        return NO_RECORDS
    columns = [
        [entry.topic for entry in entries],
        [entry.partition for entry in entries],
        [entry.offset for entry in entries],
        [entry.timestamp for entry in entries],
        [entry.key for entry in entries],
        [entry.value for entry in entries],
        [[{"key": key, "value": value} for key, value in entry.headers] for entry in entries],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, RECORDS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=RECORDS)
