"""The rows of clients' queries, made once for all who read them at the same place."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import pyarrow as pa

from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.spark.engine import Engine, Round
from holdfast.serving.follow import Widths
from holdfast.serving.paths import ReadStore
from holdfast.serving.projection import Projection, on_spark
from holdfast.serving.pull import as_declared
from holdfast.serving.shared import Shared

KEPT_BATCHES = 8


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rows of a batch, and what was made of them, for all who read it."""

    rows: pa.Table
    encoded: dict[Hashable, bytes] = field(default_factory=dict)


class RowReader:
    """Evaluates the queries of all pushes of a process; equal ones at the same place once."""

    def __init__(self, store: ReadStore, engine: Engine) -> None:
        self.store, self.engine, self.widths = store, engine, Widths()
        self._kept: Shared[Chosen] = Shared(KEPT_BATCHES)

    def shared(self, key: Hashable, make: Callable[[], pa.Table]) -> Chosen:
        return self._kept.get(key, lambda: Chosen(make()))

    def rows(self, projection: Projection, rows: pa.Table) -> pa.Table:
        """The query over rows that are true."""
        plain = projection.plain_columns()
        if plain is not None:
            chosen = rows.select(plain).rename_columns([f"r{i}" for i in range(len(plain))])
        elif projection.dialect is Dialect.DUCKDB:
            chosen = self.store.evaluate_over(projection.select("t", Dialect.DUCKDB), {"t": rows})
        else:
            chosen = on_spark(self.engine, projection, rows)
        return as_declared(chosen, projection)

    def changes(self, projection: Projection, changes: pa.Table) -> pa.Table:
        """The query over changes: rows that became true, and tombstones."""
        found = self.evaluate(projection, changes_sql(projection, projection.dialect), changes)
        return as_declared(found.drop_columns(["n"]), projection)

    def evaluate(self, projection: Projection, sql: str, changes: pa.Table) -> pa.Table:
        """A statement over `client_changes`, in the dialect of a projection."""
        if projection.dialect is Dialect.DUCKDB:
            return self.store.evaluate_over(sql, {"client_changes": changes})
        # Spark knows no unsigned numbers.
        signed = changes.set_column(0, "time", changes.column("time").cast(pa.int64()))
        return self.engine.select(sql, Round({"client_changes": signed}, {}))


def with_no_tombstones(rows: pa.Table) -> pa.Table:
    return rows.append_column("tombstone", pa.repeat(pa.scalar(False), rows.num_rows))


def shown(projection: Projection, dialect: Dialect) -> tuple[str, str]:
    """Whether a changed row was shown before the change, and whether it is after it."""
    before, after = projection.scope("b", "b_ts"), projection.scope("a", "a_ts")
    return (
        f"(b_present AND coalesce({projection.condition(before, dialect)}, false))",
        f"(a_present AND coalesce({projection.condition(after, dialect)}, false))",
    )


def changes_sql(projection: Projection, dialect: Dialect) -> str:
    """Rows that are true after a change, and tombstones of rows that were shown before it and are no more."""
    before, after = projection.scope("b", "b_ts"), projection.scope("a", "a_ts")
    was_shown, is_shown = shown(projection, dialect)
    numbered = "SELECT *, row_number() OVER (ORDER BY time) AS n FROM client_changes"
    items, keys = projection.items(after, dialect), projection.key_items(before, dialect)
    rows = f"SELECT {', '.join(items)}, false AS tombstone, n FROM ({numbered}) WHERE {is_shown}"
    gone = f"SELECT {', '.join(keys)}, true AS tombstone, n FROM ({numbered}) WHERE {was_shown} AND NOT {is_shown}"
    return f"SELECT * FROM ({rows} UNION ALL {gone}) ORDER BY n"
