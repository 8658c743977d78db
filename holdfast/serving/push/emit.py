"""EMIT CHANGES and EMIT ALL: the changes of a stream or table, at the client's own pace.

A reader keeps a position in the store (`Cursor`) or, as streams are not stored, in the topic, not rows in memory. So a
slow client loses nothing. Readers at the same position share reads, results and encoded bytes.
"""

from collections.abc import Hashable

import pyarrow as pa

from holdfast.catalog.objects import Table
from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.store.port import ChangeRange, Time
from holdfast.serving.projection import Projection
from holdfast.serving.push.cursor import Cursor, Start
from holdfast.serving.push.query import IDLE_SECONDS, CursorQuery, PushQuery
from holdfast.serving.push.read_objects import ReadObjects
from holdfast.serving.push.row_reader import RowReader, SharedRows, with_no_tombstones
from holdfast.serving.push.stream_reader import OffsetRanges, StreamPosition, StreamReader
from holdfast.serving.push.table_source import TableChanges
from holdfast.serving.results import PushBatch
from holdfast.serving.time.read_times import Times
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.read.select import BoundSelect
from holdfast.wall_clock import WallClock

FIRST_OFFSETS, MOST_OFFSETS = 500, 20_000
"""Records of a stream per batch: few at first, until their size is known."""
BATCH_BYTES = 8 << 20


def batch_key(bound: BoundSelect, projection: Projection) -> Hashable:
    """Equal for queries that get the same rows at the same position."""
    relation = bound.relation
    return relation.name, relation.id, str(relation.schema), projection.select("t", projection.dialect)


class StreamPush(PushQuery):
    """Follows a stream through its topic. A stream is not stored, so its position is offsets, not a cursor's time."""

    def __init__(
        self,
        bound: BoundSelect,
        objects: ReadObjects,
        streams: StreamReader,
        reader: RowReader,
        wakeup: Wakeup,
        clock: WallClock,
        *,
        start: StreamPosition,
    ) -> None:
        self._projection, self._relation, self._reader = Projection(bound), bound.relation, reader
        super().__init__(objects, self._projection.columns, wakeup, clock, limit=bound.limit)
        self._key = batch_key(bound, self._projection)
        assert bound.relation.topic is not None
        self._topic = bound.relation.topic
        self._streams, self._position = streams, start
        self._identity = streams.identity(bound.relation)
        self._batch_records = FIRST_OFFSETS

    def _pending(self) -> bool:
        self._streams.check(self._relation, self._identity)
        return self._streams.reads.may_start(self._topic) and self._streams.has_more(self._relation, self._position)

    def seconds_to_wait(self) -> float:
        return min(super().seconds_to_wait(), self._streams.reads.seconds_to_wait(self._topic) or IDLE_SECONDS)

    def _read(self) -> PushBatch | None:
        self._streams.check(self._relation, self._identity)
        time, ends = self._streams.visible(self._relation)
        self._streams.check_ends(self._position, ends)
        starts = {partition: self._position.get(partition, 0) for partition in ends}
        ranges = {
            p: (starts[p], min(end, starts[p] + self._batch_records)) for p, end in ends.items() if end > starts[p]
        }
        if not ranges:
            self._time = time
            return None
        ordered: OffsetRanges = tuple(sorted(ranges.items()))
        rows = self._shared((self._key, self._identity, ordered), ordered)
        if rows is None:
            return None
        self._position = {**self._position, **{partition: end for partition, (_, end) in ranges.items()}}
        self._time = time if all(self._position[partition] >= end for partition, end in ends.items()) else None
        return self._batch(rows)

    def _shared(self, key: Hashable, ranges: OffsetRanges) -> SharedRows | None:
        """The rows of ranges; None when they cannot be read now."""
        rows = self._reader.found(key)
        if rows is None:
            with self._streams.reads.turn(self._topic) as may_read:
                if may_read:
                    rows = self._reader.shared(key, lambda: self._rows(ranges))
        return rows

    def _rows(self, ranges: OffsetRanges) -> pa.Table:
        rows = self._streams.read(self._relation, ranges)
        fit = BATCH_BYTES * max(rows.num_rows, 1) // max(rows.nbytes, 1)
        self._batch_records = max(1, min(4 * self._batch_records, fit, MOST_OFFSETS))
        return with_no_tombstones(self._reader.rows(self._projection, rows))


class TablePush(CursorQuery):
    """Follows the changes of a table; with `snapshot`, its rows come first. `marked` marks the batch that ends them."""

    def __init__(
        self,
        bound: BoundSelect,
        objects: ReadObjects,
        reader: RowReader,
        times: Times,
        wakeup: Wakeup,
        clock: WallClock,
        *,
        snapshot: bool,
        marked: bool = False,
    ) -> None:
        assert isinstance(bound.relation, Table)
        self._projection, self._reader, self._marked = Projection(bound), reader, marked
        self._key = batch_key(bound, self._projection)
        self._source = TableChanges(bound.relation, reader.store, reader.sizes)
        cursor = Cursor(self._source, reader.store, times, Start(snapshot=snapshot))
        super().__init__(objects, cursor, self._projection.columns, wakeup, clock, limit=bound.limit)

    def _snapshot_rows(self, rows: pa.Table) -> pa.Table:
        return with_no_tombstones(self._reader.rows(self._projection, rows))

    def _snapshot_end(self, at: Time) -> PushBatch:
        fields = [(f"r{i}", arrow_type(column.type)) for i, column in enumerate(self.columns)]
        no_rows = pa.schema([*fields, ("tombstone", pa.bool_())]).empty_table()
        return PushBatch(no_rows, at, snapshot=at if self._marked else None)

    def _change_rows(self, part: ChangeRange) -> SharedRows:
        return self._reader.shared((self._key, part), lambda: self._changes(part))

    def _changes(self, part: ChangeRange) -> pa.Table:
        return self._reader.changes(self._projection, self._source.changes(part))
