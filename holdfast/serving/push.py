"""Push queries: every change from now on, or from the start, at the client's own pace.

A reader keeps its place in the store or in the topic, not rows in memory: a slow one is slow and loses nothing. Readers
at the same place share what is read, computed and written for them.
"""

from collections.abc import Hashable

import pyarrow as pa

from holdfast.catalog.objects import Table
from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.store.port import ChangeRange, Time
from holdfast.serving.follow import Follower, Page, SnapshotDone, Start
from holdfast.serving.projection import Projection
from holdfast.serving.pushing import Pushing
from holdfast.serving.results import PushBatch
from holdfast.serving.rows import RowReader, with_no_tombstones
from holdfast.serving.streams import StreamPlace, StreamReader, Stretch
from holdfast.serving.times import Times
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.bound import BoundSelect

FIRST_OFFSETS, MOST_OFFSETS = 500, 20_000
"""How many records of a stream are read for a batch: few at first, until it is known how large they are."""
BATCH_BYTES = 8 << 20


def shape_of(bound: BoundSelect, projection: Projection) -> Hashable:
    """Equal for queries that are told the same of a place."""
    relation = bound.relation
    return relation.name, relation.topic, str(relation.schema), projection.select("t", projection.dialect)


class StreamPush(Pushing):
    """Follows a stream through its topic."""

    def __init__(
        self, bound: BoundSelect, streams: StreamReader, reader: RowReader, wakeup: Wakeup, place: StreamPlace
    ) -> None:
        self._projection, self._relation, self._reader = Projection(bound), bound.relation, reader
        super().__init__([bound.relation.name], self._projection.columns, wakeup, limit=bound.limit)
        self._key = shape_of(bound, self._projection)
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
        chosen = self._reader.shared((self._key, wanted), lambda: self._rows(wanted))
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
        self._projection, self._reader, self._marked = Projection(bound), reader, marked
        super().__init__([bound.relation.name], self._projection.columns, wakeup, limit=bound.limit)
        self._key = shape_of(bound, self._projection)
        assert isinstance(bound.relation, Table)
        self._follower = Follower(reader.store, reader.widths, times, bound.relation, Start(snapshot=snapshot))

    @property
    def held(self) -> Time | None:
        return self._follower.at if self._follower.begun else None

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
                chosen = self._reader.shared((self._key, part), lambda: self._changes(part))
                self._follower.took(part)
                self._time = self._follower.time
                return self._batch(chosen)

    def _changes(self, part: ChangeRange) -> pa.Table:
        return self._reader.changes(self._projection, self._follower.changes(part))

    def _nothing(self) -> pa.Table:
        fields = [(f"r{i}", arrow_type(column.type)) for i, column in enumerate(self.columns)]
        return pa.schema([*fields, ("tombstone", pa.bool_())]).empty_table()
