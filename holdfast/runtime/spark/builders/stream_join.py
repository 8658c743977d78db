"""Joins of two streams by key within a span of time.

The rows of both sides are merged into one order: each partition of a topic keeps its own order, and the partition with
the lowest time goes first. A row matches the rows of the other side that came before it. Each side's rows are stored
until the side's own time has passed them by the window and its grace period.

In an outer join, a row without a match has a result of its own: at once, or, if the step has a grace period, once
the stream time has passed the end of its window and the grace period. All times are by partition.
"""

from dataclasses import dataclass

from holdfast.errors import PlanError
from holdfast.names import StateId
from holdfast.runtime import physical_columns as col
from holdfast.runtime.fragment import (
    BAD,
    HDR,
    LATE,
    PART,
    TS,
    Fragment,
    FragmentColumn,
    column,
    key_columns,
    partial_columns,
)
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.steps import JoinType, StreamStreamJoin
from holdfast.runtime.plan.windows import DAY_MS
from holdfast.runtime.program import Elapsed
from holdfast.runtime.spark.relation import StreamRelation
from holdfast.runtime.spark.skips import Skip, marked
from holdfast.runtime.store.port import Layout, Merge
from holdfast.types import Column, Scalar

TIMES = Layout((Scalar.INTEGER,), (Scalar.BIGINT, Scalar.BIGINT, Scalar.BIGINT, Scalar.BIGINT))
"""The state of times by partition: stream time, the time of the left and the right side, and the number of ticks."""
TIMES_MERGE = Merge(
    initial=("CAST(NULL AS BIGINT)", "CAST(NULL AS BIGINT)", "CAST(NULL AS BIGINT)", "CAST(0 AS BIGINT)"),
    merged=("greatest(s0, p0)", "greatest(s1, p1)", "greatest(s2, p2)", "s3 + p3"),
)


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One side, 0 for the left. A row matches rows of the other side from `back` ms before to `ahead` ms after it."""

    number: int
    value: tuple[Column, ...]
    back: int
    ahead: int
    outer: bool

    @property
    def prefix(self) -> str:
        return "lr"[self.number]

    @property
    def columns(self) -> list[str]:
        """Its value columns in rows that have the columns of both sides."""
        return [f"{self.prefix}{i}" for i in range(len(self.value))]


@dataclass(frozen=True, slots=True)
class StreamJoin:
    """A join while it is built. With `same`, both sides read the same rows, which arrive on the left first.

    With `carry_headers`, a result has the headers of the row that triggers it.
    """

    step: StreamStreamJoin
    left: StreamRelation
    right: StreamRelation
    same: bool
    carry_headers: bool = False

    def __post_init__(self) -> None:
        if self.left.key_types != self.right.key_types:
            raise PlanError("the streams of a join have keys of different types")

    # -- settings ------------------------------------------------------------------------------------

    @property
    def sides(self) -> tuple[JoinSide, JoinSide]:
        before, after, kind = self.step.before.millis, self.step.after.millis, self.step.join_type
        return (
            JoinSide(0, self.left.value, before, after, kind in (JoinType.LEFT, JoinType.OUTER)),
            JoinSide(1, self.right.value, after, before, kind in (JoinType.RIGHT, JoinType.OUTER)),
        )

    @property
    def deferred(self) -> bool:
        """Whether unmatched rows wait for the end of their window."""
        return value_of(self.step.grace) is not None

    @property
    def grace(self) -> int:
        grace = value_of(self.step.grace)
        size = self.step.before.millis + self.step.after.millis
        return max(DAY_MS - size, 0) if grace is None else grace.millis

    @property
    def retention(self) -> int:
        return self.step.before.millis + self.step.after.millis + self.grace

    def waits(self, side: JoinSide) -> bool:
        return side.outer and self.deferred

    def reach(self, side: JoinSide) -> tuple[int, int]:
        """How far, in ms, rows of a side can be before and after the rows of the tick that they match."""
        other = self.sides[1 - side.number]
        return other.back, other.ahead

    # -- states --------------------------------------------------------------------------------------

    def layout(self, side: JoinSide) -> Layout:
        """Rows by key, then by the tick in which they arrived, their partition, and their number in it."""
        key = self.left.key_types
        value = tuple(c.type for c in side.value)
        waiting = (Scalar.BOOLEAN,) if self.waits(side) else ()
        return Layout((*key, Scalar.BIGINT, Scalar.INTEGER, Scalar.BIGINT), (*value, *waiting), len(key))

    def expired(self, side: JoinSide, times: StateId) -> Elapsed:
        # Plus one: a row must not be deleted before the time has passed it.
        return Elapsed(times, 1 + side.number, self.retention + 1, col.key(len(self.keys) + 1))

    def closed(self, side: JoinSide, times: StateId) -> Elapsed:
        """Rows whose window has closed: its end is before the stream time, by at least one millisecond."""
        return Elapsed(times, 0, side.ahead + self.grace + 1, col.key(len(self.keys) + 1))

    # -- arrivals ------------------------------------------------------------------------------------

    @property
    def keys(self) -> list[str]:
        return self.left.keys

    @property
    def headers(self) -> list[str]:
        """The headers column, if results have headers."""
        return ["hdr"] if self.carry_headers else []

    def times(self) -> Fragment:
        """The times that the tick reaches, by partition: `k0, p0.., ts, bad`."""
        maxima = [f"max(IF({condition}, ts, NULL))" for condition in ("bad = 0", _own(0), _own(1))]
        chosen = [f"{sql} AS {col.partial(i)}" for i, sql in enumerate((*maxima, "1L"))]
        sql = f"SELECT part AS k0, {', '.join(chosen)}, {maxima[0]} AS ts, bad FROM ({self._both()}) GROUP BY part, bad"
        columns = [column(col.key(0), Scalar.INTEGER), *partial_columns(TIMES.value)]
        return Fragment(sql, (*columns, TS, BAD))

    def arrivals(self, before: str) -> Fragment:
        """The rows of both sides with their position in the order, and the times at which they arrive.

        `at, src, part, n, side` is the position; `tick` counts the ticks of the partition; `st` is the stream time on
        arrival, `own` and `other` the times of the two sides; `ends_l` and `ends_r` are the times of the sides at the
        end of the tick. The view `before` has the times before the tick.
        """
        queue = "PARTITION BY bad, src, part"
        number = f"CAST(row_number() OVER ({queue}, side ORDER BY off) AS BIGINT)"
        numbered = f"SELECT *, {number} AS n, max(ts) OVER ({queue} ORDER BY off) AS at FROM ({self._both()})"
        so_far = "PARTITION BY bad, part ORDER BY at, src, n, side ROWS UNBOUNDED PRECEDING"
        running = [
            f"greatest(max({what}) OVER ({so_far}), b.{name}) AS {name}"
            for what, name in (("ts", "st"), ("IF(side = 0, ts, NULL)", "lt"), ("IF(side = 1, ts, NULL)", "rt"))
        ]
        ends = [f"max({name}) OVER (PARTITION BY bad, part) AS ends_{name[0]}" for name in ("lt", "rt")]
        known = (
            f"SELECT a.*, coalesce(b.ticks, 0) + 1 AS tick, {', '.join(running)} FROM ({numbered}) a LEFT JOIN "
            f"(SELECT k0 AS b_part, c0 AS st, c1 AS lt, c2 AS rt, c3 AS ticks FROM {before}) b ON part = b_part"
        )
        values = [name for side in self.sides for name in side.columns]
        chosen = [*self.keys, *values, *self.headers, "side", "ts", "part", "n", "src", "at", "tick", "st"]
        late = f"IF(bad = 0 AND ts <= IF(side = 0, lt, rt) - {self.retention}, 1L, 0L) AS late"
        chosen += ["IF(side = 0, lt, rt) AS own", "IF(side = 0, rt, lt) AS other", *ends, late, "bad"]
        columns = key_columns(self.left.key_types)
        columns += [column(n, c.type) for side in self.sides for n, c in zip(side.columns, side.value, strict=True)]
        columns += [*([HDR] if self.headers else ()), _number("side"), TS, PART, _long("n"), _number("src")]
        columns += [_long(name) for name in ("at", "tick", "st", "own", "other", "ends_l", "ends_r")]
        sql = f"SELECT {', '.join(chosen)} FROM ({known})"
        return Fragment(sql, (*columns, LATE, BAD), reports_skips=True, late_by=(col.PARTITION, "own"))

    def _both(self) -> str:
        """The rows of both sides. Rows without a key or a value are skipped."""
        joinable = " AND ".join(["present", *(f"{key} IS NOT NULL" for key in self.keys)])
        branches = []
        for side, source, src in ((0, self.left, 0), (1, self.right, 0 if self.same else 1)):
            values = [
                f"{col.value(i)} AS {name}" if found.number == side else f"CAST(NULL AS {c.spark}) AS {name}"
                for found in self.sides
                for i, (name, c) in enumerate(typed(found))
            ]
            headers = ["hdr" if source.headers else f"CAST(NULL AS {HDR.spark}) AS hdr" for _ in self.headers]
            chosen = [*self.keys, *values, *headers, f"{side} AS side", f"{src} AS src", "ts", "part", "off", "bad"]
            branches.append(f"SELECT {marked(chosen, joinable, Skip.NO_JOIN_KEY)} FROM ({source.sql})")
        return " UNION ALL ".join(branches)


def _own(side: int) -> str:
    return f"bad = 0 AND side = {side}"


def typed(side: JoinSide) -> list[tuple[str, FragmentColumn]]:
    """A side's value columns in rows that have the columns of both sides, with their types."""
    return [(name, column(name, c.type)) for name, c in zip(side.columns, side.value, strict=True)]


def _long(name: str) -> FragmentColumn:
    return column(name, Scalar.BIGINT)


def _number(name: str) -> FragmentColumn:
    return column(name, Scalar.INTEGER)
