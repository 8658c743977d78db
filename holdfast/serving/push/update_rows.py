"""The rows of SUBSCRIBE: a time, whether a row was added or removed, and the row.

    mz_timestamp | mz_progressed | mz_diff | …       mz_diff is 1 for a row that was added, -1 for one that was removed
    mz_timestamp | mz_progressed | mz_state | k… | … with ENVELOPE UPSERT: 'upsert', or 'delete' with the key alone

`mz_progressed` is present with PROGRESS = true. A row in which it is true has no other values: no change before its
time is still to come. A change that leaves the query's row as it was gives no row.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from holdfast.runtime.expressions.physical import Dialect, arrow_type
from holdfast.runtime.physical_columns import AFTER, BEFORE
from holdfast.runtime.store.port import Time
from holdfast.serving.projection import Projection
from holdfast.serving.push.row_reader import RowReader, in_result
from holdfast.serving.results import ResultColumn
from holdfast.types import Scalar

SAME = "IS NOT DISTINCT FROM"


@dataclass(frozen=True)
class UpdateFormat:
    """The columns of a subscription's rows. `key` are the positions of the envelope's key columns in the query."""

    query: tuple[ResultColumn, ...]
    key: tuple[int, ...] = ()
    with_progress: bool = False

    @cached_property
    def order(self) -> list[int]:
        """The query's columns in the order in which they are sent: an envelope's key first."""
        return [*self.key, *(i for i in range(len(self.query)) if i not in self.key)]

    @cached_property
    def columns(self) -> tuple[ResultColumn, ...]:
        progressed = [ResultColumn("mz_progressed", Scalar.BOOLEAN)] if self.with_progress else []
        state = ResultColumn("mz_state", Scalar.STRING) if self.key else ResultColumn("mz_diff", Scalar.BIGINT)
        return (ResultColumn("mz_timestamp", Scalar.BIGINT), *progressed, state, *(self.query[i] for i in self.order))

    def rows(self, rows: pa.Table, at: Time, states: pa.Array | None = None) -> pa.Table:
        """Rows of the query (`r0`, …) at a time: all added, or with the given `states`."""
        head: list[pa.Array] = [pa.repeat(pa.scalar(at, pa.int64()), rows.num_rows)]
        if self.with_progress:
            head.append(pa.repeat(pa.scalar(False), rows.num_rows))
        added = pa.scalar("upsert") if self.key else pa.scalar(1, pa.int64())
        head.append(pa.repeat(added, rows.num_rows) if states is None else states)
        return self.declared([*head, *(rows.column(i) for i in self.order)])

    def progress(self, to: Time) -> pa.Table:
        """A progress row: no change before `to` is still to come. Empty without PROGRESS."""
        head = [pa.array([to], pa.int64()), pa.array([True])]
        nulls = [pa.nulls(1) for _ in self.columns[2:]]
        return self.declared([*head, *nulls]) if self.with_progress else self.schema.empty_table()

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([(f"r{i}", arrow_type(column.type)) for i, column in enumerate(self.columns)])

    def declared(self, columns: Sequence[pa.Array]) -> pa.Table:
        return pa.table(list(columns), names=self.schema.names).cast(self.schema)


@dataclass(frozen=True)
class TableUpdates:
    """Turns the changes of a table into the rows of a subscription to it."""

    projection: Projection
    format: UpdateFormat

    @property
    def key(self) -> Hashable:
        """Equal for subscriptions that get the same rows."""
        projection = self.projection
        return projection.select("t", projection.dialect), self.format.key, self.format.with_progress

    def of_changes(self, reader: RowReader, changes: pa.Table, *, complete: bool) -> pa.Table:
        """The rows of changes. If these are all changes of their times (`complete`), progress rows follow them."""
        sides = self._sides(self.projection.dialect)
        if self.projection.dialect is Dialect.DUCKDB:
            sql = f"WITH changed AS ({sides}), {self._updates(complete=complete)}"
            return self.format.declared(reader.evaluate(self.projection, sql, changes).columns)
        changed = reader.evaluate(self.projection, sides, changes)
        sql = f"WITH {self._updates(complete=complete)}"
        return self.format.declared(reader.store.evaluate_over(sql, {"changed": changed}).columns)

    def _sides(self, dialect: Dialect) -> str:
        """The query's row before and after each change: ``time, was, is_now, x0.., y0..``."""
        was, now = in_result(self.projection, dialect)
        before = self.projection.items(self.projection.scope(BEFORE), dialect, name="x")
        after = self.projection.items(self.projection.scope(AFTER), dialect, name="y")
        return f"SELECT time, {was} AS was, {now} AS is_now, {', '.join([*before, *after])} FROM client_changes"

    def _updates(self, *, complete: bool) -> str:
        """The SQL of the rows. Within a time, removed rows come before added ones."""
        keys, order = range(len(self.format.key)), self.format.order
        same = " AND ".join(f"x{i} {SAME} y{i}" for i in order)
        same_key = " AND ".join(f"x{order[i]} {SAME} y{order[i]}" for i in keys)
        progressed = "false, " if self.format.with_progress else ""
        after = ", ".join(f"y{i} AS v{n}" for n, i in enumerate(order))
        before = ", ".join(f"{'NULL' if keys and n not in keys else f'x{i}'} AS v{n}" for n, i in enumerate(order))
        added, removed = ("'upsert'", "'delete'") if keys else ("1", "-1")
        replaced = same_key if keys else same
        parts = [
            f"SELECT time AS t, 1 AS o, time, {progressed}{added}, {after} FROM changed "
            f"WHERE is_now AND NOT (was AND {same})",
            f"SELECT time AS t, 0 AS o, time, {progressed}{removed}, {before} FROM changed "
            f"WHERE was AND NOT (is_now AND {replaced})",
        ]
        names = [f"r{i}" for i in range(len(self.format.columns))]
        updates = f"updates(t, o, {', '.join(names)}) AS ({' UNION ALL '.join(parts)})"
        progress = ""
        if self.format.with_progress and complete:
            nulls = ", ".join("NULL" for _ in names[2:])
            progress = f" UNION ALL SELECT DISTINCT t, 2, t + 1, true, {nulls} FROM updates"
        return f"{updates} SELECT {', '.join(names)} FROM (SELECT * FROM updates{progress}) ORDER BY t, o"
