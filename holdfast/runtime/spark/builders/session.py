"""Sessions: a key's rows that follow each other within a gap are one window.

Rows are taken in the order they came, folded over the sessions that their key has. A row joins the sessions within the
gap that are still open at the stream time it comes at, and makes one of them; it begins a session if there is none,
unless it is late itself. In that way a tick of many rows ends as many ticks of one do.
"""

from dataclasses import dataclass, replace

from holdfast.runtime.plan.windows import SessionWindow, shape
from holdfast.runtime.spark.builders.element import Elements
from holdfast.runtime.spark.builders.window import Timed, grace_of
from holdfast.runtime.spark.fragment import BAD, OFF, PART, TS, Fragment, column
from holdfast.runtime.spark.relation import StreamRelation
from holdfast.types import Scalar

SESSION = "STRUCT<s: BIGINT, e: BIGINT, i: INT, j: INT, os: ARRAY<BIGINT>, oe: ARRAY<BIGINT>>"
"""Start and end, the places of its first and last row in the tick (none: NULL), the elements that it is made of."""


@dataclass(frozen=True, slots=True)
class Sessions:
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
        """A session is closed when its end is this much before stream time, or more."""
        return self.gap + grace_of(self.window) + 1

    @property
    def relation(self) -> StreamRelation:
        """The rows as an aggregation sees them: the key, and the bounds of the session behind it."""
        return replace(self.source, sql="", headers=False, window=shape(self.window))

    @property
    def places(self) -> tuple[str, ...]:
        return ("part", "off", "at") if self.source.ordered else ("part", "off")

    def held(self, before: str) -> Fragment:
        """All rows in their order (`ord`), with the time up to which sessions are closed (`shut`)."""
        n = len(self.source.key)
        keys = [*self.source.keys, f"clk AS k{n}"]
        order = f"row_number() OVER (PARTITION BY {', '.join([*self.source.keys, 'clk'])} ORDER BY {self.timed.order})"
        chosen = [*keys, *self.source.values, "ts", *self.places, f"{order} AS ord"]
        chosen += [f"st - {self.closed_after} AS shut", "bad"]
        columns = [column(f"k{i}", type_) for i, type_ in enumerate((*self.source.key_types, Scalar.INTEGER))]
        columns += [column(f"c{i}", c.type) for i, c in enumerate(self.source.value)]
        own = [column("ord", Scalar.INTEGER), column("shut", Scalar.BIGINT)]
        own += [column("at", Scalar.BIGINT)] if self.source.ordered else []
        return Fragment(
            f"SELECT {', '.join(chosen)} FROM ({self.timed.sql(before)})", (*columns, TS, PART, OFF, *own, BAD)
        )

    def fragment(self, elements: Elements, rows: str, stored: str) -> Fragment:
        """The partials of the sessions that rows have come to; the view `stored` has the elements of their keys.

        Late rows are in none: they are counted in a row without bounds, whose time is the stream time.
        """
        n = elements.width
        keys = ", ".join(f"k{i}" for i in range(n + 1))
        row = ", ".join(["ord", "ts", "shut", *self.places, *self.source.values])
        listed = f"array_sort(collect_list(struct({row})), (l, r) -> CAST(l.ord - r.ord AS INT)) AS rows"
        own = ", ".join(f"k{i} AS g{i}" for i in range(n + 1))
        session = (
            f"named_struct('s', k{n + 1}, 'e', k{n + 2}, 'i', CAST(NULL AS INT), 'j', CAST(NULL AS INT), "
            f"'os', array(k{n + 1}), 'oe', array(k{n + 2}))"
        )
        same = " AND ".join(f"k{i} = g{i}" for i in range(n + 1))
        known = (
            f"SELECT {keys}, rows, coalesce(known, CAST(array() AS ARRAY<{SESSION}>)) AS known "
            f"FROM (SELECT {keys}, {listed} FROM {rows} GROUP BY {keys}) LEFT JOIN "
            f"(SELECT {own}, collect_list({session}) AS known FROM {stored} GROUP BY {keys}) ON {same}"
        )
        folded = f"SELECT {keys}, rows, {self._fold} AS f FROM ({known})"
        placed = f"SELECT {keys}, f.w AS w, f.t AS t, posexplode(rows) AS (i, r) FROM ({folded})"
        its = (
            "IF(substring(t, i + 1, 1) = '1', element_at(array_sort(filter("
            "w, x -> x.s <= r.ts AND r.ts <= x.e AND x.i <= i AND i <= x.j), (a, b) -> a.j - b.j), 1), NULL) AS x"
        )
        values = ", ".join(f"r.{name} AS {name}" for name in ("ts", "shut", *self.places, *self.source.values))
        assigned = f"SELECT {keys}, {values}, true AS present, 0 AS bad, {its} FROM ({placed})"
        chosen = [keys, f"x.s AS k{n + 1}", f"x.e AS k{n + 2}", *elements.partials]
        chosen += [f"coalesce(x.e, max(shut) + {self.closed_after}) AS ts", "x.os AS o_start", "x.oe AS o_end"]
        chosen += ["count_if(x IS NULL) AS late", "0 AS bad"]
        sql = f"SELECT {', '.join(chosen)} FROM ({assigned}) GROUP BY {keys}, x"
        return Fragment(sql, elements.columns, late_by=(self.timed.partition(f"k{n}"), "ts"))

    @property
    def _fold(self) -> str:
        """The sessions after all rows (`w`), and for each row whether it was taken (`t`)."""
        near = f"x.e >= r.shut + 1 AND x.e >= r.ts - {self.gap} AND x.s <= r.ts + {self.gap}"
        one = (
            "named_struct("
            "'s', least(r.ts, array_min(transform(n, x -> x.s))), "
            "'e', greatest(r.ts, array_max(transform(n, x -> x.e))), "
            "'i', coalesce(array_min(transform(n, x -> x.i)), length(a.t)), 'j', length(a.t), "
            "'os', flatten(transform(n, x -> x.os)), 'oe', flatten(transform(n, x -> x.oe)))"
        )
        taken = f"named_struct('w', concat(filter(a.w, x -> NOT ({near})), array({one})), 't', concat(a.t, '1'))"
        left = "named_struct('w', a.w, 't', concat(a.t, '0'))"
        step = f"transform(array(filter(a.w, x -> {near})), n -> IF(r.ts > r.shut OR size(n) > 0, {taken}, {left}))[0]"
        return f"aggregate(rows, named_struct('w', known, 't', ''), (a, r) -> {step})"
