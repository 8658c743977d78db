"""Windows of a grouped stream: each row becomes one row per window that it falls in and that is still open.

A window is closed once the stream time, the greatest timestamp so far, has passed its end and its grace period. Stream
time is per partition and across keys. It is the state of a query; within a tick it grows row by row.
"""

from dataclasses import dataclass, replace

from holdfast.runtime.plan.presence import given
from holdfast.runtime.plan.windows import HoppingWindow, SessionWindow, TumblingWindow, WindowExpression, shape
from holdfast.runtime.serdes.window import end_sql
from holdfast.runtime.spark.fragment import BAD, LATE, SKIPPED, TS, Fragment, column
from holdfast.runtime.spark.relation import StreamRelation
from holdfast.runtime.store.port import Layout, Merge
from holdfast.types import Scalar

DAY_MS = 86_400_000

STREAM_TIME = Layout((Scalar.INTEGER,), (Scalar.BIGINT,))
"""The state that keeps stream time: partition, greatest timestamp."""
STREAM_TIME_MERGE = Merge(initial=("CAST(NULL AS BIGINT)",), merged=("greatest(s0, p0)",))


@dataclass(frozen=True, slots=True)
class Timed:
    """A stream whose rows know the stream time (`st`) at which they came, by one clock (`clk`) of several.

    Partitions have a clock each. Where a key's rows can come from any of them there is one for all, and what comes in
    a tick comes in the order of its timestamps.
    """

    source: StreamRelation
    by_partition: bool = True

    @property
    def clocked(self) -> str:
        return f"SELECT *, {'part' if self.by_partition else 'CAST(0 AS INT)'} AS clk FROM ({self.source.sql})"

    @property
    def order(self) -> str:
        """The order in which rows come."""
        return "off" if self.by_partition else "ts, part, off"

    def fragment(self, before: str, late: str) -> Fragment:
        """The stream time that the tick reaches, by clock, and how many rows came late or are skipped:
        `k0, p0, ts, late, bad, skipped`."""
        # Bad rows are apart: a clock must not be left out for one.
        counts = f"count_if(bad = 0 AND {late}) AS late, bad, count(*) AS skipped"
        sql = f"SELECT clk AS k0, max(st) AS p0, max(ts) AS ts, {counts} FROM ({self.sql(before)}) GROUP BY clk, bad"
        columns = (column("k0", Scalar.INTEGER), column("p0", Scalar.BIGINT), TS, LATE, BAD, SKIPPED)
        return Fragment(sql, columns, tells=True, late_by=(self.partition("k0"), "p0"))

    def partition(self, clock: str) -> str | None:
        """The column of a clock, where that is of one partition."""
        return clock if self.by_partition else None

    def sql(self, before: str) -> str:
        """The rows with `st` and `clk`; the view `before` has the stream time of clocks before the tick."""
        so_far = (
            "max(IF(bad = 0, ts, NULL)) OVER "
            f"(PARTITION BY clk ORDER BY {self.order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
        )
        chosen = [*self.source.keys, *self.source.values, *self.source.bare]
        return (
            f"SELECT {', '.join(chosen)}, clk, greatest(so_far, b_time) AS st "
            f"FROM (SELECT *, {so_far} AS so_far FROM ({self.clocked})) s LEFT JOIN "
            f"(SELECT k0 AS b_clock, c0 AS b_time FROM {before}) b ON clk = b_clock"
        )


def grace_of(window: WindowExpression) -> int:
    """How long after its end a window takes late rows, in milliseconds."""
    given_grace, retention = given(window.grace_period), given(window.retention)
    if given_grace is not None:
        return given_grace.millis
    kept = DAY_MS if retention is None else min(DAY_MS, retention.millis)
    return max(kept - length_of(window), 0)


def length_of(window: WindowExpression) -> int:
    """The size of a window, or the gap that ends it, in milliseconds."""
    return window.gap.millis if isinstance(window, SessionWindow) else window.size.millis


def expired_after(window: WindowExpression) -> int | None:
    """A window is gone when its end is this much before stream time; a time window's retention is from its start."""
    retention = given(window.retention)
    if retention is None:
        return None
    return retention.millis if isinstance(window, SessionWindow) else max(retention.millis - window.size.millis, 0)


def is_late(window: WindowExpression) -> str:
    """The condition that a row comes after the last of its windows has closed. Of sessions only the fold knows."""
    if isinstance(window, SessionWindow):
        return "false"
    advance = window.advance_by.millis if isinstance(window, HoppingWindow) else window.size.millis
    return f"ts div {advance} * {advance} + {window.size.millis} <= st - {grace_of(window)}"


def build_windows(window: TumblingWindow | HoppingWindow, timed: Timed, before: str) -> StreamRelation:
    """The rows by window: the key is followed by its start and its end."""
    source, size, grace = timed.source, window.size.millis, grace_of(window)
    advance = window.advance_by.millis if isinstance(window, HoppingWindow) else size
    first = f"greatest(ts - {size} + {advance}, 0) div {advance} * {advance}"
    starts = f"explode(IF(bad > 0, array(0L), sequence({first}, ts, {advance}L)))"
    count = len(source.key)
    keys = [*source.keys, f"ws AS k{count}", f"{end_sql('ws', size)} AS k{count + 1}"]
    inner = f"SELECT *, {starts} AS ws FROM ({timed.sql(before)})"
    chosen = [*keys, *source.values, *source.bare, "clk"]
    sql = f"SELECT {', '.join(chosen)} FROM ({inner}) WHERE bad > 0 OR ws + {size} > st - {grace}"
    return replace(source, sql=sql, headers=False, window=shape(window))
