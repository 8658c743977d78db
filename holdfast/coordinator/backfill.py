"""The next slice of queries that are catching up.

A query of a topic reads it by ranges up to the ends of the remap. A query of a table takes the table's rows as of the
last tick, all in one slice. A query of a derived stream reads the stream's sink topic as far as it is published, and
then what is still owed to it. Queries at the same place of the same input share a slice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from holdfast.config import Settings
from holdfast.coordinator.clock import Clock
from holdfast.coordinator.intake import Ends, Partition, as_ends, as_moved, bounded, by_topic, ranges_by_topic
from holdfast.coordinator.publishing import OutboxStore, Publishing
from holdfast.kafka.admin import Admin
from holdfast.kafka.consumer import RangeReader
from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.program import ObjectInput, Program, TopicInput
from holdfast.runtime.progress import read_ends
from holdfast.runtime.serdes.decoding import Decoder
from holdfast.runtime.spark.engine import ViewInput
from holdfast.runtime.spark.views import decoded_view
from holdfast.runtime.store.port import Layout, Moved, Time
from holdfast.runtime.tick import TickInputs


@dataclass(frozen=True, slots=True)
class Piece:
    """A slice: the queries, what they read, how far that goes; with the `last` one they have caught up."""

    queries: Mapping[QueryId, Program]
    inputs: TickInputs
    moved: tuple[Moved, ...]
    done: float
    last: bool


class Backfill:
    """Cuts slices. `publishing` is set once there is one."""

    def __init__(self, settings: Settings, store: OutboxStore, clock: Clock, admin: Admin, ranges: RangeReader) -> None:
        self._settings, self._store, self._clock, self._admin, self._ranges = settings, store, clock, admin, ranges
        self.publishing: Publishing | None = None

    def next(self, waiting: Mapping[QueryId, Program], dataflow: Dataflow, remap: Ends) -> Piece:
        """The next slice of the first waiting query and of those that can share it."""
        first = next(iter(waiting.values()))
        (source,) = first.sources
        if isinstance(source, TopicInput):
            return self._of_topic(first, source.topic, waiting, remap)
        keeper = dataflow.keeper(source.name)
        assert keeper is not None
        together = {
            q: p for q, p in waiting.items() if p.sources == first.sources and self._at(q) == self._at(first.query)
        }
        if keeper.collection is not None:
            return self._of_table(source.name, keeper, together)
        return self._of_derived_stream(source, keeper, together)

    def set_floor(self, ends: Iterable[Moved]) -> None:
        """What sink topics hold up to here was written by a store that is given up: it will all be written again."""
        for end in ends:
            self._store.put(f"floor/{end.topic}/{end.partition}", str(end.end_offset))

    def _at(self, query: QueryId) -> dict[Partition, int]:
        return read_ends(self._store.positions(query))

    def _of_topic(self, first: Program, topic: TopicName, waiting: Mapping[QueryId, Program], remap: Ends) -> Piece:
        at = self._at(first.query)
        together = {
            q: p for q, p in waiting.items() if p.topics == first.topics and not p.objects and self._at(q) == at
        }
        ends = {p: end for p, end in remap.items() if p[0] == topic}
        starts = self._starts(at, ends)
        until = bounded(starts, ends, self._settings.max_records_per_tick)
        last = all(until[p] >= end for p, end in ends.items())
        topics = self._read({p: (starts[p], end) for p, end in until.items()})
        return Piece(together, TickInputs(topics), as_moved(until), _part(until, ends), last)

    def _starts(self, at: Ends, ends: Ends) -> dict[Partition, int]:
        unread = [p for p in ends if p not in at]
        first = self._admin.starts(unread) if unread else {}
        return {p: min(at.get(p, first.get(p, 0)), end) for p, end in ends.items()}

    def _above_floor(self, starts: Ends, ends: Ends) -> dict[Partition, int]:
        floors = {p: int(self._store.get(f"floor/{p[0]}/{p[1]}") or 0) for p in starts}
        return {p: min(max(start, floors[p]), ends[p]) for p, start in starts.items()}

    def _read(self, ranges: Mapping[Partition, tuple[int, int]]) -> dict[TopicName, ViewInput]:
        if sum(end - start for start, end in ranges.values()) > self._settings.small_tick_records:
            return ranges_by_topic(ranges)
        wanted = {p: r for p, r in ranges.items() if r[1] > r[0]}
        return by_topic(self._ranges.read(wanted)) if wanted else {}

    def _of_table(self, name: ObjectName, keeper: Program, together: Mapping[QueryId, Program]) -> Piece:
        assert keeper.collection is not None
        at = self._clock.read_time()
        self._store.set_upper([keeper.collection], Time(at + 1))
        pages = list(self._store.snapshot(keeper.collection, at))
        inputs = TickInputs({}, {name: as_delta(pages, keeper.layout)} if pages else {})
        return Piece(together, inputs, (), 1.0, last=True)

    def _of_derived_stream(self, source: ObjectInput, keeper: Program, together: Mapping[QueryId, Program]) -> Piece:
        assert keeper.sink is not None
        assert self.publishing is not None
        topic = keeper.sink.topic
        decoder = Decoder(keeper.schema, keeper.sink.encoder.formats)
        with self.publishing.paused():
            owed = [o for o in self._store.owed() if o.sink == keeper.query]
            ends = {
                p: end for p, end in as_ends(self._store.published_at(self._store.last_time())).items() if p[0] == topic
            }
            starts = self._above_floor(self._starts(self._at(next(iter(together))), ends), ends)
            until = bounded(starts, ends, self._settings.max_records_per_tick)
            if any(until[p] > start for p, start in starts.items()):
                reading = TopicInput(topic, decoder, decoded_view(topic, decoder))
                topics = self._read({p: (starts[p], end) for p, end in until.items()})
                inputs = TickInputs(topics, decoded={source.name: reading} if topics else {})
                return Piece(together, inputs, as_moved(until), _part(until, ends), last=False)
            rows = [self._store.owed_rows(keeper.query, o.time) for o in sorted(owed, key=lambda o: o.time)]
        inputs = TickInputs({}, {source.name: as_stream(rows)} if rows else {})
        return Piece(together, inputs, (), 1.0, last=True)


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


def as_stream(tables: list[pa.Table]) -> pa.Table:
    """Rows of an outbox as rows of a stream, in their order."""
    rows = pa.concat_tables(tables)
    order = pa.array(range(rows.num_rows), pa.int64())
    return rows.append_column("part", pa.repeat(pa.scalar(0, pa.int32()), rows.num_rows)).append_column("off", order)


def _part(until: Ends, ends: Ends) -> float:
    whole = sum(ends.values())
    return sum(until.values()) / whole if whole else 1.0
