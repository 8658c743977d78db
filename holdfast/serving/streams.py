"""Reads streams again from their topics, as far as they are visible."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import pyarrow as pa

from holdfast.catalog.objects import CatalogObject
from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime.decode import RecordDecoder
from holdfast.runtime.program import TopicInput
from holdfast.runtime.serdes.decoding import Decoder
from holdfast.runtime.spark.views import decoded_view
from holdfast.runtime.store.port import Store, Time
from holdfast.serving.shared import Shared

Partition = tuple[TopicName, int]
StreamPlace = Mapping[Partition, int]
"""The offset to be read next, per partition."""
Stretch = tuple[tuple[Partition, tuple[int, int]], ...]
"""Offsets from and up to, per partition."""


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
        writers: Callable[[ObjectName], Iterable[QueryId]],
    ) -> None:
        self._store, self._admin, self._ranges, self._decoder = store, admin, ranges, decoder
        self._read_time, self._records, self._writers = read_time, records, writers
        self._decoded: Shared[pa.Table] = Shared(KEPT_BATCHES)

    def start(self, stream: CatalogObject, *, earliest: bool) -> StreamPlace:
        """Where a reader begins: behind everything visible, or at the first record that the topic still has."""
        ends = self.visible(stream)[1]
        return self._admin.starts(ends) if earliest else ends

    def visible(self, stream: CatalogObject) -> tuple[Time, dict[Partition, int]]:
        """A time, and how far the stream is visible at it: by the remap, or for a derived one, by what is published.

        What a tick owes to its sink topic is not visible yet: the time is then before that tick.
        """
        time = self._read_time()
        if stream.query is None:
            marks = self._store.remap_at(time)
        else:
            writers = set(self._writers(stream.name))
            owed = [owed.time for owed in self._store.owed() if owed.sink in writers]
            time = Time(min(time, *(at - 1 for at in owed))) if owed else time
            marks = self._store.published_at(self._store.last_time())
        return time, {(m.topic, m.partition): m.end_offset for m in marks if m.topic == stream.topic}

    def behind(self, stream: CatalogObject, place: StreamPlace) -> bool:
        """Whether something is behind a place, visible now or in a moment."""
        marks = self._store.remap_ends() if stream.query is None else self._store.published_at(self._store.last_time())
        return any(m.end_offset > place.get((m.topic, m.partition), 0) for m in marks if m.topic == stream.topic)

    def read(self, stream: CatalogObject, ranges: Stretch) -> pa.Table:
        """The rows of ranges of a stream's topic, in order."""

        def decode() -> pa.Table:
            decoder = Decoder(stream.schema, stream.formats, window=stream.window)
            assert stream.topic is not None
            source = TopicInput(stream.topic, decoder, decoded_view(stream.topic, decoder))
            rows = self._decoder.decode(source, self._records(self._ranges.read(dict(ranges))))
            return rows.sort_by([("part", "ascending"), ("off", "ascending")])

        return self._decoded.get((stream.name, str(stream.schema), ranges), decode)
