"""Windows of a grouped stream: each row becomes one row per window that it falls in and that is still open.

A window is closed once the stream time, the greatest timestamp so far, has passed its end and its grace period. Stream
time is per partition and across keys. It is the state of a query; within a tick it grows row by row.
"""

from dataclasses import dataclass, replace

from holdfast.runtime.plan.presence import given
from holdfast.runtime.plan.windows import HoppingWindow, TumblingWindow, shape
from holdfast.runtime.serdes.window import end_sql
from holdfast.runtime.spark.fragment import BAD, TS, Fragment, column
from holdfast.runtime.spark.relation import REST, StreamRelation
from holdfast.runtime.store.port import Layout, Merge
from holdfast.types import Scalar

DAY_MS = 86_400_000

STREAM_TIME = Layout((Scalar.INTEGER,), (Scalar.BIGINT,))
"""The state that keeps stream time: partition, greatest timestamp."""
STREAM_TIME_MERGE = Merge(initial=("CAST(NULL AS BIGINT)",), merged=("greatest(s0, p0)",))


@dataclass(frozen=True, slots=True)
class Timed:
    """A stream whose rows know the stream time (`st`) at which they came."""

    source: StreamRelation

    def fragment(self) -> Fragment:
        """The stream time that the tick reaches, by partition: `k0, p0, ts, bad`."""
        best = "max(IF(bad = 0, ts, NULL))"
        sql = f"SELECT part AS k0, {best} AS p0, {best} AS ts, max(bad) AS bad FROM ({self.source.sql}) GROUP BY part"
        return Fragment(sql, (column("k0", Scalar.INTEGER), column("p0", Scalar.BIGINT), TS, BAD))

    def sql(self, before: str) -> str:
        """The rows with `st`; the view `before` has the stream time of partitions before the tick."""
        so_far = (
            "max(IF(bad = 0, ts, NULL)) OVER "
            "(PARTITION BY part ORDER BY off ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
        )
        chosen = [*self.source.keys, *self.source.values, *REST]
        return (
            f"SELECT {', '.join(chosen)}, greatest(so_far, b_time) AS st "
            f"FROM (SELECT *, {so_far} AS so_far FROM ({self.source.sql})) s LEFT JOIN "
            f"(SELECT k0 AS b_part, c0 AS b_time FROM {before}) b ON part = b_part"
        )


def build_windows(window: TumblingWindow | HoppingWindow, source: StreamRelation, before: str) -> StreamRelation:
    """The rows by window: the key is followed by its start and its end."""
    size = window.size.millis
    advance = window.advance_by.millis if isinstance(window, HoppingWindow) else size
    given_grace = given(window.grace_period)
    grace = max(DAY_MS - size, 0) if given_grace is None else given_grace.millis
    first = f"greatest(ts - {size} + {advance}, 0) div {advance} * {advance}"
    starts = f"explode(IF(bad > 0, array(0L), sequence({first}, ts, {advance}L)))"
    count = len(source.key)
    keys = [*source.keys, f"ws AS k{count}", f"{end_sql('ws', size)} AS k{count + 1}"]
    inner = f"SELECT *, {starts} AS ws FROM ({Timed(source).sql(before)})"
    sql = (
        f"SELECT {', '.join([*keys, *source.values, *REST])} FROM ({inner}) WHERE bad > 0 OR ws + {size} > st - {grace}"
    )
    return replace(source, sql=sql, headers=False, window=shape(window))
