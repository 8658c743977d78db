"""Which rows meet in a stream-stream join, what comes of it, and what is kept for later."""

from dataclasses import dataclass

from holdfast.runtime.spark.builders.join import named_key
from holdfast.runtime.spark.builders.stream_join import JoinSide, StreamJoin, typed
from holdfast.runtime.spark.fragment import HDR, PART, PRESENT, TS, Fragment, column
from holdfast.runtime.spark.relation import StreamRelation
from holdfast.types import Scalar

PLACE = ("at", "src", "part", "n", "side")
"""The order in which the rows of a tick come. A result has the place and the headers of the row that brings it."""
SAME_ROW = "w.tick = m.tick AND w.part = m.part AND w.n = m.n"


@dataclass(frozen=True, slots=True)
class Meetings:
    """SQL over the views of a tick: what arrived, and by side what is kept of its keys and what the time has passed.

    `pairs` is a view of the rows that meet, where a stage has held them.
    """

    join: StreamJoin
    here: str
    kept: tuple[str, ...]
    due: tuple[str | None, ...]
    pairs: str | None = None

    @property
    def brought(self) -> tuple[str, ...]:
        """What a result has from the row that brings it."""
        return (*PLACE, *self.join.headers)

    def _arrived(self, alias: str) -> str:
        return f"struct({', '.join(f'{alias}.{name}' for name in self.brought)})"

    # -- rows that meet ------------------------------------------------------------------------------

    def meeting(self) -> Fragment:
        """The rows that meet: of each row of the tick, those of the other side that came before it."""
        join = self.join
        columns = [column(f"k{i}", type_) for i, type_ in enumerate(join.left.key_types)]
        columns += [c for side in join.sides for _, c in typed(side)]
        longs, numbers = ("at", "n", "tick", "o_ts", "o_tick", "o_n", "ends_l", "ends_r"), ("src", "side", "o_part")
        columns += [TS, PART, *(column(name, Scalar.BIGINT) for name in longs)]
        columns += [*(column(name, Scalar.INTEGER) for name in numbers), column("o_waits", Scalar.BOOLEAN)]
        columns += [HDR] if join.headers else []
        return Fragment(" UNION ALL ".join(map(self._meet, join.sides)), tuple(columns))

    def _pairs(self) -> str:
        return self.pairs or f"({self.meeting().sql})"

    def _meet(self, side: JoinSide) -> str:
        """A side's rows `a` beside those `o` of the other one."""
        join = self.join
        other = join.sides[1 - side.number]
        values = [f"{'ao'[s == other]}.{name}" for s in join.sides for name in s.columns]
        own = [f"a.{name}" for name in (*self.brought, "tick", "ends_l", "ends_r")]
        met = [f"o.{name} AS o_{name}" for name in ("ts", "tick", "part", "n", "waits")]
        chosen = [*(f"a.{key}" for key in join.keys), *values, "greatest(a.ts, o.ts) AS ts", *own, *met]
        same = " AND ".join(f"a.{key} = o.{key}" for key in join.keys)
        near = f"o.ts BETWEEN a.ts - {side.back} AND a.ts + {side.ahead}"
        still = f"o.ts > coalesce(a.other - {join.retention}, -1)"
        first, then = (f"struct({', '.join(f'{alias}.{name}' for name in PLACE)})" for alias in "oa")
        return (
            f"SELECT {', '.join(chosen)} FROM (SELECT * FROM {self.here} WHERE side = {side.number}) a "
            f"JOIN ({self._elements(other)}) o ON {same} AND {near} AND {still} "
            f"AND (o.old OR {first} < {then})"
        )

    def _elements(self, side: JoinSide) -> str:
        """What a side has: rows that are kept, and rows of the tick."""
        place = "CAST(NULL AS BIGINT) AS at, CAST(NULL AS INT) AS src"
        new = [*self.join.keys, "tick", "part", "n", *side.columns, "ts", "true AS waits", "false AS old", "at", "src"]
        return (
            f"SELECT *, {place}, {side.number} AS side FROM ({self._kept(side)}) UNION ALL "
            f"SELECT {', '.join(new)}, side FROM {self.here} "
            f"WHERE side = {side.number} AND ts > own - {self.join.retention}"
        )

    def _kept(self, side: JoinSide, view: str | None = None) -> str:
        """Rows of a side's state; `waits` tells of which it is to be known that nothing meets them."""
        join, width = self.join, len(self.join.keys)
        keys = [*join.keys, f"k{width} AS tick", f"k{width + 1} AS part", f"k{width + 2} AS n"]
        values = [f"c{i} AS {name}" for i, name in enumerate(side.columns)]
        waits = f"c{len(values)}" if join.waits(side) else "false"
        chosen = ", ".join([*keys, *values, "ts", f"{waits} AS waits", "true AS old"])
        return f"SELECT {chosen} FROM {view or self.kept[side.number]}"

    # -- what comes of it ----------------------------------------------------------------------------

    def result(self) -> StreamRelation:
        """The joined rows, each at the place of the row that brings it."""
        join = self.join
        values = [name for side in join.sides for name in side.columns]
        order = f"ORDER BY {', '.join(PLACE)}, phase, o_ts, o_side, o_key, o_tick, o_part, o_n"
        chosen = [*join.keys, *(f"{name} AS c{i}" for i, name in enumerate(values)), "true AS present", "ts", "part"]
        chosen += [f"CAST(row_number() OVER (PARTITION BY part {order}) AS BIGINT) AS off", "0 AS bad", *join.headers]
        placed = ", ".join([*join.keys, *values, "ts", *self.brought])
        parts = [
            f"SELECT {placed}, 1 AS phase, o_ts, 0 AS o_side, NULL AS o_key, o_tick, o_part, o_n FROM {self._pairs()}"
        ]
        parts += [self._alone(side) for side in join.sides if side.outer]
        parts += [self._given_up(side) for side in join.sides if join.waits(side)]
        sql = f"SELECT {', '.join(chosen)} FROM ({' UNION ALL '.join(parts)})"
        key = named_key(join.left.key, join.step.key_column_name)
        return StreamRelation(
            sql, key, join.left.value + join.right.value, headers=bool(join.headers), window=join.left.window
        )

    def puts(self, side: JoinSide) -> Fragment:
        """What becomes of a side's state: `k0.., c0.., ts, present`."""
        layout = self.join.layout(side)
        columns = [column(f"k{i}", t) for i, t in enumerate(layout.key)]
        columns += [column(f"c{i}", t) for i, t in enumerate(layout.value)]
        return Fragment(self._puts(side), (*columns, TS, PRESENT))

    def _puts(self, side: JoinSide) -> str:
        """The new rows, and of those that waited the ones that do no more."""
        join, width = self.join, len(self.join.keys)
        keys = [*join.keys, f"tick AS k{width}", f"part AS k{width + 1}", f"n AS k{width + 2}"]
        values = [f"{name} AS c{i}" for i, name in enumerate(side.columns)]
        kept = f"ts >= ends_{side.prefix} - {join.retention}"
        if not join.waits(side):
            chosen = ", ".join([*keys, *values, "ts", "true AS present"])
            return f"SELECT {chosen} FROM {self.here} WHERE side = {side.number} AND {kept}"
        values.append(f"waiting AS c{len(values)}")
        chosen = ", ".join([*keys, *values, "ts", "true AS present"])
        waiting = "waits AND met_at IS NULL AND given_up_at IS NULL AS waiting"
        new = f"SELECT *, {waiting} FROM ({self._fates(side)}) WHERE NOT old"
        old = (
            f"SELECT w.*, m.ends_{side.prefix}, false AS waiting "
            f"FROM (SELECT * FROM ({self._kept(side)}) WHERE waits) w JOIN ({self._met(side)}) m ON {SAME_ROW}"
        )
        return f"SELECT {chosen} FROM ({new}) WHERE {kept} UNION ALL SELECT {chosen} FROM ({old}) WHERE {kept}"

    # -- rows that nothing meets ---------------------------------------------------------------------

    def _alone(self, side: JoinSide) -> str:
        """Rows that meet nothing when they come, and do not wait."""
        late = f" AND a.st > a.ts + {side.ahead + self.join.grace}" if self.join.deferred else ""
        keys = ", ".join(f"a.{key}" for key in self.join.keys)
        values = "".join(f"{value}, " for value in self._values(side, "a"))
        place = ", ".join(f"a.{name}" for name in self.brought)
        return (
            f"SELECT {keys}, {values}a.ts, {place}, 1 AS phase, a.ts AS o_ts, 0 AS o_side, NULL AS o_key, "
            f"a.tick AS o_tick, a.part AS o_part, a.n AS o_n FROM {self.here} a "
            f"LEFT ANTI JOIN ({self._not_alone(side)}) m ON a.part = m.part AND a.n = m.n "
            f"WHERE a.side = {side.number}{late}"
        )

    def _given_up(self, side: JoinSide) -> str:
        """Rows that have waited until the time passed them, at the place of the row that brought the time."""
        place = ", ".join(f"w.given_up_at.{name}" for name in self.brought)
        keys = ", ".join(f"w.{key}" for key in self.join.keys)
        values = "".join(f"{value}, " for value in self._values(side, "w"))
        return (
            f"SELECT {keys}, {values}w.ts, {place}, 0 AS phase, w.ts AS o_ts, {1 - side.number} AS o_side, "
            f"struct({keys}) AS o_key, w.tick AS o_tick, w.part AS o_part, w.n AS o_n FROM ({self._fates(side)}) w "
            f"WHERE waits AND given_up_at IS NOT NULL AND (met_at IS NULL OR met_at > given_up_at)"
        )

    def _values(self, side: JoinSide, alias: str) -> list[str]:
        """A row's values, and nulls for those of the other side."""
        return [
            f"{alias}.{name}" if found.number == side.number else f"CAST(NULL AS {c.spark}) AS {name}"
            for found in self.join.sides
            for name, c in typed(found)
        ]

    def _not_alone(self, side: JoinSide) -> str:
        """The new rows of a side that meet something when they come."""
        return f"SELECT DISTINCT part, n FROM {self._pairs()} WHERE side = {side.number}"

    def _met(self, side: JoinSide) -> str:
        """The rows of a side that waited and that rows of the other one meet, with the place of the first of these."""
        return (
            f"SELECT o_tick AS tick, o_part AS part, o_n AS n, min(struct({', '.join(self.brought)})) AS met_at, "
            f"max(ends_{side.prefix}) AS ends_{side.prefix} FROM {self._pairs()} "
            f"WHERE side = {1 - side.number} AND o_waits GROUP BY o_tick, o_part, o_n"
        )

    def _fates(self, side: JoinSide) -> str:
        """What becomes of new rows, and of those that waited and that the time has passed.

        `waits` when they met nothing so far; `met_at` and `given_up_at` are the places in the tick where that ends.
        """
        join, due = self.join, self.due[side.number]
        assert due is not None
        limit = side.ahead + join.grace
        new = [*join.keys, "a.tick", "a.part", "a.n", *side.columns, "a.ts"]
        new += [f"m.n IS NULL AND a.st <= a.ts + {limit} AS waits", "false AS old", f"a.ends_{side.prefix}"]
        rows = (
            f"SELECT *, CAST(NULL AS BIGINT) AS ends_{side.prefix} FROM ({self._kept(side, due)}) WHERE waits "
            f"UNION ALL SELECT {', '.join(new)} FROM {self.here} a "
            f"LEFT JOIN ({self._not_alone(side)}) m ON a.part = m.part AND a.n = m.n WHERE a.side = {side.number}"
        )
        # The first step of the stream time beyond a row's limit is the first one that is sorted behind it.
        steps = (
            f"SELECT *, ts + {limit} AS time, 1 AS kind, NULL AS place FROM ({rows}) UNION ALL "
            f"SELECT {self._step(side)}, st, 0, {self._arrived('a')} FROM {self.here} a"
        )
        behind = "PARTITION BY part ORDER BY time, kind ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"
        passed = f"SELECT *, min(place) OVER ({behind}) AS given_up_at FROM ({steps})"
        return (
            f"SELECT w.*, m.met_at FROM (SELECT * FROM ({passed}) WHERE kind = 1) w "
            f"LEFT JOIN ({self._met(side)}) m ON {SAME_ROW}"
        )

    def _step(self, side: JoinSide) -> str:
        """A row of the tick in the place of a row that waits: only its partition counts."""
        nothing = [*("NULL" for _ in self.join.keys), "NULL", "part", "NULL", *("NULL" for _ in side.columns)]
        return ", ".join([*nothing, "NULL", "NULL", "NULL", "NULL"])
