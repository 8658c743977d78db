"""Batch sizes of push queries."""

import pyarrow as pa

from holdfast.names import CollectionId

BATCH_BYTES = 2 << 20
"""Approximate memory of a batch; its encoded form may need as much again."""
FIRST_ROWS, MOST_ROWS = 1_000, 100_000
"""Rows of a batch: few at first, until their size is known."""


class BatchSizes:
    """Rows per batch of each collection. Shared, so that readers at the same position read the same batches."""

    def __init__(self) -> None:
        self._rows: dict[CollectionId, int] = {}

    def rows(self, collection: CollectionId) -> int:
        return self._rows.get(collection, FIRST_ROWS)

    def observe(self, collection: CollectionId, read: pa.Table) -> None:
        """Adjust the batch size to the size of the rows that were read."""
        if read.num_rows:
            self._rows[collection] = max(1, min(rows_that_fit(read), 4 * self.rows(collection), MOST_ROWS))


def rows_that_fit(rows: pa.Table) -> int:
    """How many rows of this size fit in a batch."""
    fit: int = BATCH_BYTES * rows.num_rows // max(rows.nbytes, 1)
    return fit
