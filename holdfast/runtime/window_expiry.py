"""Writes the windows of another application to a collection, and removes them as a window store of Kafka Streams does.

The time of a window is its start, or its end for a session. The observed time of a partition is the greatest time of
a window so far, of any record. A window leaves the collection when its time is `retention` before the observed time,
and a record of such a window is dropped. A state has an element for each window in the collection, with the partition
of its last record; its `ts` is the window's time.

Which windows remain after a tick depends only on the observed time that the tick reaches: a window that a record
brings, and that later records of the tick pass, would be removed by the end of the tick anyway. A window that expires
is deleted at its own time, whatever ticks there are; one that a record deletes, at that of the record.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import WrongWindowLayout
from holdfast.names import QueryId, TopicName
from holdfast.runtime import physical_columns as col
from holdfast.runtime.physical_columns import AFTER, BEFORE
from holdfast.runtime.program import UpsertWindows
from holdfast.runtime.row_mask import row_mask
from holdfast.runtime.store.port import SqlReader, StateMerge, TickStage

FIRST_RECORDS = 100
"""When the keys of these all lack the declared layout, the table is declared wrongly."""
LAYOUT_CHECK_KEY = -1
"""The key, in the state of observed times, of the number of these records."""
LAYOUT_CONFIRMED = 2**62
"""That number once a record had a key of the declared layout."""
OBSERVED = "observed"
"""The view of the observed times before a tick: `part, time`."""
ELEMENT_PARTITION = col.value(0)
"""The column of an element's partition."""

CountDropped = Callable[[pa.Table], pa.Table]
"""Runs `dropped_sql` over the observed times before the tick."""


@dataclass(frozen=True, slots=True)
class WindowExpiry:
    """One tick of the windows of one table."""

    query: QueryId
    action: UpsertWindows
    stage: TickStage
    reader: SqlReader

    def run(self, rows: pa.Table, count_dropped: CountDropped) -> pa.Table | None:
        """Stage the last row per window. Returns what `count_dropped` found, if the tick dropped records."""
        if not rows.num_rows:
            return None
        times = self._advance(rows)
        bounds = self._bounds(times)
        windows, past = self._split(rows, bounds)
        dropped = count_dropped(self._observed(times)) if self._has_dropped(rows, past, times) else None
        expired = self.stage.lookup_spans(self.action.windows, bounds)
        shown = [*self._keys, *col.values(self.action.width), col.ROW_TIME, col.PRESENT]
        removed = self._removed(expired, windows, past, dropped)
        upserts = pa.concat_tables([windows.select(shown), removed], promote_options="default")
        self.stage.upsert(self.query, self.action.collection, upserts)
        self.stage.put(self.query, self.action.windows, self._elements(windows), bounds)
        return dropped

    def check_layout(self, topic: TopicName, records: int, misfits: int) -> None:
        """Note a tick of `records` with keys of which none is usable, `misfits` of them without the declared layout."""
        first = pa.table({col.key(0): pa.array([LAYOUT_CHECK_KEY], pa.int32())})
        known = self.stage.lookup_state(self.action.clock, first).column(col.value(0)).to_pylist()
        before = known[0] if known else 0
        if before == LAYOUT_CONFIRMED or not records:
            return
        found = before + misfits if misfits == records else LAYOUT_CONFIRMED
        if FIRST_RECORDS <= found < LAYOUT_CONFIRMED:
            raise WrongWindowLayout(
                f'the keys of topic "{topic}" do not end with the declared window',
                detail=f"None of its first {found} records has such a key.",
                hint=f"{self.action.layout_hint} Drop the table first.",
            )
        self._merge_clock(
            self.reader.evaluate_over(f"SELECT {self._clock_row(str(LAYOUT_CHECK_KEY), str(found), '0')}", {})
        )

    @property
    def _keys(self) -> list[str]:
        return col.keys(self.action.key_width)

    def _advance(self, rows: pa.Table) -> pa.Table:
        """Merge the greatest time of a window in each partition into the clock; returns the delta of its state."""
        action = self.action
        row = self._clock_row(action.partition, f"max({action.time})", f"max({col.ROW_TIME})")
        layout = self._clock_row(str(LAYOUT_CHECK_KEY), str(LAYOUT_CONFIRMED), "0")
        sql = f"SELECT {row} FROM arrived GROUP BY {action.partition} UNION ALL SELECT {layout}"
        self._merge_clock(self.reader.evaluate_over(sql, {"arrived": rows}))
        times = self.stage.state_delta(action.clock)
        return times.filter(pc.not_equal(times.column(col.key(0)), LAYOUT_CHECK_KEY))

    def _clock_row(self, partition: str, time: str, ts: str) -> str:
        return f"{partition} AS {col.key(0)}, {time} AS {col.partial(0)}, {ts} AS {col.ROW_TIME}"

    def _merge_clock(self, partials: pa.Table) -> None:
        merge = StateMerge(self.query, self.action.clock, partials, self.action.clock_merge)
        for failure in self.stage.merge([merge]).values():
            raise failure

    def _bounds(self, times: pa.Table) -> pa.Table:
        """By partition, the time up to which windows are removed."""
        upto = pc.subtract(times.column(AFTER.column(0)), self.action.retention)
        unbounded = pa.nulls(times.num_rows, pa.int64())
        return pa.table({ELEMENT_PARTITION: times.column(col.key(0)), "after": unbounded, "upto": upto})

    def _split(self, rows: pa.Table, bounds: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The rows whose windows are retained at the end of the tick, and those that are past their retention."""
        action = self.action
        if pc.min(rows.column(action.time)).as_py() > pc.max(bounds.column("upto")).as_py():
            return rows, rows.slice(0, 0)
        condition = (
            f"EXISTS (SELECT 1 FROM bounds b WHERE b.{ELEMENT_PARTITION} = t.{action.partition} "
            f"AND t.{action.time} <= b.upto)"
        )
        columns = [action.time, action.partition]
        past = row_mask(self.reader, rows, columns, condition, {"bounds": bounds})
        return rows.filter(pc.invert(past)), rows.filter(past)

    def _has_dropped(self, rows: pa.Table, past: pa.Table, times: pa.Table) -> bool:
        """Whether a record may have been dropped on arrival: its window had passed then, not only by the end."""
        if not past.num_rows:
            return False
        action = self.action
        passes = f"p.{action.time} + {action.retention}"
        # `seen` is the first offset in the tick at which the observed time is at least that of a row's window.
        seen = (
            f"SELECT {action.partition} AS part, {action.time} AS time, min({action.first}) OVER "
            f"(PARTITION BY {action.partition} ORDER BY {action.time} DESC) AS seen FROM arrived"
        )
        sql = (
            f"SELECT count(*) AS dropped FROM past p JOIN times t ON p.{action.partition} = t.{col.key(0)} "
            f"ASOF LEFT JOIN ({seen}) s ON p.{action.partition} = s.part AND s.time >= {passes} "
            f"WHERE t.{BEFORE.column(0)} >= {passes} OR p.{action.last} > s.seen"
        )
        found = self.reader.evaluate_over(sql, {"past": past, "times": times, "arrived": rows})
        return bool(found.column("dropped")[0].as_py())

    def _removed(self, expired: pa.Table, windows: pa.Table, past: pa.Table, dropped: pa.Table | None) -> pa.Table:
        """Deletes of the expired elements, except of windows that arrived in another partition.

        Their timestamp is the time of the window, unless a record deleted it before it expired.
        """
        keys = ", ".join(self._keys)
        deleted = f"SELECT {keys}, {col.ROW_TIME} AS deleted FROM past WHERE NOT {col.PRESENT}"
        tables = {"expired": expired, "windows": windows.select(self._keys), "past": past}
        if dropped is not None:
            deleted = (
                f"SELECT {keys}, {col.ROW_TIME} AS deleted FROM past ANTI JOIN dropped USING ({keys}) "
                f"WHERE NOT {col.PRESENT} UNION ALL SELECT {keys}, deleted FROM dropped WHERE deleted IS NOT NULL"
            )
            tables["dropped"] = dropped
        sql = (
            f"SELECT {keys}, coalesce(deleted, {col.ROW_TIME}) AS {col.ROW_TIME}, false AS {col.PRESENT} "
            f"FROM (SELECT {keys}, {col.ROW_TIME} FROM expired ANTI JOIN windows USING ({keys})) "
            f"LEFT JOIN (SELECT {keys}, max(deleted) AS deleted FROM ({deleted}) GROUP BY {keys}) USING ({keys})"
        )
        return self.reader.evaluate_over(sql, tables)

    def _elements(self, windows: pa.Table) -> pa.Table:
        chosen = windows.select([*self._keys, self.action.partition, self.action.time, col.PRESENT])
        return chosen.rename_columns([*self._keys, ELEMENT_PARTITION, col.ROW_TIME, col.PRESENT])

    def _observed(self, times: pa.Table) -> pa.Table:
        names = [col.PARTITION, "time"]
        return times.select([col.key(0), BEFORE.column(0)]).rename_columns(names)


def dropped_sql(action: UpsertWindows, decoded: str) -> str:
    """The SELECT of the windows with records that were dropped in a tick.

    `k0.., part`, the number of these records (`late`), the observed time at the last of them (`time`), and the
    timestamp of the last other record if it has deleted the window (`deleted`). `decoded` is the view of the tick's
    decoded records.
    """
    keys = ", ".join(col.keys(action.key_width))
    so_far = f"max({action.time}) OVER (PARTITION BY {col.PARTITION} ORDER BY {col.OFFSET} ROWS UNBOUNDED PRECEDING)"
    records = (
        f"SELECT {keys}, d.{col.PARTITION}, {col.OFFSET}, {col.ROW_TIME}, {col.TOMBSTONE}, "
        f"{action.time} AS window_time, greatest(so_far, o.time) AS observed "
        f"FROM (SELECT *, {so_far} AS so_far FROM {decoded} WHERE {col.BAD} = 0) d "
        f"LEFT JOIN {OBSERVED} o ON o.{col.PARTITION} = d.{col.PARTITION}"
    )
    arrived = f"SELECT *, window_time <= observed - {action.retention} AS dropped FROM ({records})"
    deleted = f"max_by(IF({col.TOMBSTONE}, {col.ROW_TIME}, NULL), {col.OFFSET}) FILTER (WHERE NOT dropped) AS deleted"
    return (
        f"SELECT {keys}, {col.PARTITION}, count_if(dropped) AS {col.LATE}, "
        f"max(observed) FILTER (WHERE dropped) AS time, {deleted} "
        f"FROM ({arrived}) GROUP BY {keys}, {col.PARTITION} HAVING count_if(dropped) > 0"
    )


def misfits_sql(action: UpsertWindows, view: str) -> str:
    """The SELECT of the number of raw records with a key in a view, and of those without one of the declared layout."""
    return f"SELECT count(key) AS records, count_if({action.wrong_layout}) AS misfits FROM {view}"
