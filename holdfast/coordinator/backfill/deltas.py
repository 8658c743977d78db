"""Rows and changes of tables, as a tick takes them."""

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime import physical_columns as col
from holdfast.runtime.physical_columns import AFTER, BEFORE
from holdfast.runtime.store.port import Layout, Time


def as_delta(pages: list[pa.Table], layout: Layout) -> pa.Table:
    """Rows as the changes that would insert them: absent before, present after."""
    rows = pa.concat_tables(pages)
    count = rows.num_rows
    columns: dict[str, pa.ChunkedArray | pa.Array] = {name: rows.column(name) for name in col.keys(len(layout.key))}
    columns[BEFORE.present] = pa.repeat(pa.scalar(False), count)
    columns |= {BEFORE.column(i): pa.nulls(count, rows.column(col.value(i)).type) for i in range(len(layout.value))}
    columns[BEFORE.row_time] = pa.nulls(count, pa.int64())
    columns[AFTER.present] = pa.repeat(pa.scalar(True), count)
    columns |= {AFTER.column(i): rows.column(col.value(i)) for i in range(len(layout.value))}
    columns[AFTER.row_time] = rows.column(col.ROW_TIME)
    return pa.table(columns)


def by_time(changes: pa.Table) -> list[tuple[Time, pa.Table]]:
    """The deltas of each time; changes are ordered by time."""
    times = changes.column("time").to_pylist()
    # The timestamp of a delete is not stored: it gets that of the row's last write.
    known = pc.coalesce(changes.column(AFTER.row_time), changes.column(BEFORE.row_time))
    rest = changes.set_column(changes.column_names.index(AFTER.row_time), AFTER.row_time, known).drop_columns(["time"])
    found, start = [], 0
    for index in range(1, len(times) + 1):
        if index == len(times) or times[index] != times[start]:
            found.append((Time(times[start]), rest.slice(start, index - start)))
            start = index
    return found
