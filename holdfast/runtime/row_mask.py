"""Which rows of a table satisfy a condition that DuckDB evaluates."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime.store.port import SqlReader

PLACE = "place"


def row_mask(
    reader: SqlReader, rows: pa.Table, columns: Sequence[str], condition: str, tables: Mapping[str, pa.Table]
) -> pa.Array:
    """Whether each row satisfies a condition on some of its columns, those of `t`, and on other tables.

    In the order of the rows, which a join does not keep.
    """
    places = pa.array(range(rows.num_rows), pa.int64())
    arrived = rows.select(list(columns)).append_column(PLACE, places)
    found = reader.evaluate_over(f"SELECT {PLACE} FROM arrived t WHERE {condition}", {"arrived": arrived, **tables})
    return pc.is_in(places, found.column(PLACE).combine_chunks())
