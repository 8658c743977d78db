"""Merges a tick's partials into windows that a state stores as elements, and removes windows that are too old.

An element has the key `k0.., clock, start, end`; its `ts` is its end. The last two columns of its value are its ROWTIME
and the offset of its latest record. A row of partials lists the elements that its window absorbs: the window's own
stored element, or the sessions that it joins.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.names import QueryId, StateId
from holdfast.runtime import physical_columns as col
from holdfast.runtime.physical_columns import AFTER, BEFORE, Side
from holdfast.runtime.program import MergeWindows
from holdfast.runtime.store.port import Layout, SqlReader, TickStage
from holdfast.runtime.store.schemas import delta_schema, fit, rows_schema, upsert_schema

ABSORBED = ("o_start", "o_end")


@dataclass(frozen=True, slots=True)
class WindowMerge:
    """The merge of one tick into one state."""

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
        return col.keys(len(self.layout.key))

    @property
    def values(self) -> list[str]:
        return col.values(len(self.layout.value))

    @property
    def clock(self) -> str:
        return self.keys[-3]

    @property
    def end(self) -> str:
        return self.keys[-1]

    def run(self, partials: pa.Table, times: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Stage the state; returns the delta of the windows that changed or, with `final`, that closed.

        `times` is the delta of the clock's state. The second table has the keys of those windows in the delta that
        the tick has also passed: they have expired already.
        """
        closed, removed = self._closed(times), self._removed(times)
        absorbed = self._absorbed(partials)
        merged = self._merged(partials, absorbed)
        tables = {"merged": merged, "absorbed": absorbed, "closed": closed, "forgotten": removed}
        is_removed = self._passed("forgotten", "upto")
        row = ", ".join([*self.keys, *self.values, "ts"])
        replaced = f"SELECT {row} FROM absorbed t ANTI JOIN merged m ON {self._same('t', 'm')}"
        upserts = self.reader.evaluate_over(
            f"SELECT {row}, true AS present FROM merged t WHERE NOT {is_removed} "
            f"UNION ALL SELECT {row}, false AS present FROM ({replaced})",
            tables,
        )
        if self.action.final:
            tables["due"] = self.stage.lookup_spans(self.state, closed)
        if self.action.expires:
            tables["past"] = self.stage.lookup_spans(self.state, removed)
        if self.action.final:
            closed_now = self._closed_now(row)
            delta, passed = (
                self._final(closed_now, tables),
                self._expired_of(f"({closed_now})", is_removed, tables),
            )
        else:
            delta, passed = self._changed(row, replaced, tables), self._expired_of("merged", is_removed, tables)
        self.stage.put(self.query, self.state, fit(upserts, upsert_schema(self.layout)), removed)
        return delta, passed

    def _closed(self, times: pa.Table) -> pa.Table:
        """By clock, the end up to which windows are closed before the tick (`after`) and after it (`upto`)."""
        before, now = (pc.subtract(times.column(side.column(0)), self.action.closed_after) for side in Side)
        return pa.table({self.clock: times.column(col.key(0)), "after": before, "upto": now})

    def _removed(self, times: pa.Table) -> pa.Table:
        """By clock, the end up to which windows are removed from the state."""
        upto = pc.subtract(times.column(AFTER.column(0)), self.action.removed_after)
        unbounded = pa.nulls(times.num_rows, pa.int64())
        return pa.table({self.clock: times.column(col.key(0)), "after": unbounded, "upto": upto})

    def _passed(self, table: str, bound: str) -> str:
        """The condition that a window `t` ends at or before a bound of its clock."""
        return f"EXISTS (SELECT 1 FROM {table} x WHERE x.{self.clock} = t.{self.clock} AND t.{self.end} <= x.{bound})"

    def _absorbed(self, partials: pa.Table) -> pa.Table:
        *group, start, end = self.keys
        sql = f"SELECT {', '.join(group)}, unnest(o_start) AS {start}, unnest(o_end) AS {end} FROM partials"
        keys = self.reader.evaluate_over(f"SELECT DISTINCT * FROM ({sql})", {"partials": partials})
        if not keys.num_rows:
            return rows_schema(self.layout).empty_table()
        return self.stage.lookup_state(self.state, keys)

    def _merged(self, partials: pa.Table, absorbed: pa.Table) -> pa.Table:
        """The partials merged with the elements that they absorb, in the order of their latest records."""
        merge, width = self.action.merge, len(self.layout.value)
        latest, start, end = self.values[-1], self.keys[-2], self.keys[-1]
        group = " AND ".join(f"o.{key} = n.{key}" for key in self.keys[:-2])
        found = (
            f"SELECT n.id, row_number() OVER (PARTITION BY n.id ORDER BY o.{latest}, o.{end}) AS place, "
            + ", ".join(f"o.{col.value(i)} AS {col.partial(i)}" for i in range(width))
            + ", o.ts FROM (SELECT id, "
            + ", ".join(self.keys[:-2])
            + f", unnest(o_start) AS {start}, unnest(o_end) AS {end} FROM n) n JOIN absorbed o "
            + f"ON {group} AND o.{start} = n.{start} AND o.{end} = n.{end}"
        )
        ctes = ["n AS (SELECT row_number() OVER () AS id, * FROM partials)", f"o AS ({found})"]
        rounds = self._max_absorbed(partials, absorbed)
        initial = ", ".join(f"{sql} AS {col.state(i)}" for i, sql in enumerate(merge.initial))
        ctes.append(f"a0 AS (SELECT id, {initial} FROM n)")
        state = ", ".join(col.state(i) for i in range(width))
        partial = ", ".join(col.partial(i) for i in range(width))
        step = ", ".join(f"{sql} AS {col.state(i)}" for i, sql in enumerate(merge.merged))
        for n in range(1, rounds + 1):
            before, elements = f"a{n - 1}", f"(SELECT * FROM o WHERE place = {n})"
            joined = f"SELECT a.id AS id, {state}, {partial} FROM {before} a JOIN {elements} o ON o.id = a.id"
            others = f"SELECT a.id AS id, {state} FROM {before} a ANTI JOIN {elements} o ON o.id = a.id"
            ctes.append(f"a{n} AS (SELECT id, {step} FROM ({joined}) UNION ALL {others})")
        last = f"SELECT a.id AS id, {state}, {partial} FROM a{rounds} a JOIN n ON n.id = a.id"
        ctes.append(f"m AS (SELECT id, {step} FROM ({last}))")
        chosen = [
            *(f"n.{key}" for key in self.keys),
            *(f"m.{col.state(i)} AS {col.value(i)}" for i in range(width)),
            f"n.{end} AS ts",
        ]
        sql = f"WITH {', '.join(ctes)} SELECT {', '.join(chosen)} FROM n JOIN m ON m.id = n.id"
        tables = {"partials": partials, "absorbed": absorbed}
        return fit(self.reader.evaluate_over(sql, tables), rows_schema(self.layout))

    def _max_absorbed(self, partials: pa.Table, absorbed: pa.Table) -> int:
        """The largest number of elements that one row absorbs."""
        if not absorbed.num_rows:
            return 0
        return pc.max(pc.list_value_length(partials.column("o_start"))).as_py() or 0

    # -- the delta -----------------------------------------------------------------------------------

    def _expired_of(self, windows: str, is_removed: str, tables: dict[str, pa.Table]) -> pa.Table:
        """The keys, in the result, of those of some windows that have expired."""
        where = is_removed if self.action.expires else "false"
        return self.reader.evaluate_over(f"SELECT {self._result_key('t')} FROM {windows} t WHERE {where}", tables)

    def _changed(self, row: str, replaced: str, tables: dict[str, pa.Table]) -> pa.Table:
        before = self._side(BEFORE, "o", f"(o.{self.end} IS NOT NULL)")
        new = (
            f"SELECT {self._result_key('t')}, {before}, {self._side(AFTER, 't', 'true')}, t.{self.clock} AS clock "
            f"FROM merged t LEFT JOIN absorbed o ON {self._same('o', 't')}"
        )
        if self.action.expires:
            expired = f"SELECT {row} FROM past t ANTI JOIN ({self._touched}) m ON {self._same('t', 'm')}"
            replaced = f"{replaced} UNION ALL {expired}"
        old = (
            f"SELECT {self._result_key('t')}, {self._side(BEFORE, 't', 'true')}, {self._side(AFTER, 't', 'false')}, "
            f"t.{self.clock} AS clock FROM ({replaced}) t"
        )
        return self._delta(f"{new} UNION ALL {old}", tables)

    def _closed_now(self, row: str) -> str:
        """The SELECT of the windows that close in the tick."""
        return (
            f"SELECT {row} FROM merged t WHERE {self._passed('closed', 'upto')} UNION ALL "
            f"SELECT {row} FROM due t ANTI JOIN ({self._touched}) m ON {self._same('t', 'm')}"
        )

    def _final(self, closed: str, tables: dict[str, pa.Table]) -> pa.Table:
        """The windows that close, and deletes of windows emitted earlier that are removed from the state."""
        sql = (
            f"SELECT {self._result_key('t')}, {self._side(BEFORE, 't', 'false')}, {self._side(AFTER, 't', 'true')}, "
            f"t.{self.clock} AS clock FROM ({closed}) t"
        )
        if self.action.expires:
            sql += (
                f" UNION ALL SELECT {self._result_key('t')}, {self._side(BEFORE, 't', 'true')}, "
                f"{self._side(AFTER, 't', 'false')}, t.{self.clock} AS clock FROM past t "
                f"WHERE {self._passed('closed', 'after')}"
            )
        return self._delta(sql, tables)

    @property
    def _touched(self) -> str:
        keys = ", ".join(self.keys)
        return f"SELECT {keys} FROM merged UNION ALL SELECT {keys} FROM absorbed"

    def _delta(self, sql: str, tables: dict[str, pa.Table]) -> pa.Table:
        """One row per key and window, deletes first, then by window end. Clocks are not part of the result."""
        schema = delta_schema(self.action.result_layout)
        width = len(self.action.result_layout.key)
        keys = ", ".join(col.key(i) for i in range(width))
        once = f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY a_present DESC, clock DESC) = 1"
        rows = f"SELECT {', '.join(schema.names)} FROM ({sql}) WHERE b_present OR a_present {once}"
        ordered = f"{rows} ORDER BY a_present, {col.key(width - 1)}, {col.key(width - 2)}"
        return fit(self.reader.evaluate_over(ordered, tables), schema)

    def _result_key(self, table: str) -> str:
        """The key of an element without its clock."""
        width = len(self.layout.key) - 3
        keys = [*self.keys[:width], *self.keys[width + 1 :]]
        return ", ".join(f"{table}.{key} AS {col.key(i)}" for i, key in enumerate(keys))

    def _side(self, side: Side, table: str, present: str) -> str:
        """One side of the delta. A row that is absent after the tick still has its ROWTIME."""
        width = len(self.layout.value) - 2
        values = [f"CASE WHEN {present} THEN {table}.{col.value(i)} END AS {side.column(i)}" for i in range(width)]
        when = (
            f"{table}.{col.value(width)}"
            if side is AFTER
            else f"CASE WHEN {present} THEN {table}.{col.value(width)} END"
        )
        return ", ".join([f"{present} AS {side.present}", *values, f"{when} AS {side.row_time}"])

    def _same(self, left: str, right: str) -> str:
        return " AND ".join(f"{left}.{key} = {right}.{key}" for key in self.keys)
