"""Writes the windows of another application to a collection, and removes them as a window store of Kafka Streams does.

The time of a window is its start, or its end for a session. The observed time of a partition is the greatest time of
a window so far, of any record. A window leaves the collection when its time is `retention` before the observed time,
and a record of such a window is dropped. A state has an element for each window in the collection, whose `ts` is the
window's time.

Which windows remain after a tick depends only on the observed time that the tick reaches: a window that a record
brings, and that later records of the tick pass, would be removed by the end of the tick anyway.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import WrongWindowLayout
from holdfast.names import QueryId, TopicName
from holdfast.runtime import physical_columns as col
from holdfast.runtime.physical_columns import AFTER, BEFORE
from holdfast.runtime.program import UpsertWindows
from holdfast.runtime.store.port import SqlReader, StateMerge, TickStage

FIRST_RECORDS = 100
"""When the keys of these all lack the declared layout, the table is declared wrongly."""
LAYOUT = -1
"""The key, in the state of observed times, of the number of these records."""
FITS = 2**62
"""That number once a record had a key of the declared layout."""

ObservedTimes = dict[int, int | None]
"""The observed time of each partition; None before its first record."""


@dataclass(frozen=True, slots=True)
class WindowExpiry:
    """One tick of the windows of one table."""

    query: QueryId
    action: UpsertWindows
    stage: TickStage
    reader: SqlReader

    def run(self, rows: pa.Table) -> ObservedTimes | None:
        """Stage the last row per window. Returns the observed times before the tick if it may have dropped records."""
        if not rows.num_rows:
            return None
        times = self._advance(rows)
        bounds = self._bounds(times)
        windows = self._windows(rows, bounds)
        removed = self._removed(windows, self.stage.lookup_spans(self.action.windows, bounds))
        shown = [*self._keys, *col.values(self.action.width), col.ROW_TIME, col.PRESENT]
        upserts = pa.concat_tables([windows.select(shown), removed], promote_options="default")
        self.stage.upsert(self.query, self.action.collection, upserts)
        self.stage.put(self.query, self.action.windows, self._elements(windows), bounds)
        return None if pc.all(windows.column("alive")).as_py() else self._observed(times)

    def check_layout(self, topic: TopicName, records: int, misfits: int) -> None:
        """Note a tick without a usable record, `misfits` of which do not have a key of the declared layout."""
        first = pa.table({col.key(0): pa.array([LAYOUT], pa.int32())})
        known = self.stage.lookup_state(self.action.clock, first).column(col.value(0)).to_pylist()
        before = known[0] if known else 0
        if before == FITS:
            return
        found = before + misfits if misfits == records else FITS
        if FIRST_RECORDS <= found < FITS:
            raise WrongWindowLayout(
                f'the keys of topic "{topic}" do not end with the declared window',
                detail=f"None of its first {found} records has such a key.",
                hint=f"{self.action.remedy} Drop the table first.",
            )
        self._merge_clock(self.reader.evaluate_over(f"SELECT {LAYOUT} AS k0, {found} AS p0, 0 AS ts", {}))

    @property
    def _keys(self) -> list[str]:
        return col.keys(self.action.key_width)

    @property
    def _partition(self) -> str:
        """The key column of an element's partition."""
        return col.key(self.action.key_width)

    def _advance(self, rows: pa.Table) -> pa.Table:
        """Merge the greatest time of a window in each partition into the clock; returns the delta of its state."""
        action = self.action
        sql = (
            f"SELECT {action.partition} AS k0, max({action.time}) AS p0, max(ts) AS ts "
            f"FROM arrived GROUP BY {action.partition}"
        )
        self._merge_clock(self.reader.evaluate_over(f"{sql} UNION ALL SELECT {LAYOUT}, {FITS}, 0", {"arrived": rows}))
        times = self.stage.state_delta(action.clock)
        return times.filter(pc.not_equal(times.column(col.key(0)), LAYOUT))

    def _merge_clock(self, partials: pa.Table) -> None:
        merge = StateMerge(self.query, self.action.clock, partials, self.action.clock_merge)
        for failure in self.stage.merge([merge]).values():
            raise failure

    def _bounds(self, times: pa.Table) -> pa.Table:
        """By partition, the time up to which windows are removed."""
        upto = pc.subtract(times.column(AFTER.column(0)), self.action.retention)
        unbounded = pa.nulls(times.num_rows, pa.int64())
        return pa.table({self._partition: times.column(col.key(0)), "after": unbounded, "upto": upto})

    def _windows(self, rows: pa.Table, bounds: pa.Table) -> pa.Table:
        """The rows; those that are past their retention (`alive` is false) are deletes."""
        alive = f"r.{self.action.time} > b.upto"
        names = [name for name in rows.column_names if name != col.PRESENT]
        sql = (
            f"SELECT {', '.join(f'r.{name}' for name in names)}, r.present AND {alive} AS present, {alive} AS alive "
            f"FROM arrived r JOIN bounds b ON r.{self.action.partition} = b.{self._partition}"
        )
        return self.reader.evaluate_over(sql, {"arrived": rows, "bounds": bounds})

    def _removed(self, windows: pa.Table, expired: pa.Table) -> pa.Table:
        """Deletes of the expired elements, except those that arrived in this tick."""
        keys = ", ".join(self._keys)
        sql = f"SELECT {keys}, ts, false AS present FROM expired ANTI JOIN windows USING ({keys})"
        return self.reader.evaluate_over(sql, {"expired": expired, "windows": windows.select(self._keys)})

    def _elements(self, windows: pa.Table) -> pa.Table:
        chosen = windows.select([*self._keys, self.action.partition, self.action.time, col.PRESENT])
        return chosen.rename_columns([*self._keys, self._partition, col.ROW_TIME, col.PRESENT])

    def _observed(self, times: pa.Table) -> ObservedTimes:
        before = times.column(BEFORE.column(0)).to_pylist()
        return dict(zip(times.column(col.key(0)).to_pylist(), before, strict=True))


def dropped_sql(action: UpsertWindows, decoded: str, observed: ObservedTimes) -> str:
    """The SELECT of the number of records dropped in a tick by partition, and the observed time at the last of them.

    `decoded` is the SELECT of the tick's decoded records, `observed` are the times before the tick.
    """
    known = " ".join(f"WHEN {part} THEN {time}L" for part, time in observed.items() if time is not None)
    before = f"CASE part {known} END" if known else "CAST(NULL AS BIGINT)"
    so_far = f"max({action.time}) OVER (PARTITION BY part ORDER BY off ROWS UNBOUNDED PRECEDING)"
    records = f"SELECT part, {action.time} AS time, greatest({so_far}, {before}) AS observed FROM ({decoded})"
    return (
        f"SELECT part, count(*) AS late, max(observed) AS time FROM ({records} WHERE bad = 0) "
        f"WHERE time <= observed - {action.retention} GROUP BY part"
    )


def misfits_sql(action: UpsertWindows, view: str) -> str:
    """The SELECT of the number of raw records in a view, and of those without a key of the declared layout."""
    return f"SELECT count(*) AS records, count_if(coalesce({action.misfit}, true)) AS misfits FROM {view}"
