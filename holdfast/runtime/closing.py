"""Merges a tick's partials into windows that are kept as elements of a state, and lets go of those that close.

An element has the key `k0.., clock, start, end`; its `ts` is its end. The last two columns of its value are its ROWTIME
and the offset of its latest record. A row of partials names the elements that its window absorbs: one that it has
already, or the sessions that it joins.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.names import QueryId, StateId
from holdfast.runtime.program import MergeWindows
from holdfast.runtime.store.port import Layout, SqlReader, TickStage
from holdfast.runtime.store.schemas import delta_schema, fit, rows_schema, upsert_schema

ABSORBED = ("o_start", "o_end")


@dataclass(frozen=True, slots=True)
class Closing:
    """One tick of one state. `clock` is the delta of the stream times; None when none moved."""

    query: QueryId
    action: MergeWindows
    stage: TickStage
    reader: SqlReader

    @property
    def layout(self) -> Layout:
        return self.action.layout

    @property
    def state(self) -> StateId:
        return self.action.state

    @property
    def keys(self) -> list[str]:
        return [f"k{i}" for i in range(len(self.layout.key))]

    @property
    def values(self) -> list[str]:
        return [f"c{i}" for i in range(len(self.layout.value))]

    @property
    def clock(self) -> str:
        return self.keys[-3]

    @property
    def end(self) -> str:
        return self.keys[-1]

    def run(self, partials: pa.Table, times: pa.Table) -> pa.Table:
        """Stage the state; gives the delta of the windows that changed, or of those that are final."""
        closed, forgotten = self._closed(times), self._forgotten(times)
        absorbed = self._absorbed(partials)
        merged = self._merged(partials, absorbed)
        tables = {"merged": merged, "absorbed": absorbed, "closed": closed, "forgotten": forgotten}
        lost = self._passed("forgotten", "upto")
        row = ", ".join([*self.keys, *self.values, "ts"])
        gone = f"SELECT {row} FROM absorbed t ANTI JOIN merged m ON {self._same('t', 'm')}"
        kept = self.reader.evaluate_over(
            f"SELECT {row}, true AS present FROM merged t WHERE NOT {lost} "
            f"UNION ALL SELECT {row}, false AS present FROM ({gone})",
            tables,
        )
        if self.action.final:
            tables["due"] = self.stage.lookup_spans(self.state, closed)
        if self.action.expires:
            tables["past"] = self.stage.lookup_spans(self.state, forgotten)
        shown = self._final(row, lost, tables) if self.action.final else self._changed(row, gone, lost, tables)
        self.stage.put(self.query, self.state, fit(kept, upsert_schema(self.layout)), forgotten)
        return shown

    def _closed(self, times: pa.Table) -> pa.Table:
        """Up to which end windows are closed, by clock, and up to which they were before the tick."""
        before, now = (pc.subtract(times.column(f"{side}0"), self.action.closed_after) for side in "ba")
        return pa.table({self.clock: times.column("k0"), "after": before, "upto": now})

    def _forgotten(self, times: pa.Table) -> pa.Table:
        upto = pc.subtract(times.column("a0"), self.action.forgotten_after)
        nothing = pa.nulls(times.num_rows, pa.int64())
        return pa.table({self.clock: times.column("k0"), "after": nothing, "upto": upto})

    def _passed(self, table: str, bound: str) -> str:
        """The condition that a window `t` ends before a bound of its clock."""
        return f"EXISTS (SELECT 1 FROM {table} x WHERE x.{self.clock} = t.{self.clock} AND t.{self.end} <= x.{bound})"

    def _absorbed(self, partials: pa.Table) -> pa.Table:
        *group, start, end = self.keys
        sql = f"SELECT {', '.join(group)}, unnest(o_start) AS {start}, unnest(o_end) AS {end} FROM partials"
        keys = self.reader.evaluate_over(f"SELECT DISTINCT * FROM ({sql})", {"partials": partials})
        if not keys.num_rows:
            return rows_schema(self.layout).empty_table()
        return self.stage.lookup_state(self.state, keys)

    def _merged(self, partials: pa.Table, absorbed: pa.Table) -> pa.Table:
        """The elements that the partials make, with what they absorb: earlier records are merged first."""
        merge, width = self.action.merge, len(self.layout.value)
        latest, start, end = self.values[-1], self.keys[-2], self.keys[-1]
        group = " AND ".join(f"o.{key} = n.{key}" for key in self.keys[:-2])
        found = (
            f"SELECT n.id, row_number() OVER (PARTITION BY n.id ORDER BY o.{latest}, o.{end}) AS place, "
            + ", ".join(f"o.c{i} AS p{i}" for i in range(width))
            + ", o.ts FROM (SELECT id, "
            + ", ".join(self.keys[:-2])
            + f", unnest(o_start) AS {start}, unnest(o_end) AS {end} FROM n) n JOIN absorbed o "
            + f"ON {group} AND o.{start} = n.{start} AND o.{end} = n.{end}"
        )
        ctes = ["n AS (SELECT row_number() OVER () AS id, * FROM partials)", f"o AS ({found})"]
        rounds = self._most(partials, absorbed)
        initial = ", ".join(f"{sql} AS s{i}" for i, sql in enumerate(merge.initial))
        ctes.append(f"a0 AS (SELECT id, {initial} FROM n)")
        state = ", ".join(f"s{i}" for i in range(width))
        partial = ", ".join(f"p{i}" for i in range(width))
        step = ", ".join(f"{sql} AS s{i}" for i, sql in enumerate(merge.merged))
        for place in range(1, rounds + 1):
            before, here = f"a{place - 1}", f"(SELECT * FROM o WHERE place = {place})"
            joined = f"SELECT a.id AS id, {state}, {partial} FROM {before} a JOIN {here} o ON o.id = a.id"
            others = f"SELECT a.id AS id, {state} FROM {before} a ANTI JOIN {here} o ON o.id = a.id"
            ctes.append(f"a{place} AS (SELECT id, {step} FROM ({joined}) UNION ALL {others})")
        last = f"SELECT a.id AS id, {state}, {partial} FROM a{rounds} a JOIN n ON n.id = a.id"
        ctes.append(f"m AS (SELECT id, {step} FROM ({last}))")
        chosen = [*(f"n.{key}" for key in self.keys), *(f"m.s{i} AS c{i}" for i in range(width)), f"n.{end} AS ts"]
        sql = f"WITH {', '.join(ctes)} SELECT {', '.join(chosen)} FROM n JOIN m ON m.id = n.id"
        tables = {"partials": partials, "absorbed": absorbed}
        return fit(self.reader.evaluate_over(sql, tables), rows_schema(self.layout))

    def _most(self, partials: pa.Table, absorbed: pa.Table) -> int:
        """The most elements that a row can absorb."""
        if not absorbed.num_rows:
            return 0
        return pc.max(pc.list_value_length(partials.column("o_start"))).as_py() or 0

    # -- what shows ----------------------------------------------------------------------------------

    def _changed(self, row: str, gone: str, lost: str, tables: dict[str, pa.Table]) -> pa.Table:
        was = self._side("b", "o", f"(o.{self.end} IS NOT NULL)")
        there = f"(NOT {lost})" if self.action.expires else "true"
        new = (
            f"SELECT {self._shown('t')}, {was}, {self._side('a', 't', there)}, t.{self.clock} AS clock "
            f"FROM merged t LEFT JOIN absorbed o ON {self._same('o', 't')}"
        )
        if self.action.expires:
            gone = f"{gone} UNION ALL SELECT {row} FROM past t ANTI JOIN ({self._touched}) m ON {self._same('t', 'm')}"
        old = (
            f"SELECT {self._shown('t')}, {self._side('b', 't', 'true')}, {self._side('a', 't', 'false')}, "
            f"t.{self.clock} AS clock FROM ({gone}) t"
        )
        return self._delta(f"{new} UNION ALL {old}", tables)

    def _final(self, row: str, lost: str, tables: dict[str, pa.Table]) -> pa.Table:
        """The windows that close; those that are forgotten too, which were told before, are gone."""
        closed = (
            f"SELECT {row} FROM merged t WHERE {self._passed('closed', 'upto')} UNION ALL "
            f"SELECT {row} FROM due t ANTI JOIN ({self._touched}) m ON {self._same('t', 'm')}"
        )
        there = f"(NOT {lost})" if self.action.expires else "true"
        sql = (
            f"SELECT {self._shown('t')}, {self._side('b', 't', 'false')}, {self._side('a', 't', there)}, "
            f"t.{self.clock} AS clock FROM ({closed}) t"
        )
        if self.action.expires:
            sql += (
                f" UNION ALL SELECT {self._shown('t')}, {self._side('b', 't', 'true')}, "
                f"{self._side('a', 't', 'false')}, t.{self.clock} AS clock FROM past t "
                f"WHERE {self._passed('closed', 'after')}"
            )
        return self._delta(sql, tables)

    @property
    def _touched(self) -> str:
        keys = ", ".join(self.keys)
        return f"SELECT {keys} FROM merged UNION ALL SELECT {keys} FROM absorbed"

    def _delta(self, sql: str, tables: dict[str, pa.Table]) -> pa.Table:
        """One row for each window of a key, those that go first, then by their ends; clocks are not seen outside."""
        schema = delta_schema(self.action.shown)
        width = len(self.action.shown.key)
        keys = ", ".join(f"k{i}" for i in range(width))
        once = f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY a_present DESC, clock DESC) = 1"
        rows = f"SELECT {', '.join(schema.names)} FROM ({sql}) WHERE b_present OR a_present {once}"
        ordered = f"{rows} ORDER BY a_present, k{width - 1}, k{width - 2}"
        return fit(self.reader.evaluate_over(ordered, tables), schema)

    def _shown(self, table: str) -> str:
        width = len(self.layout.key) - 3
        shown = [*self.keys[:width], *self.keys[width + 1 :]]
        return ", ".join(f"{table}.{key} AS k{i}" for i, key in enumerate(shown))

    def _side(self, prefix: str, table: str, present: str) -> str:
        """A side of the delta; what is not present has only the time at which it went."""
        width = len(self.layout.value) - 2
        values = [f"CASE WHEN {present} THEN {table}.c{i} END AS {prefix}{i}" for i in range(width)]
        when = f"{table}.c{width}" if prefix == "a" else f"CASE WHEN {present} THEN {table}.c{width} END"
        return ", ".join([f"{present} AS {prefix}_present", *values, f"{when} AS {prefix}_ts"])

    def _same(self, left: str, right: str) -> str:
        return " AND ".join(f"{left}.{key} = {right}.{key}" for key in self.keys)
