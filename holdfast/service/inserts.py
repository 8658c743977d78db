"""Inserts rows of clients: into a topic, or through a tick if a query maintains the object."""

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa

from holdfast.catalog.objects import CatalogObject, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.coordinator.requests import Requests
from holdfast.coordinator.tick_loop import TickLoop
from holdfast.errors import BindError
from holdfast.kafka.port import Writer
from holdfast.kafka.records import Outgoing
from holdfast.names import show
from holdfast.runtime import physical_columns as col
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.runtime.store.port import SqlReader
from holdfast.serving.insert import row_of
from holdfast.sql.bind.insert import BoundInsert
from holdfast.wall_clock import WallClock


class Inserts:
    """Writes rows; they are durable on return. Thread-safe."""

    def __init__(
        self,
        store: SqlReader,
        writer: Writer,
        ticks: TickLoop,
        requests: Requests,
        catalog: Callable[[], Catalog],
        clock: WallClock,
    ) -> None:
        self._store, self._writer, self._ticks = store, writer, ticks
        self._requests, self._catalog, self._clock = requests, catalog, clock

    def insert(self, bound: BoundInsert) -> None:
        """Insert one row."""
        self.insert_rows(bound.target, row_of(bound, self._store, self._clock.now_ms()))

    def insert_rows(self, target: CatalogObject, rows: pa.Table) -> None:
        """Insert rows (`present, k0.., c0.., ts`)."""
        if target.read_only:
            raise BindError(f'{target.KIND} "{target.name}" is read-only')
        writers = [entry.id for entry in self._catalog().writers(target.name)] if target.derived else []
        if writers:
            query = target.query if target.query in writers else writers[0]
            for run in _runs(rows, len(target.schema.key)) if isinstance(target, Table) else (rows,):
                self._requests.ask(
                    f"INSERT INTO {show(target.name)}", partial(self._ticks.insert, query, _with_order(run))
                )
            return
        assert target.topic is not None
        encoded = Encoder(target.schema, target.formats).encode(rows, self._store)
        self._writer.write(Outgoing(target.topic, encoded))


def _runs(rows: pa.Table, keys: int) -> Iterator[pa.Table]:
    """Split the rows, in order, where a key repeats: a tick changes a key of a table once."""
    start = 0
    seen: set[str] = set()
    for i, key in enumerate(zip(*(rows.column(col.key(n)).to_pylist() for n in range(keys)), strict=True)):
        if repr(key) in seen:
            yield rows.slice(start, i - start)
            start = i
            seen.clear()
        seen.add(repr(key))
    yield rows.slice(start)


def _with_order(rows: pa.Table) -> pa.Table:
    """Add the columns by which a tick orders rows."""
    numbers = pa.array(range(rows.num_rows), pa.int64())
    partitions = pa.repeat(pa.scalar(0, pa.int32()), rows.num_rows)
    return rows.append_column(col.PARTITION, partitions).append_column(col.OFFSET, numbers)
