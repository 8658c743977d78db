"""Reads streams again from their topics, as far as they are visible."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Protocol

import pyarrow as pa

from holdfast.catalog.objects import CatalogObject
from holdfast.names import TopicName
from holdfast.runtime.decode import RecordDecoder
from holdfast.runtime.program import TopicInput
from holdfast.runtime.serdes.decoding import Decoder
from holdfast.runtime.spark.views import decoded_view
from holdfast.runtime.store.port import Store, Time

Partition = tuple[TopicName, int]
StreamPlace = Mapping[Partition, int]
"""The offset to be read next, per partition."""


class Offsets(Protocol):
    """What a stream's reader asks about topics."""

    def starts(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]: ...


class Ranges(Protocol):
    """What a stream's reader reads topics with."""

    def read(self, ranges: Mapping[Partition, tuple[int, int]]) -> pa.Table: ...


KEPT_BATCHES = 32
"""Decoded batches that are kept for other readers at the same place."""


class StreamReader:
    """Shared by all push queries of a process: readers at the same place share one decoding."""

    def __init__(
        self,
        store: Store,
        admin: Offsets,
        ranges: Ranges,
        decoder: RecordDecoder,
        read_time: Callable[[], Time],
        records: Callable[[pa.Table], pa.Table],
    ) -> None:
        self._store, self._admin, self._ranges, self._decoder = store, admin, ranges, decoder
        self._read_time, self._records = read_time, records
        self._kept: OrderedDict[tuple[object, ...], pa.Table] = OrderedDict()
        self._lock = Lock()

    def start(self, stream: CatalogObject, *, earliest: bool) -> StreamPlace:
        """Where a reader begins: behind everything visible, or at the first record that the topic still has."""
        ends = self.ends(stream)
        return self._admin.starts(ends) if earliest else ends

    def ends(self, stream: CatalogObject) -> dict[Partition, int]:
        """How far a stream is visible: by the remap, or for a derived one, by what is published."""
        marks = self._store.published_at(self._store.last_time()) if stream.derived else self._store.remap_ends()
        return {(m.topic, m.partition): m.end_offset for m in marks if m.topic == stream.topic}

    def read(self, stream: CatalogObject, place: StreamPlace, most: int) -> tuple[pa.Table, StreamPlace, Time] | None:
        """The rows at a place, at most about `most`, the place behind them and their time."""
        time = self._read_time()
        ranges = {}
        for partition, end in self.ends(stream).items():
            start = place.get(partition, 0)
            if end > start:
                ranges[partition] = (start, min(end, start + most))
        if not ranges:
            return None
        return self._decoded(stream, ranges), {**place, **{p: end for p, (_, end) in ranges.items()}}, time

    def _decoded(self, stream: CatalogObject, ranges: Mapping[Partition, tuple[int, int]]) -> pa.Table:
        key = (stream.name, str(stream.schema), *sorted(ranges.items()))
        with self._lock:
            if key not in self._kept:
                decoder = Decoder(stream.schema, stream.formats)
                source = TopicInput(stream.topic, decoder, decoded_view(stream.topic, decoder))
                records = self._records(self._ranges.read(ranges))
                self._kept[key] = self._decoder.decode(source, records)
                while len(self._kept) > KEPT_BATCHES:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]
