"""The matches of a stream-stream join, its results, and the rows that it stores for later.

Each method returns the SQL of one relation:

| relation | rows |
|---|---|
| arrivals | the rows of the tick, in order (`StreamJoin.arrivals`) |
| stored | rows of a side's state |
| candidates | rows of a side that can match: stored ones, and those of the tick |
| pairs | rows that match |
| matched | arrivals that have a match on arrival |
| unmatched | arrivals that have no match and do not wait for one |
| outcomes | arrivals and waiting stored rows, with the positions at which they match or expire |
| expired | rows whose window ended before anything matched them |
"""

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.runtime import physical_columns as col
from holdfast.runtime.fragment import HDR, PART, PRESENT, TS, Fragment, column, key_columns, value_columns
from holdfast.runtime.spark.builders.join import named_key
from holdfast.runtime.spark.builders.stream_join import JoinSide, StreamJoin, typed
from holdfast.runtime.spark.relation import StreamRelation
from holdfast.types import Scalar

POSITION = ("at", "src", "part", "n", "side")
"""The order of the rows of a tick. A result has the position and the headers of the row that triggers it."""
RANK = ("phase", "o_ts", "o_side", "o_key", "o_tick", "o_part", "o_n")
"""The order of the results that one row triggers: expired rows first, then matches by the time of the other row."""
SAME_ROW = "w.tick = m.tick AND w.part = m.part AND w.n = m.n"


@dataclass(frozen=True, slots=True)
class StreamMatches:
    """SQL over the views of a tick: `arrivals` and, by side, the `stored` rows of their keys and the `expired` rows.

    `pairs` is a view of the matching rows, if an earlier stage saved them.
    """

    join: StreamJoin
    arrivals: str
    stored: tuple[str, ...]
    expired: tuple[str | None, ...]
    pairs: str | None = None

    @property
    def trigger(self) -> tuple[str, ...]:
        """The columns that a result takes from the row that triggers it."""
        return (*POSITION, *self.join.headers)

    # -- pairs ---------------------------------------------------------------------------------------

    def pairs_fragment(self) -> Fragment:
        """The pairs: each row of the tick with the rows of the other side that came before it."""
        join = self.join
        columns = key_columns(join.left.key_types)
        columns += [c for side in join.sides for _, c in typed(side)]
        longs, numbers = ("at", "n", "tick", "o_ts", "o_tick", "o_n", "ends_l", "ends_r"), ("src", "side", "o_part")
        columns += [TS, PART, *(column(name, Scalar.BIGINT) for name in longs)]
        columns += [*(column(name, Scalar.INTEGER) for name in numbers), column("o_waits", Scalar.BOOLEAN)]
        columns += [HDR] if join.headers else []
        return Fragment(_union_all(self._pairs_of(side) for side in join.sides), tuple(columns))

    def _pairs(self) -> str:
        return self.pairs or f"({self.pairs_fragment().sql})"

    def _pairs_of(self, side: JoinSide) -> str:
        """A side's arrivals `a` joined with the candidates `o` of the other side."""
        join = self.join
        other = join.sides[1 - side.number]
        values = [f"{'ao'[s == other]}.{name}" for s in join.sides for name in s.columns]
        arrival = _of("a", (*self.trigger, "tick", "ends_l", "ends_r"))
        matched = [f"o.{name} AS o_{name}" for name in ("ts", "tick", "part", "n", "waits")]
        chosen = [*_of("a", join.keys), *values, "greatest(a.ts, o.ts) AS ts", *arrival, *matched]
        conditions = [
            *(f"a.{key} = o.{key}" for key in join.keys),
            f"o.ts BETWEEN a.ts - {side.back} AND a.ts + {side.ahead}",
            f"o.ts > coalesce(a.other - {join.retention}, -1)",
            f"(o.old OR {_struct('o', POSITION)} < {_struct('a', POSITION)})",
        ]
        return (
            f"SELECT {', '.join(chosen)} FROM (SELECT * FROM {self.arrivals} WHERE side = {side.number}) a "
            f"JOIN ({self._candidates(other)}) o ON {' AND '.join(conditions)}"
        )

    def _candidates(self, side: JoinSide) -> str:
        """The rows of a side that can match: stored ones, and those of the tick."""
        position = f"CAST(NULL AS BIGINT) AS at, CAST(NULL AS INT) AS src, {side.number} AS side"
        stored = f"SELECT *, {position} FROM ({self._stored(side, self.stored[side.number])})"
        row = [*self.join.keys, "tick", "part", "n", *side.columns, "ts", "true AS waits", "false AS old"]
        arrived = (
            f"SELECT {', '.join([*row, 'at', 'src', 'side'])} FROM {self.arrivals} "
            f"WHERE side = {side.number} AND ts > own - {self.join.retention}"
        )
        return _union_all((stored, arrived))

    def _stored(self, side: JoinSide, view: str) -> str:
        """Rows of a side's state; `waits` says whether a row has had no match yet, if rows of the side wait."""
        join, width = self.join, len(self.join.keys)
        keys = [*join.keys, f"{col.key(width)} AS tick", f"{col.key(width + 1)} AS part", f"{col.key(width + 2)} AS n"]
        values = [f"{col.value(i)} AS {name}" for i, name in enumerate(side.columns)]
        waits = col.value(len(values)) if join.waits(side) else "false"
        chosen = ", ".join([*keys, *values, "ts", f"{waits} AS waits", "true AS old"])
        return f"SELECT {chosen} FROM {view}"

    # -- results -------------------------------------------------------------------------------------

    def result(self) -> StreamRelation:
        """The joined rows, each at the position of the row that triggers it."""
        join = self.join
        names = [name for side in join.sides for name in side.columns]
        values = [f"{name} AS {col.value(i)}" for i, name in enumerate(names)]
        number = f"row_number() OVER (PARTITION BY part ORDER BY {', '.join([*POSITION, *RANK])})"
        chosen = [*join.keys, *values, "true AS present", "ts", "part", f"CAST({number} AS BIGINT) AS off", "0 AS bad"]
        row = [*join.keys, *names, "ts", *self.trigger]
        rank = ["1 AS phase", "o_ts", "0 AS o_side", "NULL AS o_key", "o_tick", "o_part", "o_n"]
        relations = [f"SELECT {', '.join([*row, *rank])} FROM {self._pairs()}"]
        relations += [self._unmatched(side) for side in join.sides if side.outer]
        relations += [self._expired(side) for side in join.sides if join.waits(side)]
        sql = f"SELECT {', '.join([*chosen, *join.headers])} FROM ({_union_all(relations)})"
        key = named_key(join.left.key, join.step.key_column_name)
        value = join.left.value + join.right.value
        return StreamRelation(sql, key, value, headers=bool(join.headers), window=join.left.window)

    def _unmatched(self, side: JoinSide) -> str:
        """Arrivals that have no match and do not wait for one."""
        late = f" AND a.st > a.ts + {side.ahead + self.join.grace}" if self.join.deferred else ""
        row = [*_of("a", self.join.keys), *self._values(side, "a"), "a.ts", *_of("a", self.trigger)]
        rank = ["1 AS phase", "a.ts AS o_ts", "0 AS o_side", "NULL AS o_key"]
        rank += ["a.tick AS o_tick", "a.part AS o_part", "a.n AS o_n"]
        return (
            f"SELECT {', '.join([*row, *rank])} FROM {self.arrivals} a "
            f"LEFT ANTI JOIN ({self._matched(side)}) m ON a.part = m.part AND a.n = m.n "
            f"WHERE a.side = {side.number}{late}"
        )

    def _matched(self, side: JoinSide) -> str:
        """Arrivals of a side that have a match on arrival."""
        return f"SELECT DISTINCT part, n FROM {self._pairs()} WHERE side = {side.number}"

    def _expired(self, side: JoinSide) -> str:
        """Rows whose window ended without a match, at the position of the row that moved the time past it."""
        keys = _of("w", self.join.keys)
        row = [*keys, *self._values(side, "w"), "w.ts", *_of("w.given_up_at", self.trigger)]
        rank = ["0 AS phase", "w.ts AS o_ts", f"{1 - side.number} AS o_side", f"struct({', '.join(keys)}) AS o_key"]
        rank += ["w.tick AS o_tick", "w.part AS o_part", "w.n AS o_n"]
        return (
            f"SELECT {', '.join([*row, *rank])} FROM ({self._outcomes(side)}) w "
            f"WHERE waits AND given_up_at IS NOT NULL AND (met_at IS NULL OR met_at > given_up_at)"
        )

    def _values(self, side: JoinSide, alias: str) -> list[str]:
        """A row's values, and nulls for those of the other side."""
        return [
            f"{alias}.{name}" if found.number == side.number else f"CAST(NULL AS {c.spark}) AS {name}"
            for found in self.join.sides
            for name, c in typed(found)
        ]

    # -- stored rows ---------------------------------------------------------------------------------

    def puts(self, side: JoinSide) -> Fragment:
        """What the tick writes to a side's state: `k0.., c0.., ts, present`."""
        layout = self.join.layout(side)
        columns = [*key_columns(layout.key), *value_columns(layout.value)]
        return Fragment(self._puts(side), (*columns, TS, PRESENT))

    def _puts(self, side: JoinSide) -> str:
        """The arrivals, and stored rows that no longer wait."""
        join, width = self.join, len(self.join.keys)
        keys = [*join.keys, f"tick AS {col.key(width)}", f"part AS {col.key(width + 1)}", f"n AS {col.key(width + 2)}"]
        values = [f"{name} AS {col.value(i)}" for i, name in enumerate(side.columns)]
        retained = f"ts >= ends_{side.prefix} - {join.retention}"
        if not join.waits(side):
            chosen = ", ".join([*keys, *values, "ts", "true AS present"])
            return f"SELECT {chosen} FROM {self.arrivals} WHERE side = {side.number} AND {retained}"
        values.append(f"waiting AS {col.value(len(values))}")
        chosen = ", ".join([*keys, *values, "ts", "true AS present"])
        waiting = "waits AND met_at IS NULL AND given_up_at IS NULL AS waiting"
        new = f"SELECT *, {waiting} FROM ({self._outcomes(side)}) WHERE NOT old"
        waited = f"SELECT * FROM ({self._stored(side, self.stored[side.number])}) WHERE waits"
        old = (
            f"SELECT w.*, m.ends_{side.prefix}, false AS waiting "
            f"FROM ({waited}) w JOIN ({self._first_matches(side)}) m ON {SAME_ROW}"
        )
        return _union_all(f"SELECT {chosen} FROM ({rows}) WHERE {retained}" for rows in (new, old))

    def _first_matches(self, side: JoinSide) -> str:
        """The waiting rows of a side that arrivals of the other side match, with the position of the first match."""
        return (
            f"SELECT o_tick AS tick, o_part AS part, o_n AS n, min(struct({', '.join(self.trigger)})) AS met_at, "
            f"max(ends_{side.prefix}) AS ends_{side.prefix} FROM {self._pairs()} "
            f"WHERE side = {1 - side.number} AND o_waits GROUP BY o_tick, o_part, o_n"
        )

    # -- outcomes ------------------------------------------------------------------------------------

    def _outcomes(self, side: JoinSide) -> str:
        """The arrivals of a side, and its stored rows that wait and whose window ends in this tick.

        `waits` says whether a row has had no match so far; `met_at` and `given_up_at` are the positions in the tick
        at which it gets one, and at which its window ends.
        """
        return (
            f"SELECT w.*, m.met_at FROM (SELECT * FROM ({self._with_expiry(side)}) WHERE kind = 1) w "
            f"LEFT JOIN ({self._first_matches(side)}) m ON {SAME_ROW}"
        )

    def _with_expiry(self, side: JoinSide) -> str:
        """The waiting rows (`kind` 1) among the steps of the stream time (`kind` 0), with `given_up_at`.

        The step of the stream time at which a row expires is the first one that sorts after the row's limit.
        """
        limit = side.ahead + self.join.grace
        steps = (
            f"SELECT *, ts + {limit} AS time, 1 AS kind, NULL AS place FROM ({self._waiting(side)}) UNION ALL "
            f"SELECT {self._time_step(side)}, st, 0, {_struct('a', self.trigger)} FROM {self.arrivals} a"
        )
        following = "PARTITION BY part ORDER BY time, kind ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"
        return f"SELECT *, min(place) OVER ({following}) AS given_up_at FROM ({steps})"

    def _waiting(self, side: JoinSide) -> str:
        join, view = self.join, self.expired[side.number]
        assert view is not None
        limit = side.ahead + join.grace
        new = [*join.keys, "a.tick", "a.part", "a.n", *side.columns, "a.ts"]
        new += [f"m.n IS NULL AND a.st <= a.ts + {limit} AS waits", "false AS old", f"a.ends_{side.prefix}"]
        return (
            f"SELECT *, CAST(NULL AS BIGINT) AS ends_{side.prefix} FROM ({self._stored(side, view)}) WHERE waits "
            f"UNION ALL SELECT {', '.join(new)} FROM {self.arrivals} a "
            f"LEFT JOIN ({self._matched(side)}) m ON a.part = m.part AND a.n = m.n WHERE a.side = {side.number}"
        )

    def _time_step(self, side: JoinSide) -> str:
        """An arrival with the columns of a waiting row; all are NULL except the partition."""
        columns = [*("NULL" for _ in self.join.keys), "NULL", "part", "NULL", *("NULL" for _ in side.columns)]
        return ", ".join([*columns, "NULL", "NULL", "NULL", "NULL"])


def _of(alias: str, names: Iterable[str]) -> list[str]:
    return [f"{alias}.{name}" for name in names]


def _struct(alias: str, names: Iterable[str]) -> str:
    return f"struct({', '.join(_of(alias, names))})"


def _union_all(relations: Iterable[str]) -> str:
    return " UNION ALL ".join(relations)
