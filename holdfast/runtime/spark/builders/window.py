"""Windows of a grouped stream: each row becomes one row per open window that contains it.

A window is closed once the stream time, the greatest timestamp so far, has passed its end and its grace period. Stream
time is per partition and across keys. It is part of a query's state; within a tick it advances row by row.
"""

from dataclasses import dataclass, replace

from holdfast.runtime import physical_columns as col
from holdfast.runtime.fragment import BAD, LATE, SKIPPED, TS, Fragment, column
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.windows import (
    HoppingWindow,
    SessionWindow,
    TumblingWindow,
    WindowExpression,
    grace_of,
    shape,
)
from holdfast.runtime.serdes.window import end_sql
from holdfast.runtime.spark.relation import StreamRelation
from holdfast.runtime.store.port import Layout, Merge
from holdfast.types import Scalar

STREAM_TIME = Layout((Scalar.INTEGER,), (Scalar.BIGINT,))
"""The state of stream time: partition, greatest timestamp."""
STREAM_TIME_MERGE = Merge(initial=("CAST(NULL AS BIGINT)",), merged=("greatest(s0, p0)",))


@dataclass(frozen=True, slots=True)
class Timed:
    """A stream whose rows have the stream time (`st`) at which they arrive, and the clock (`clk`) that measures it.

    Each partition has its own clock. If the rows of a key can be in several partitions, there is one clock for all,
    and the rows of a tick arrive in the order of their timestamps.
    """

    source: StreamRelation
    by_partition: bool = True

    @property
    def clocked(self) -> str:
        # Not a constant: Spark would join by it with a broadcast, which a prepared job cannot have.
        clock = "part" if self.by_partition else "CAST(IF(part IS NULL, NULL, 0) AS INT)"
        return f"SELECT *, {clock} AS clk FROM ({self.source.sql})"

    @property
    def order(self) -> str:
        """The order in which rows arrive."""
        return "off" if self.by_partition else "ts, part, off"

    def fragment(self, before: str, late: str) -> Fragment:
        """The stream time that the tick reaches, by clock, and the number of late and of skipped rows:
        `k0, p0, ts, late, bad, skipped`."""
        # Bad rows are grouped separately: the tick drops their groups, and must not drop a clock.
        counts = f"count_if(bad = 0 AND {late}) AS late, bad, count(*) AS skipped"
        sql = f"SELECT clk AS k0, max(st) AS p0, max(ts) AS ts, {counts} FROM ({self.sql(before)}) GROUP BY clk, bad"
        columns = (column(col.key(0), Scalar.INTEGER), column(col.partial(0), Scalar.BIGINT), TS, LATE, BAD, SKIPPED)
        return Fragment(sql, columns, reports_skips=True, late_by=(self.partition(col.key(0)), col.partial(0)))

    def partition(self, clock: str) -> str | None:
        """The column `clock` if each partition has its own clock, otherwise None."""
        return clock if self.by_partition else None

    def sql(self, before: str) -> str:
        """The rows with `st` and `clk`; the view `before` has the stream time of clocks before the tick."""
        so_far = (
            "max(IF(bad = 0, ts, NULL)) OVER "
            f"(PARTITION BY clk ORDER BY {self.order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
        )
        chosen = [*self.source.keys, *self.source.values, *self.source.rest_without_headers]
        return (
            f"SELECT {', '.join(chosen)}, clk, greatest(so_far, b_time) AS st "
            f"FROM (SELECT *, {so_far} AS so_far FROM ({self.clocked})) s LEFT JOIN "
            f"(SELECT k0 AS b_clock, c0 AS b_time FROM {before}) b ON clk = b_clock"
        )


def expired_after(window: WindowExpression) -> int | None:
    """A window expires this many ms after its end. The retention of a time window counts from its start."""
    retention = value_of(window.retention)
    if retention is None:
        return None
    return retention.millis if isinstance(window, SessionWindow) else max(retention.millis - window.size.millis, 0)


def is_late(window: WindowExpression) -> str:
    """The condition that all windows of a row have closed when it arrives. For sessions only the fold detects that."""
    if isinstance(window, SessionWindow):
        return "false"
    advance = window.advance_by.millis if isinstance(window, HoppingWindow) else window.size.millis
    return f"ts div {advance} * {advance} + {window.size.millis} <= st - {grace_of(window)}"


def build_windows(window: TumblingWindow | HoppingWindow, timed: Timed, before: str) -> StreamRelation:
    """The rows by window: the key is followed by the start and the end of the window."""
    source, size, grace = timed.source, window.size.millis, grace_of(window)
    advance = window.advance_by.millis if isinstance(window, HoppingWindow) else size
    first = f"greatest(ts - {size} + {advance}, 0) div {advance} * {advance}"
    starts = f"explode(IF(bad > 0, array(0L), sequence({first}, ts, {advance}L)))"
    count = len(source.key)
    keys = [*source.keys, f"ws AS {col.key(count)}", f"{end_sql('ws', size)} AS {col.key(count + 1)}"]
    inner = f"SELECT *, {starts} AS ws FROM ({timed.sql(before)})"
    chosen = [*keys, *source.values, *source.rest_without_headers, "clk"]
    sql = f"SELECT {', '.join(chosen)} FROM ({inner}) WHERE bad > 0 OR ws + {size} > st - {grace}"
    return replace(source, sql=sql, headers=False, window=shape(window))
