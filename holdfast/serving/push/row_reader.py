"""Evaluates push queries, once for all readers at the same position."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import pyarrow as pa

from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.physical_columns import AFTER, BEFORE
from holdfast.runtime.spark.engine import Engine, Round
from holdfast.serving.projection import Projection, on_spark
from holdfast.serving.pull.paths import ReadStore
from holdfast.serving.pull.table import as_declared
from holdfast.serving.push.batch_size import BatchSizes
from holdfast.serving.push.single_flight import SingleFlight

CACHED_BATCHES = 8


@dataclass(frozen=True, slots=True)
class SharedRows:
    """The rows of a batch and their encoded forms, shared by its readers."""

    rows: pa.Table
    encoded: dict[Hashable, bytes] = field(default_factory=dict)


class RowReader:
    """Evaluates the push queries of a process, once for equal queries at the same position."""

    def __init__(self, store: ReadStore, engine: Engine) -> None:
        self.store, self.engine, self.sizes = store, engine, BatchSizes()
        self._batches: SingleFlight[SharedRows] = SingleFlight(CACHED_BATCHES)

    def shared(self, key: Hashable, compute: Callable[[], pa.Table]) -> SharedRows:
        return self._batches.get(key, lambda: SharedRows(compute()))

    def found(self, key: Hashable) -> SharedRows | None:
        """The rows of `shared`, if they are cached. Does not wait."""
        return self._batches.found(key)

    def rows(self, projection: Projection, rows: pa.Table) -> pa.Table:
        """Apply the query to current rows."""
        plain = projection.plain_columns()
        if plain is not None:
            selected = rows.select(plain).rename_columns([f"r{i}" for i in range(len(plain))])
        elif projection.dialect is Dialect.DUCKDB:
            selected = self.store.evaluate_over(projection.select("t", Dialect.DUCKDB), {"t": rows})
        else:
            selected = on_spark(self.engine, projection, rows)
        return as_declared(selected, projection)

    def changes(self, projection: Projection, changes: pa.Table) -> pa.Table:
        """Apply the query to changes: new rows, and tombstones."""
        found = self.evaluate(projection, changes_sql(projection, projection.dialect), changes)
        return as_declared(found.drop_columns(["n"]), projection)

    def evaluate(self, projection: Projection, sql: str, changes: pa.Table) -> pa.Table:
        """Run a statement over `client_changes`, in the dialect of the projection."""
        if projection.dialect is Dialect.DUCKDB:
            return self.store.evaluate_over(sql, {"client_changes": changes})
        # Spark has no unsigned integers.
        signed = changes.set_column(0, "time", changes.column("time").cast(pa.int64()))
        return self.engine.select(sql, Round({"client_changes": signed}, {}))


def with_no_tombstones(rows: pa.Table) -> pa.Table:
    return rows.append_column("tombstone", pa.repeat(pa.scalar(False), rows.num_rows))


def in_result(projection: Projection, dialect: Dialect) -> tuple[str, str]:
    """SQL conditions: the query's result has the row before the change; it has the row after the change."""
    before, after = projection.scope(BEFORE), projection.scope(AFTER)
    return (
        f"({BEFORE.present} AND coalesce({projection.condition(before, dialect)}, false))",
        f"({AFTER.present} AND coalesce({projection.condition(after, dialect)}, false))",
    )


def changes_sql(projection: Projection, dialect: Dialect) -> str:
    """Rows that the result has after a change, and tombstones of rows that it had only before."""
    before, after = projection.scope(BEFORE), projection.scope(AFTER)
    was_in, is_in = in_result(projection, dialect)
    numbered = "SELECT *, row_number() OVER (ORDER BY time) AS n FROM client_changes"
    items, keys = projection.items(after, dialect), projection.key_items(before, dialect)
    rows = f"SELECT {', '.join(items)}, false AS tombstone, n FROM ({numbered}) WHERE {is_in}"
    tombstones = f"SELECT {', '.join(keys)}, true AS tombstone, n FROM ({numbered}) WHERE {was_in} AND NOT {is_in}"
    return f"SELECT * FROM ({rows} UNION ALL {tombstones}) ORDER BY n"
