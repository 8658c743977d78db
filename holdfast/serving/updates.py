"""The rows of SUBSCRIBE: a time, whether a row came or went, and the row; over changes of one table.

    mz_timestamp | mz_progressed | mz_diff | …       mz_diff is 1 for a row that came, -1 for one that went
    mz_timestamp | mz_progressed | mz_state | k… | … with ENVELOPE UPSERT: 'upsert', or 'delete' with the key alone

`mz_progressed` is there with PROGRESS = true: a row in which it is true has no other values, and says that no change
before its time is still to come. A change that the query does not show (before and after are the same) is none.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from holdfast.runtime.expressions.physical import Dialect, arrow_type
from holdfast.runtime.store.port import Time
from holdfast.serving.projection import Projection
from holdfast.serving.results import ResultColumn
from holdfast.serving.rows import RowReader, shown
from holdfast.types import Scalar

SAME = "IS NOT DISTINCT FROM"


@dataclass(frozen=True)
class Told:
    """The form in which rows and their times are told. `key` are the places of an envelope's columns."""

    query: tuple[ResultColumn, ...]
    key: tuple[int, ...] = ()
    with_progress: bool = False

    @cached_property
    def order(self) -> list[int]:
        """The columns of the query as they are told: with an envelope, those of its key first."""
        return [*self.key, *(i for i in range(len(self.query)) if i not in self.key)]

    @cached_property
    def columns(self) -> tuple[ResultColumn, ...]:
        progressed = [ResultColumn("mz_progressed", Scalar.BOOLEAN)] if self.with_progress else []
        state = ResultColumn("mz_state", Scalar.STRING) if self.key else ResultColumn("mz_diff", Scalar.BIGINT)
        return (ResultColumn("mz_timestamp", Scalar.BIGINT), *progressed, state, *(self.query[i] for i in self.order))

    def rows(self, rows: pa.Table, at: Time, states: pa.Array | None = None) -> pa.Table:
        """Rows of the query (`r0`, …) at a time. Each came, or is what `states` says of it."""
        head: list[pa.Array] = [pa.repeat(pa.scalar(at, pa.int64()), rows.num_rows)]
        if self.with_progress:
            head.append(pa.repeat(pa.scalar(False), rows.num_rows))
        came = pa.scalar("upsert") if self.key else pa.scalar(1, pa.int64())
        head.append(pa.repeat(came, rows.num_rows) if states is None else states)
        return self.declared([*head, *(rows.column(i) for i in self.order)])

    def progress(self, to: Time) -> pa.Table:
        """One row that says that nothing more comes before a time; no row where none is wanted."""
        head = [pa.array([to], pa.int64()), pa.array([True])]
        nothing = [pa.nulls(1) for _ in self.columns[2:]]
        return self.declared([*head, *nothing]) if self.with_progress else self.schema.empty_table()

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([(f"r{i}", arrow_type(column.type)) for i, column in enumerate(self.columns)])

    def declared(self, columns: Sequence[pa.Array]) -> pa.Table:
        return pa.table(list(columns), names=self.schema.names).cast(self.schema)


@dataclass(frozen=True)
class Updates:
    """Makes the rows of one subscription out of the changes of its table."""

    projection: Projection
    told: Told

    @property
    def key(self) -> Hashable:
        """Equal for subscriptions that are told the same."""
        projection = self.projection
        return projection.select("t", projection.dialect), self.told.key, self.told.with_progress

    def of_changes(self, reader: RowReader, changes: pa.Table, *, whole: bool) -> pa.Table:
        """What changes mean for the query; `whole`: they are all of their times, which are then said to be over."""
        sides = self._sides(self.projection.dialect)
        if self.projection.dialect is Dialect.DUCKDB:
            sql = f"WITH changed AS ({sides}), {self._told(whole=whole)}"
            return self.told.declared(reader.evaluate(self.projection, sql, changes).columns)
        changed = reader.evaluate(self.projection, sides, changes)
        sql = f"WITH {self._told(whole=whole)}"
        return self.told.declared(reader.store.evaluate_over(sql, {"changed": changed}).columns)

    def _sides(self, dialect: Dialect) -> str:
        """Both sides of each change, as the query shows them: ``time, was, now, b0.., a0..``."""
        was, now = shown(self.projection, dialect)
        before = self.projection.items(self.projection.scope("b", "b_ts"), dialect, name="x")
        after = self.projection.items(self.projection.scope("a", "a_ts"), dialect, name="y")
        return f"SELECT time, {was} AS was, {now} AS is_now, {', '.join([*before, *after])} FROM client_changes"

    def _told(self, *, whole: bool) -> str:
        """Within a time, what went comes before what came."""
        keys = range(len(self.told.key))
        same = " AND ".join(f"x{i} {SAME} y{i}" for i in self.told.order)
        same_key = " AND ".join(f"x{self.told.order[i]} {SAME} y{self.told.order[i]}" for i in keys)
        progressed = "false, " if self.told.with_progress else ""
        after = ", ".join(f"y{i} AS v{n}" for n, i in enumerate(self.told.order))
        before = ", ".join(
            f"{'NULL' if keys and n not in keys else f'x{i}'} AS v{n}" for n, i in enumerate(self.told.order)
        )
        came, went = ("'upsert'", "'delete'") if keys else ("1", "-1")
        kept = same_key if keys else same
        parts = [
            f"SELECT time AS t, 1 AS o, time, {progressed}{came}, {after} FROM changed "
            f"WHERE is_now AND NOT (was AND {same})",
            f"SELECT time AS t, 0 AS o, time, {progressed}{went}, {before} FROM changed "
            f"WHERE was AND NOT (is_now AND {kept})",
        ]
        names = [f"r{i}" for i in range(len(self.told.columns))]
        told = f"told(t, o, {', '.join(names)}) AS ({' UNION ALL '.join(parts)})"
        over = ""
        if self.told.with_progress and whole:
            nothing = ", ".join("NULL" for _ in names[2:])
            over = f" UNION ALL SELECT DISTINCT t, 2, t + 1, true, {nothing} FROM told"
        return f"{told} SELECT {', '.join(names)} FROM (SELECT * FROM told{over}) ORDER BY t, o"
