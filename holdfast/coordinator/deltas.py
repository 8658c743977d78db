"""Rows and changes of tables, as a tick takes them."""

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime.store.port import Layout, Time


def as_delta(pages: list[pa.Table], layout: Layout) -> pa.Table:
    """Rows as the changes that would make them: absent before, present after."""
    rows = pa.concat_tables(pages)
    count = rows.num_rows
    columns: dict[str, pa.ChunkedArray | pa.Array] = {f"k{i}": rows.column(f"k{i}") for i in range(len(layout.key))}
    columns["b_present"] = pa.repeat(pa.scalar(False), count)
    columns |= {f"b{i}": pa.nulls(count, rows.column(f"c{i}").type) for i in range(len(layout.value))}
    columns["b_ts"] = pa.nulls(count, pa.int64())
    columns["a_present"] = pa.repeat(pa.scalar(True), count)
    columns |= {f"a{i}": rows.column(f"c{i}") for i in range(len(layout.value))}
    columns["a_ts"] = rows.column("ts")
    return pa.table(columns)


def by_time(changes: pa.Table) -> list[tuple[Time, pa.Table]]:
    """The deltas of each time; changes come in the order of their times."""
    times = changes.column("time").to_pylist()
    # When a row was deleted is not kept: it counts as of when it was last written.
    known = pc.coalesce(changes.column("a_ts"), changes.column("b_ts"))
    rest = changes.set_column(changes.column_names.index("a_ts"), "a_ts", known).drop_columns(["time"])
    found, start = [], 0
    for place in range(1, len(times) + 1):
        if place == len(times) or times[place] != times[start]:
            found.append((Time(times[start]), rest.slice(start, place - start)))
            start = place
    return found
