"""Re-reads streams from their topics, up to the visible offsets."""

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

from holdfast.catalog.objects import CatalogObject
from holdfast.errors import TopicChanged
from holdfast.kafka.changes import check_positions
from holdfast.kafka.port import Ranges, TopicAdmin
from holdfast.kafka.records import Partition
from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime.program import TopicInput
from holdfast.runtime.record_decoder import RecordDecoder
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.spark.views import decoded_view
from holdfast.runtime.store.port import Store, Time
from holdfast.serving.push.single_flight import SingleFlight
from holdfast.serving.push.topic_reads import TopicReads

StreamPosition = Mapping[Partition, int]
"""The next offset to read, per partition."""
OffsetRanges = tuple[tuple[Partition, tuple[int, int]], ...]
"""The first offset and the end offset, per partition."""


Identity = tuple[QueryId | None, str | None]
"""The query that writes a stream, and the id of its topic, once that is known."""
RESTART = "Start the query again to read the new topic."
CACHED_BATCHES = 32
"""Decoded batches cached for other readers at the same position."""


class StreamReader:
    """Shared by all push queries of a process: readers at the same position share decoded rows."""

    def __init__(
        self,
        store: Store,
        admin: TopicAdmin,
        ranges: Ranges,
        decoder: RecordDecoder,
        read_time: Callable[[], Time],
        records: Callable[[pa.Table], pa.Table],
        writers: Callable[[ObjectName], Iterable[QueryId]],
        reads: TopicReads,
        loss: Callable[[TopicName], str | None],
        sink_id: Callable[[TopicName], str | None],
    ) -> None:
        """`loss` says why a topic can no longer be read, with a hint; `sink_id` gives the known id of a sink topic."""
        self._store, self._admin, self._ranges, self._decoder = store, admin, ranges, decoder
        self._read_time, self._records, self._writers, self._loss = read_time, records, writers, loss
        self._sink_id = sink_id
        self.reads = reads
        self._decoded: SingleFlight[pa.Table] = SingleFlight(CACHED_BATCHES)

    def start(self, stream: CatalogObject, *, earliest: bool) -> StreamPosition:
        """The start position: after everything visible, or at the first record that the topic retains."""
        self.check(stream, self.identity(stream))
        ends = self.visible(stream)[1]
        if not earliest:
            return ends
        self._check_cached(stream)
        return self._admin.starts(ends)

    def visible(self, stream: CatalogObject) -> tuple[Time, dict[Partition, int]]:
        """A time, and the end offsets visible at it: from the remap; for a derived stream, the published offsets.

        Rows pending in an outbox are not visible yet: the time is before their tick.
        """
        time = self._read_time()
        if stream.query is None:
            marks = self._store.remap_at(time)
        else:
            pending = self._store.pending(self._writers(stream.name))
            time = Time(min(time, pending[0].time - 1)) if pending else time
            marks = self._store.published_ends()
        return time, {(m.topic, m.partition): m.offset for m in marks if m.topic == stream.topic}

    def check_ends(self, position: StreamPosition, ends: StreamPosition) -> None:
        """Raise `TopicChanged` when the topic ends before a position: nothing would come until it has grown past it."""
        check_positions(self._admin, position, ends)

    def has_more(self, stream: CatalogObject, position: StreamPosition) -> bool:
        """Whether there are records after a position, visible now or soon."""
        marks = self._store.remap_ends() if stream.query is None else self._store.published_ends()
        return any(m.offset > position.get((m.topic, m.partition), 0) for m in marks if m.topic == stream.topic)

    def read(self, stream: CatalogObject, ranges: OffsetRanges) -> pa.Table:
        """The rows of ranges of a stream's topic, in order. In a turn of `reads`."""

        def decode() -> pa.Table:
            decoder = Decoder(stream.schema, stream.formats, window=stream.window)
            assert stream.topic is not None
            source = TopicInput(stream.topic, decoder, decoded_view(stream.topic, decoder))
            records = self._ranges.read(dict(ranges), timeout=self.reads.timeout(stream.topic))
            rows = self._decoder.decode(source, self._records(records))
            return rows.sort_by([("part", "ascending"), ("off", "ascending")])

        return self._decoded.get((stream.name, self.identity(stream), str(stream.schema), ranges), decode)

    def check(self, stream: CatalogObject, identity: Identity) -> None:
        """Raise if the topic of a stream is gone, or another one than the one with this identity."""
        if stream.topic is None:
            return
        before, now = identity[1], self.identity(stream)[1]
        loss = self._loss(stream.topic) if stream.query is None else None
        if loss is None and before is not None and now != before:
            recreated = f" and recreated (now its id is {now})" if now is not None else ""
            loss = f'topic "{stream.topic}" was deleted{recreated}\nHINT: {RESTART}'
        if loss is not None:
            message, _, hint = loss.partition("\nHINT: ")
            detail = f'The query reads the topic for stream "{stream.name}".'
            raise TopicChanged(message, detail=detail, hint=hint or RESTART)

    def identity(self, stream: CatalogObject) -> Identity:
        """Distinguishes a topic from another one of the same name, which has other records at the same offsets."""
        if stream.query is not None and stream.topic is not None:
            return stream.query, self._sink_id(stream.topic)
        return stream.query, self._store.get(f"topic/{stream.topic}")

    def _check_cached(self, stream: CatalogObject) -> None:
        """Raise if the topic of a derived stream is not the one with the known id: rows of that one may be cached."""
        known = self._sink_id(stream.topic) if stream.query is not None and stream.topic is not None else None
        if stream.topic is None or known is None:
            return
        now = self._admin.describe([stream.topic]).get(stream.topic)
        if now is not None and now.id != known:
            raise TopicChanged(
                f'topic "{stream.topic}" was deleted and recreated (its id was {known}, now it is {now.id})',
                detail=f'The query reads the topic for stream "{stream.name}".',
                hint="Start the query again in a few seconds.",
            )
