"""The cursor source of any query: evaluates it at each time at which one of its tables changed, and compares."""

from collections import deque
from collections.abc import Iterator, Sequence

import pyarrow as pa

from holdfast.names import CollectionId
from holdfast.runtime.store.port import ChangeRange, Time
from holdfast.serving.pull.query import rows_at
from holdfast.serving.push.batch_size import BATCH_BYTES, rows_that_fit
from holdfast.serving.push.row_reader import RowReader
from holdfast.serving.push.update_rows import UpdateFormat
from holdfast.sql.read.pull import BoundRead

DIFFERENCE = """
SELECT CAST(1 AS BIGINT) AS diff, * FROM (SELECT * FROM after EXCEPT ALL SELECT * FROM before)
UNION ALL SELECT CAST(-1 AS BIGINT), * FROM (SELECT * FROM before EXCEPT ALL SELECT * FROM after)
ORDER BY 1"""


class QueryChanges:
    """The changes of a query with joins or aggregates, as rows of SUBSCRIBE."""

    def __init__(self, query: BoundRead, updates: UpdateFormat, reader: RowReader) -> None:
        self.tables = tuple({table.name: table for table in query.tables}.values())
        self._query, self._updates, self._reader = query, updates, reader
        self._collections = [CollectionId(table.name) for table in self.tables]
        self._unread: deque[Time] = deque()
        """Times of known changes that were not read yet."""
        self._last: pa.Table | None = None
        """The result after the last change, if it is small."""

    def snapshot(self, at: Time) -> Iterator[pa.Table]:
        rows = self._rows(at)
        if self._updates.key:
            found = self._difference(rows.schema.empty_table(), rows, at)
        else:
            found = self._updates.rows(rows, at)
        width = max(1, rows_that_fit(found))
        return (found.slice(start, width) for start in range(0, found.num_rows, width))

    def ranges(self, after: Time, to: Time) -> Sequence[ChangeRange]:
        """Only the next change: each may take long, and the cursor's pin advances with it."""
        if not self._unread:
            store = self._reader.store
            changed = [each for each in self._collections if store.changed_at(each) > after]
            self._unread.extend(sorted({time for each in changed for time in store.change_times(each, after, to)}))
        return [ChangeRange(after, self._unread.popleft())] if self._unread else []

    def changes(self, part: ChangeRange) -> pa.Table:
        """The changes of the query's result at the end of a range, and a progress row if there are any."""
        before = self._last if self._last is not None else self._rows(part.after)
        after = self._rows(part.to)
        found = self._difference(before, after, part.to)
        self._last = after if after.nbytes < BATCH_BYTES else None
        if found.num_rows and self._updates.with_progress:
            return pa.concat_tables([found, self._updates.progress(Time(part.to + 1))])
        return found

    def _rows(self, at: Time) -> pa.Table:
        return rows_at(self._query, at, self._reader.store, self._reader.engine)

    def _difference(self, before: pa.Table, after: pa.Table, time: Time) -> pa.Table:
        sql = self._envelope() if self._updates.key else DIFFERENCE
        found = self._reader.store.evaluate_over(sql, {"before": before, "after": after})
        return self._updates.rows(found.drop_columns(["diff"]), time, found.column("diff"))

    def _envelope(self) -> str:
        """The SQL of ENVELOPE UPSERT: per changed key an upsert, a delete, or a key violation if it has many rows."""
        names = [f"r{i}" for i in range(len(self._query.columns))]
        keys = [names[i] for i in self._updates.key]
        inserted = "count(*) FILTER (WHERE diff > 0)"
        values = [
            name
            if name in keys
            else f"CASE WHEN {inserted} = 1 THEN any_value({name}) FILTER (WHERE diff > 0) END AS {name}"
            for name in names
        ]
        state = f"CASE {inserted} WHEN 0 THEN 'delete' WHEN 1 THEN 'upsert' ELSE 'key_violation' END"
        return f"SELECT {state} AS diff, {', '.join(values)} FROM ({DIFFERENCE}) GROUP BY {', '.join(keys)}"
