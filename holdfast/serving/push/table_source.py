"""The cursor source of one table."""

from collections.abc import Generator, Iterator, Sequence
from functools import partial

import pyarrow as pa

from holdfast.catalog.objects import Table
from holdfast.names import CollectionId
from holdfast.runtime.store.port import ChangeRange, Store, Time
from holdfast.serving.push.batch_size import BatchSizes


class TableChanges:
    """The rows and changes of a table, in batches that fit in memory."""

    def __init__(self, table: Table, store: Store, sizes: BatchSizes) -> None:
        self.tables = (table,)
        self._collection, self._store, self._sizes = CollectionId(table.name), store, sizes

    def snapshot(self, at: Time) -> Iterator[pa.Table]:
        pages = self._store.snapshot(self._collection, at, page=partial(self._sizes.rows, self._collection))
        try:
            for page in pages:
                self._sizes.observe(self._collection, page)
                yield page
        finally:
            if isinstance(pages, Generator):
                pages.close()

    def ranges(self, after: Time, to: Time) -> Sequence[ChangeRange]:
        return self._store.change_ranges(self._collection, after, to, rows=self._sizes.rows(self._collection))

    def changes(self, part: ChangeRange) -> pa.Table:
        """The rows before and after each change of a range."""
        found = self._store.changes(self._collection, part.after, part.to, part.keys)
        self._sizes.observe(self._collection, found)
        return found
