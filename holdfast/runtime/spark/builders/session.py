"""Session windows: rows of a key that follow each other within a gap form one window.

The rows of a key are folded over its sessions in the order of arrival. A row merges the sessions within the gap that
are open at its stream time into one. If there are none, it starts a session, unless it is late. So a tick of many rows
has the same result as many ticks of one row.
"""

from dataclasses import dataclass, replace

from holdfast.runtime import physical_columns as col
from holdfast.runtime.fragment import BAD, OFF, PART, TS, Fragment, column, key_columns, value_columns
from holdfast.runtime.plan.windows import SessionWindow, grace_of, shape
from holdfast.runtime.spark.builders.window import Timed
from holdfast.runtime.spark.builders.window_elements import Elements
from holdfast.runtime.spark.relation import StreamRelation
from holdfast.types import Scalar

SESSION = "STRUCT<s: BIGINT, e: BIGINT, i: INT, j: INT, os: ARRAY<BIGINT>, oe: ARRAY<BIGINT>>"
"""Start and end, the indexes of its first and last row in the tick (NULL if none), and the elements it absorbs."""


@dataclass(frozen=True, slots=True)
class SessionStage:
    """A grouped stream by sessions."""

    window: SessionWindow
    timed: Timed

    @property
    def source(self) -> StreamRelation:
        return self.timed.source

    @property
    def gap(self) -> int:
        return self.window.gap.millis

    @property
    def closed_after(self) -> int:
        """A session is closed when its end is at least this many milliseconds before stream time."""
        return self.gap + grace_of(self.window) + 1

    @property
    def relation(self) -> StreamRelation:
        """The rows as an aggregation sees them: the key is followed by the bounds of the session."""
        return replace(self.source, sql="", headers=False, window=shape(self.window))

    @property
    def position_columns(self) -> tuple[str, ...]:
        return ("part", "off", "at") if self.source.ordered else ("part", "off")

    def saved_rows(self, before: str) -> Fragment:
        """All rows with their order (`ord`) and the end up to which sessions are closed (`shut`)."""
        n = len(self.source.key)
        keys = [*self.source.keys, f"clk AS {col.key(n)}"]
        order = f"row_number() OVER (PARTITION BY {', '.join([*self.source.keys, 'clk'])} ORDER BY {self.timed.order})"
        chosen = [*keys, *self.source.values, "ts", *self.position_columns, f"{order} AS ord"]
        chosen += [f"st - {self.closed_after} AS shut", "bad"]
        columns = key_columns((*self.source.key_types, Scalar.INTEGER))
        columns += value_columns(c.type for c in self.source.value)
        extra = [column("ord", Scalar.INTEGER), column("shut", Scalar.BIGINT)]
        extra += [column("at", Scalar.BIGINT)] if self.source.ordered else []
        return Fragment(
            f"SELECT {', '.join(chosen)} FROM ({self.timed.sql(before)})", (*columns, TS, PART, OFF, *extra, BAD)
        )

    def fragment(self, elements: Elements, rows: str, stored: str) -> Fragment:
        """The partials of the sessions that rows fall in; the view `stored` has the elements of their keys.

        Late rows are in no session: they are counted in a row without bounds, whose `ts` is the stream time.
        """
        n = elements.width
        keys = self._keys
        chosen = [keys, f"x.s AS {col.key(n + 1)}", f"x.e AS {col.key(n + 2)}", *elements.partials]
        chosen += [f"coalesce(x.e, max(shut) + {self.closed_after}) AS ts", "x.os AS o_start", "x.oe AS o_end"]
        chosen += ["count_if(x IS NULL) AS late", "0 AS bad"]
        sql = f"SELECT {', '.join(chosen)} FROM ({self._assigned(rows, stored)}) GROUP BY {keys}, x"
        return Fragment(sql, elements.columns, late_by=(self.timed.partition(col.key(n)), col.ROW_TIME))

    @property
    def _keys(self) -> str:
        """The key of a group, followed by its clock."""
        return ", ".join(col.keys(len(self.source.key) + 1))

    def _assigned(self, rows: str, stored: str) -> str:
        """Each row with its session `x`, NULL if the row is late."""
        folded = f"SELECT {self._keys}, rows, {self._fold} AS f FROM ({self._known(rows, stored)})"
        indexed = f"SELECT {self._keys}, f.w AS w, f.t AS t, posexplode(rows) AS (i, r) FROM ({folded})"
        session = (
            "IF(substring(t, i + 1, 1) = '1', element_at(array_sort(filter("
            "w, x -> x.s <= r.ts AND r.ts <= x.e AND x.i <= i AND i <= x.j), (a, b) -> a.j - b.j), 1), NULL) AS x"
        )
        values = ", ".join(
            f"r.{name} AS {name}" for name in ("ts", "shut", *self.position_columns, *self.source.values)
        )
        return f"SELECT {self._keys}, {values}, true AS present, 0 AS bad, {session} FROM ({indexed})"

    def _known(self, rows: str, stored: str) -> str:
        """Each group with its `rows` in the tick, in order, and its stored sessions (`known`)."""
        n = len(self.source.key)
        row = ", ".join(["ord", "ts", "shut", *self.position_columns, *self.source.values])
        listed = f"array_sort(collect_list(struct({row})), (l, r) -> CAST(l.ord - r.ord AS INT)) AS rows"
        start, end = col.key(n + 1), col.key(n + 2)
        session = (
            f"named_struct('s', {start}, 'e', {end}, 'i', CAST(NULL AS INT), 'j', CAST(NULL AS INT), "
            f"'os', array({start}), 'oe', array({end}))"
        )
        group = ", ".join(f"{col.key(i)} AS g{i}" for i in range(n + 1))
        same = " AND ".join(f"{col.key(i)} = g{i}" for i in range(n + 1))
        return (
            f"SELECT {self._keys}, rows, coalesce(known, CAST(array() AS ARRAY<{SESSION}>)) AS known "
            f"FROM (SELECT {self._keys}, {listed} FROM {rows} GROUP BY {self._keys}) LEFT JOIN "
            f"(SELECT {group}, collect_list({session}) AS known FROM {stored} GROUP BY {self._keys}) ON {same}"
        )

    @property
    def _fold(self) -> str:
        """The sessions after all rows (`w`), and for each row whether it is in one (`t`)."""
        near = f"x.e >= r.shut + 1 AND x.e >= r.ts - {self.gap} AND x.s <= r.ts + {self.gap}"
        merged = (
            "named_struct("
            "'s', least(r.ts, array_min(transform(n, x -> x.s))), "
            "'e', greatest(r.ts, array_max(transform(n, x -> x.e))), "
            "'i', coalesce(array_min(transform(n, x -> x.i)), length(a.t)), 'j', length(a.t), "
            "'os', flatten(transform(n, x -> x.os)), 'oe', flatten(transform(n, x -> x.oe)))"
        )
        accepted = f"named_struct('w', concat(filter(a.w, x -> NOT ({near})), array({merged})), 't', concat(a.t, '1'))"
        late = "named_struct('w', a.w, 't', concat(a.t, '0'))"
        step = (
            f"transform(array(filter(a.w, x -> {near})), n -> IF(r.ts > r.shut OR size(n) > 0, {accepted}, {late}))[0]"
        )
        return f"aggregate(rows, named_struct('w', known, 't', ''), (a, r) -> {step})"
