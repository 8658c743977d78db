"""Rows of tables as the changes that would make them."""

import pyarrow as pa

from holdfast.runtime.store.port import Layout


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
