"""Merges a tick's partials into the time windows of a state, and removes the windows that expire.

A window expires when stream time is `retention` after its start. Which windows remain after a tick depends only on the
stream time that the tick reaches, so a window that a tick changes and then passes is removed in that tick. Its last
result is not lost: the sink topic gets it, before the tombstone of the window if there was one before the tick.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime import physical_columns as col
from holdfast.runtime.expressions.physical import duckdb_type
from holdfast.runtime.physical_columns import AFTER, BEFORE
from holdfast.runtime.program import ExpiringWindows, MergeInto
from holdfast.runtime.row_mask import row_mask
from holdfast.runtime.store.port import Layout, SqlReader, StateProjection, TickStage
from holdfast.runtime.store.schemas import delta_schema, expired_schema, fit, rows_schema

FOREVER = 2**62
CLOCK = "clock"
"""The column of a window's partition, 0 if one clock is for all partitions."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Of a clock: windows that start at most at `upto` have expired; with `new`, some may have in this tick."""

    clock: int
    upto: int
    new: bool


@dataclass(frozen=True, slots=True)
class Expired:
    """The partials to merge, the keys to delete, and the last results of windows that the tick changed and passed.

    `passed` has the state of these windows before and after, as a delta.
    """

    partials: pa.Table
    keys: pa.Table
    passed: pa.Table


@dataclass(frozen=True, slots=True)
class ExpiringMerge:
    """The merge of one tick into one state. The clock must be merged before."""

    action: MergeInto
    expiry: ExpiringWindows
    stage: TickStage
    reader: SqlReader

    def run(self, partials: pa.Table) -> Expired:
        bounds = self._bounds()
        expired = self._expired([bound for bound in bounds if bound.new])
        passed, partials = self._split(partials, bounds)
        if not passed.num_rows:
            keys = fit(expired, expired_schema(self.layout))
            return Expired(partials, keys, delta_schema(self.layout).empty_table())
        tables = {"expired": expired, "passed": passed}
        latest = f"SELECT {self._listed('e', self.keys)}, greatest(e.ts, p.ts) AS ts FROM expired e "
        latest += f"LEFT JOIN passed p ON {self._same('e', 'p')}"
        keys = fit(self.reader.evaluate_over(latest, tables), expired_schema(self.layout))
        return Expired(partials, keys, self._passed(tables))

    def shown(self, passed: pa.Table, projection: StateProjection) -> pa.Table:
        """The results of passed windows: `k0.., c0.., ts`."""
        state = ", ".join(f"{AFTER.column(i)} AS {col.state(i)}" for i in range(len(self.layout.value)))
        columns = [f"{sql} AS {col.value(i)}" for i, sql in enumerate(projection.columns)]
        having = f" WHERE ({projection.having}) IS TRUE" if projection.having else ""
        return self.reader.evaluate_over(
            f"SELECT {', '.join([*self.keys, *columns])}, ts "
            f"FROM (SELECT {', '.join(self.keys)}, {state}, {AFTER.row_time} AS ts FROM passed){having}",
            {"passed": passed},
        )

    @property
    def layout(self) -> Layout:
        return self.expiry.layout

    @property
    def keys(self) -> list[str]:
        return col.keys(len(self.layout.key))

    @property
    def start(self) -> str:
        return self.keys[-2]

    def _bounds(self) -> list[Bound]:
        clock = self.expiry.clock
        times = self.stage.state_delta(clock)
        parts, before, after = (
            times.column(name).to_pylist() for name in (col.key(0), BEFORE.column(0), AFTER.column(0))
        )
        if self.expiry.partition is None:
            everything = pa.table({"after": pa.nulls(1, pa.int64()), "upto": [FOREVER]})
            known = self.stage.lookup_spans(clock, everything).column(col.value(0)).to_pylist()
            parts, before, after = [0], [_greatest(known)], [_greatest([*known, *after])]
        found = zip(parts, before, after, strict=True)
        return [self._bound(part, old, new) for part, old, new in found if new is not None]

    def _bound(self, clock: int, before: int | None, after: int) -> Bound:
        upto, advance = after - self.expiry.retention, self.expiry.advance
        passes = before is not None and (before - self.expiry.retention) // advance < upto // advance
        return Bound(clock, upto, passes)

    def _expired(self, bounds: Sequence[Bound]) -> pa.Table:
        """The windows of the state that expire: `k0.., c0.., ts`. The ROWTIME of a window is before its end."""
        if not bounds:
            return rows_schema(self.layout).empty_table()
        advance, size = self.expiry.advance, self.expiry.size
        last = [bound.upto // advance * advance + size - 1 for bound in bounds]
        spans = pa.table({"after": pa.nulls(len(bounds), pa.int64()), "upto": pa.array(last, pa.int64())})
        if self.expiry.partition is not None:
            spans = spans.append_column(
                col.value(self.expiry.partition), pa.array([bound.clock for bound in bounds], pa.int32())
            )
        found = self.stage.lookup_spans(self.action.state, spans)
        sql = f"SELECT t.* FROM found t WHERE {self._is_passed('t', col.value)}"
        return fit(self.reader.evaluate_over(sql, {"found": found, "bounds": _table(bounds)}), rows_schema(self.layout))

    def _split(self, partials: pa.Table, bounds: Sequence[Bound]) -> tuple[pa.Table, pa.Table]:
        """The partials of windows that the tick passes, and the others."""
        first = pc.min(partials.column(self.start)).as_py()
        if first is None or first > max((bound.upto for bound in bounds), default=first - 1):
            return partials.slice(0, 0), partials
        part = self.expiry.partition
        columns = [self.start] if part is None else [self.start, col.partial(part)]
        condition = self._is_passed("t", col.partial)
        passed = row_mask(self.reader, partials, columns, condition, {"bounds": _table(bounds)})
        return partials.filter(passed), partials.filter(pc.invert(passed))

    def _is_passed(self, table: str, column: Callable[[int], str]) -> str:
        """The condition that a window's time has passed; `column` names the value columns of its row."""
        part = self.expiry.partition
        clock = "0" if part is None else f"{table}.{column(part)}"
        return f"EXISTS (SELECT 1 FROM bounds b WHERE b.{CLOCK} = {clock} AND {table}.{self.start} <= b.upto)"

    def _passed(self, tables: dict[str, pa.Table]) -> pa.Table:
        merge, types = self.action.merge, self.layout.value
        known = [
            f"CASE WHEN e.{self.start} IS NOT NULL THEN e.{col.value(i)} "
            f"ELSE CAST({sql} AS {duckdb_type(type_)}) END AS {col.state(i)}"
            for i, (sql, type_) in enumerate(zip(merge.initial, types, strict=True))
        ]
        before = [f"e.{col.value(i)} AS {BEFORE.column(i)}" for i in range(len(types))]
        partial = [f"p.{col.partial(i)}" for i in range(len(types))]
        joined = (
            f"SELECT {self._listed('p', self.keys)}, {', '.join([*known, *before, *partial])}, "
            f"e.{self.start} IS NOT NULL AS {BEFORE.present}, e.ts AS {BEFORE.row_time}, p.ts AS p_ts "
            f"FROM passed p LEFT JOIN expired e ON {self._same('e', 'p')}"
        )
        after = [f"{sql} AS {AFTER.column(i)}" for i, sql in enumerate(merge.merged)]
        sql = (
            f"SELECT * EXCLUDE p_ts, true AS {AFTER.present}, {', '.join(after)}, "
            f"greatest({BEFORE.row_time}, p_ts) AS {AFTER.row_time} FROM ({joined})"
        )
        return fit(self.reader.evaluate_over(sql, tables), delta_schema(self.layout))

    def _listed(self, table: str, names: Sequence[str]) -> str:
        return ", ".join(f"{table}.{name}" for name in names)

    def _same(self, left: str, right: str) -> str:
        return " AND ".join(f"{left}.{key} IS NOT DISTINCT FROM {right}.{key}" for key in self.keys)


def _table(bounds: Sequence[Bound]) -> pa.Table:
    return pa.table(
        {
            CLOCK: pa.array([bound.clock for bound in bounds], pa.int32()),
            "upto": pa.array([bound.upto for bound in bounds], pa.int64()),
        }
    )


def _greatest(times: Sequence[int | None]) -> int | None:
    return max((time for time in times if time is not None), default=None)
