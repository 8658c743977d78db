"""Windows that a tick changes and that expire in it: the sink topic gets their last results, the table does not."""

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.names import QueryId
from holdfast.runtime import physical_columns as col
from holdfast.runtime.program import Program
from holdfast.runtime.row_mask import row_mask
from holdfast.runtime.store.port import SqlReader, TickStage


class PassedWindows:
    """The passed windows of each query in a tick: at least their keys."""

    def __init__(self, stage: TickStage, reader: SqlReader) -> None:
        self._stage, self._reader = stage, reader
        self._windows: dict[QueryId, pa.Table] = {}

    def add(self, query: QueryId, windows: pa.Table) -> None:
        if windows.num_rows:
            self._windows[query] = windows

    def in_delta(self, query: QueryId, delta: pa.Table) -> pa.Table:
        """The delta of a state, with the passed windows as they were last."""
        passed = self._windows.get(query)
        if passed is None:
            return delta
        return pa.concat_tables([delta.filter(pc.invert(self._is_among(delta, passed))), passed])

    def taken_out(self, program: Program, rows: pa.Table) -> pa.Table:
        """The rows of a table, of which those of passed windows become deletes; the sink topic gets these first."""
        passed = self._windows.get(program.query)
        if passed is None:
            return rows
        present, is_passed = rows.column(col.PRESENT), self._is_among(rows, passed)
        if program.sink is not None:
            self._stage.enqueue(program.query, rows.filter(pc.and_(is_passed, present)))
        remains = pc.and_(present, pc.invert(is_passed))
        return rows.set_column(rows.schema.get_field_index(col.PRESENT), col.PRESENT, remains)

    def _is_among(self, rows: pa.Table, passed: pa.Table) -> pa.Array:
        """Whether each row has the key of a passed window."""
        keys = [name for name in rows.column_names if name in passed.column_names and name[0] == "k"]
        same = " AND ".join(f"p.{key} IS NOT DISTINCT FROM t.{key}" for key in keys)
        condition = f"EXISTS (SELECT 1 FROM passed p WHERE {same})"
        return row_mask(self._reader, rows, keys, condition, {"passed": passed.select(keys)})
