"""Push queries: every change from now on, or from the start, at the client's own pace.

A reader keeps its place in the store or in the topic, not rows in memory: a slow one is slow and loses nothing. Readers
at the same place share what is read, computed and written for them.
"""

import re
import time as clock
from abc import ABC, abstractmethod
from threading import Event
from uuid import uuid4

import pyarrow as pa

from holdfast.errors import HoldfastError
from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.store.port import ChangeRange, Time
from holdfast.serving.follow import Follower, Page, SnapshotDone, Start
from holdfast.serving.projection import Projection
from holdfast.serving.results import PushBatch, ResultColumn
from holdfast.serving.rows import Chosen, RowReader, with_no_tombstones
from holdfast.serving.streams import StreamPlace, StreamReader, Stretch
from holdfast.serving.times import Times
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.bound import BoundSelect

FIRST_OFFSETS, MOST_OFFSETS = 500, 20_000
"""How many records of a stream are read for a batch: few at first, until it is known how large they are."""
BATCH_BYTES = 8 << 20


class Pushing(ABC):
    """What pushes on streams and on tables have in common: the id, LIMIT, waiting and closing."""

    def __init__(self, bound: BoundSelect, reader: RowReader, wakeup: Wakeup) -> None:
        self._projection = Projection(bound)
        self._relation = bound.relation
        self._reader = reader
        self._wakeup = wakeup
        self._left: int | None = bound.limit
        self._closed = Event()
        self._time: Time | None = None
        name = re.sub(r"\W", "_", bound.relation.name, flags=re.ASCII)
        self._id = f"PUSH_{name}_{uuid4().hex[:12]}".upper()
        shape = self._projection.select("t", self._projection.dialect)
        self._key = (bound.relation.name, bound.relation.topic, str(bound.relation.schema), shape)

    @property
    def id(self) -> str:
        return self._id

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return self._projection.columns

    @property
    def time(self) -> Time | None:
        return self._time

    def ready(self) -> bool:
        try:
            return self._closed.is_set() or self._left == 0 or self._pending()
        except HoldfastError:
            return True

    def next(self, timeout: float) -> PushBatch | None:
        deadline = clock.monotonic() + timeout
        while not self._closed.is_set() and self._left != 0:
            seen = self._wakeup.count
            batch = self._read()
            if batch is not None:
                if batch.rows.num_rows or batch.snapshot is not None:
                    return self._limited(batch)
                continue
            left = deadline - clock.monotonic()
            if left <= 0:
                return None
            self._wakeup.wait(seen, min(left, 1.0))
        self.close()
        raise StopIteration

    def close(self) -> None:
        self._closed.set()
        self._wakeup.ring()

    @abstractmethod
    def _pending(self) -> bool:
        """Whether there is something to read, as far as memory knows."""

    @abstractmethod
    def _read(self) -> PushBatch | None:
        """What has come since the last time, None when nothing has; sets `_time`."""

    def _batch(self, chosen: Chosen) -> PushBatch:
        return PushBatch(chosen.rows, self._time, encoded=chosen.encoded, shared=True)

    def _limited(self, batch: PushBatch) -> PushBatch:
        if self._left is None:
            return batch
        if batch.rows.num_rows > self._left:
            batch = PushBatch(batch.rows.slice(0, self._left), None)
        self._left -= batch.rows.num_rows
        return batch


class StreamPush(Pushing):
    """Follows a stream through its topic."""

    def __init__(
        self, bound: BoundSelect, streams: StreamReader, reader: RowReader, wakeup: Wakeup, place: StreamPlace
    ) -> None:
        super().__init__(bound, reader, wakeup)
        self._streams, self._place = streams, place
        self._most = FIRST_OFFSETS

    def _pending(self) -> bool:
        return self._streams.behind(self._relation, self._place)

    def _read(self) -> PushBatch | None:
        time, ends = self._streams.visible(self._relation)
        starts = {partition: self._place.get(partition, 0) for partition in ends}
        ranges = {p: (starts[p], min(end, starts[p] + self._most)) for p, end in ends.items() if end > starts[p]}
        if not ranges:
            self._time = time
            return None
        wanted: Stretch = tuple(sorted(ranges.items()))
        chosen = self._reader.shared((*self._key, wanted), lambda: self._rows(wanted))
        self._place = {**self._place, **{partition: end for partition, (_, end) in ranges.items()}}
        self._time = time if all(self._place[partition] >= end for partition, end in ends.items()) else None
        return self._batch(chosen)

    def _rows(self, ranges: Stretch) -> pa.Table:
        rows = self._streams.read(self._relation, ranges)
        fits = BATCH_BYTES * max(rows.num_rows, 1) // max(rows.nbytes, 1)
        self._most = max(1, min(4 * self._most, fits, MOST_OFFSETS))
        return with_no_tombstones(self._reader.rows(self._projection, rows))


class TablePush(Pushing):
    """Follows a table through its changes; with `snapshot`, after the rows that it has, whose end `marked` tells."""

    def __init__(
        self,
        bound: BoundSelect,
        reader: RowReader,
        times: Times,
        wakeup: Wakeup,
        *,
        snapshot: bool,
        marked: bool = False,
    ) -> None:
        super().__init__(bound, reader, wakeup)
        self._marked = marked
        self._follower = Follower(reader.store, reader.widths, times, bound.relation, Start(snapshot=snapshot))

    def next(self, timeout: float) -> PushBatch | None:
        try:
            return super().next(timeout)
        except StopIteration:
            self._follower.forget_pages()
            raise

    def close(self) -> None:
        super().close()
        self._follower.close()

    def _pending(self) -> bool:
        return self._follower.pending()

    def _read(self) -> PushBatch | None:
        step = self._follower.step()
        self._time = self._follower.time
        match step:
            case None:
                return None
            case Page(rows):
                return PushBatch(with_no_tombstones(self._reader.rows(self._projection, rows)), None)
            case SnapshotDone(at):
                return PushBatch(self._nothing(), at, snapshot=at if self._marked else None)
            case ChangeRange() as part:
                chosen = self._reader.shared((*self._key, part), lambda: self._changes(part))
                self._follower.took(part)
                self._time = self._follower.time
                return self._batch(chosen)

    def _changes(self, part: ChangeRange) -> pa.Table:
        return self._reader.changes(self._projection, self._follower.changes(part))

    def _nothing(self) -> pa.Table:
        fields = [(f"r{i}", arrow_type(column.type)) for i, column in enumerate(self.columns)]
        return pa.schema([*fields, ("tombstone", pa.bool_())]).empty_table()
