"""The next slice of queries that are catching up.

A query of topics reads them by ranges up to the ends of the remap. A query of tables takes the tables' rows as of the
last tick, in one slice unless they are many; one whose result is to have their history takes it time by time. A query
of a derived stream reads the stream's sink topic as far as it is published, and then what is still owed to it. Queries
at the same place of the same inputs share a slice.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass

import pyarrow as pa

from holdfast.config import Settings
from holdfast.coordinator.clock import Clock
from holdfast.coordinator.deltas import as_delta
from holdfast.coordinator.hydration import Hydration
from holdfast.coordinator.intake import as_ends, as_moved, by_topic, ranges_by_topic
from holdfast.coordinator.publishing import OutboxStore, Publishing
from holdfast.coordinator.replay import Replay
from holdfast.coordinator.slices import PASSED_ON, Ends, Partition, Slices, in_step
from holdfast.kafka.admin import Admin
from holdfast.kafka.consumer import RangeReader
from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.program import Program, TopicInput
from holdfast.runtime.progress import read_ends
from holdfast.runtime.spark.engine import ViewInput
from holdfast.runtime.spark.views import decoded_view
from holdfast.runtime.store.port import Moved, Time
from holdfast.runtime.tick import TickInputs

HYDRATED_AT_ONCE = 500_000
"""So many rows of tables are given to a query that begins in one slice."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A slice: the queries, what they read, how far that goes; with the `last` one they have caught up.

    One of the past is committed `at` its time. After one that does not go on (`goes_on`), a crash has the queries begin
    again. Of `short` ones several may come between two ticks.
    """

    queries: Mapping[QueryId, Program]
    inputs: TickInputs
    moved: tuple[Moved, ...]
    done: float
    last: bool
    at: Time | None = None
    goes_on: bool = True
    short: bool = False


class Backfill:
    """Cuts slices. `publishing` is set once there is one."""

    def __init__(
        self,
        settings: Settings,
        store: OutboxStore,
        clock: Clock,
        admin: Admin,
        ranges: RangeReader,
        slices: Slices,
    ) -> None:
        self._settings, self._store, self._clock = settings, store, clock
        self._admin, self._ranges, self._slices = admin, ranges, slices
        self._replay = Replay(store)
        self.publishing: Publishing | None = None
        self._hydration: Hydration | None = None
        self.starts: Callable[[ObjectName], Time | None] = lambda _name: None
        """Where the history of an object is to start; None when it starts once it is built."""

    def next(self, waiting: Mapping[QueryId, Program], dataflow: Dataflow, remap: Ends) -> Piece:
        """The next slice of the first waiting query and of those that can share it."""
        if self._hydration is not None:
            return self._of_large_tables(self._hydration)
        first = next(iter(waiting.values()))
        at = self._at(first.query)
        keepers = {name: keeper for name in sorted(first.objects) if (keeper := dataflow.keeper(name)) is not None}
        tables = {name: keeper for name, keeper in keepers.items() if keeper.collection is not None}
        if (start := self.starts(first.object)) is not None:
            return self._of_the_past(first, tables, start)
        together = {
            q: p
            for q, p in waiting.items()
            if _reads_same(p, first) and self._at(q) == at and self.starts(p.object) is None
        }
        if tables:
            return self._of_tables(tables, together)
        if not keepers:
            return self._of_topics(first.topics, at, together, remap)
        assert self.publishing is not None
        with self.publishing.paused():
            return self._of_derived_streams(keepers, dataflow, first.topics, at, together, remap)

    def look_at(self, waiting: Mapping[QueryId, Program]) -> None:
        """Give up what was begun for queries that do not wait any more, or not as they were."""
        if self._hydration is not None and not self._hydration.go_on_with(waiting):
            self._end_hydration()

    def committed(self, piece: Piece) -> None:
        """A slice is done; what is not told to be comes again."""
        if self._hydration is not None:
            self._hydration.taken()
            if piece.last:
                self._end_hydration()

    def _end_hydration(self) -> None:
        assert self._hydration is not None
        self._hydration.close()
        self._hydration = None

    def set_floor(self, ends: Iterable[Moved]) -> None:
        """What sink topics hold up to here was written by a store that is given up: it will all be written again."""
        for end in ends:
            self._store.put(f"floor/{end.topic}/{end.partition}", str(end.end_offset))

    def _at(self, query: QueryId) -> dict[Partition, int]:
        return read_ends(self._store.positions(query))

    def _of_topics(self, topics: Set[TopicName], at: Ends, together: Mapping[QueryId, Program], remap: Ends) -> Piece:
        ends = {p: end for p, end in remap.items() if p[0] in topics}
        starts = self._starts(at, ends)
        until = self._until(starts, ends, together)
        last = all(until[p] >= end for p, end in ends.items())
        read = self._read({p: (starts[p], end) for p, end in until.items()})
        return Piece(together, TickInputs(read), as_moved(until), _part(until, ends), last)

    def _until(self, starts: Ends, ends: Ends, together: Mapping[QueryId, Program]) -> dict[Partition, int]:
        passed_on = any(program.passes_rows_on for program in together.values())
        until = self._slices.cut(starts, ends, passed_on=passed_on)
        if len(until) == 1 or not any(program.is_timed for program in together.values()):
            return until
        following = self._ranges.read({p: (end, end + 1) for p, end in until.items() if end < ends[p]})
        places = zip(following.column("topic").to_pylist(), following.column("partition").to_pylist(), strict=True)
        times = dict(zip(places, following.column("timestamp").to_pylist(), strict=True))
        return in_step(starts, until, times, lambda time: self._admin.offsets_at(until, time))

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

    def _of_tables(self, keepers: Mapping[ObjectName, Program], together: Mapping[QueryId, Program]) -> Piece:
        """The rows of all tables as of one time; in many slices when they are many."""
        at = self._clock.read_time()
        if sum(self._store.count(k.collection) for k in keepers.values() if k.collection) > HYDRATED_AT_ONCE:
            found = {name: (k.collection, k.layout) for name, k in keepers.items() if k.collection is not None}
            self._store.set_upper([collection for collection, _ in found.values()], Time(at + 1))
            slice_bytes = self._settings.max_bytes_per_tick // PASSED_ON
            self._hydration = Hydration(self._store, together, found, at, slice_bytes)
            return self._of_large_tables(self._hydration)
        rows: dict[ObjectName, pa.Table] = {}
        for name, keeper in keepers.items():
            assert keeper.collection is not None
            self._store.set_upper([keeper.collection], Time(at + 1))
            pages = list(self._store.snapshot(keeper.collection, at))
            if pages:
                rows[name] = as_delta(pages, keeper.layout)
        return Piece(together, TickInputs({}, rows), (), 1.0, last=True)

    def _of_large_tables(self, hydration: Hydration) -> Piece:
        part = hydration.next()
        return Piece(hydration.queries, part.inputs, (), part.done, part.last, goes_on=False, short=part.done == 1.0)

    def _of_the_past(self, program: Program, tables: Mapping[ObjectName, Program], start: Time) -> Piece:
        queries = {program.query: program}
        step = self._replay.next(program.query, tables, start)
        if step is None:
            return Piece(queries, TickInputs({}), (), 1.0, last=True)
        return Piece(queries, step.inputs, step.moved, step.done, last=False, at=step.at)

    def _of_derived_streams(
        self,
        keepers: Mapping[ObjectName, Program],
        dataflow: Dataflow,
        topics: Set[TopicName],
        at: Ends,
        together: Mapping[QueryId, Program],
        remap: Ends,
    ) -> Piece:
        """What is published of the streams, with what the topics beside them have; at last what is still owed."""
        readings: dict[ObjectName, TopicInput] = {}
        for name, keeper in keepers.items():
            assert keeper.sink is not None
            decoder = keeper.sink.encoder.decoder()
            readings[name] = TopicInput(keeper.sink.topic, decoder, decoded_view(keeper.sink.topic, decoder))
        sinks = {reading.topic for reading in readings.values()}
        published = as_ends(self._store.published_at(self._store.last_time()))
        ends = {p: end for p, end in published.items() if p[0] in sinks}
        starts = self._above_floor(self._starts(at, ends), ends)
        raw = {p: end for p, end in remap.items() if p[0] in topics}
        starts, ends = {**starts, **self._starts(at, raw)}, {**ends, **raw}
        until = self._until(starts, ends, together)
        if any(until[p] > start for p, start in starts.items()):
            read = self._read({p: (starts[p], end) for p, end in until.items()})
            decoded = {name: reading for name, reading in readings.items() if reading.topic in read}
            return Piece(together, TickInputs(read, decoded=decoded), as_moved(until), _part(until, ends), last=False)
        owed = sorted(self._store.owed(), key=lambda o: (o.time, o.sink))
        rows: dict[ObjectName, pa.Table] = {}
        for name in keepers:
            writers = {writer.query for writer in dataflow.keepers(name)}
            parts = [self._store.owed_rows(o.sink, o.time) for o in owed if o.sink in writers]
            if parts:
                rows[name] = as_stream(parts)
        return Piece(together, TickInputs({}, rows), (), 1.0, last=True)


def _reads_same(program: Program, other: Program) -> bool:
    return program.topics == other.topics and program.objects == other.objects


def as_stream(tables: list[pa.Table]) -> pa.Table:
    """Rows of an outbox as rows of a stream, in their order."""
    rows = pa.concat_tables(tables)
    headers = f"k{sum(name.startswith('k') for name in rows.column_names) - 1}"
    rows = rows.rename_columns(["hdr" if name == headers else name for name in rows.column_names])
    order = pa.array(range(rows.num_rows), pa.int64())
    return rows.append_column("part", pa.repeat(pa.scalar(0, pa.int32()), rows.num_rows)).append_column("off", order)


def _part(until: Ends, ends: Ends) -> float:
    whole = sum(ends.values())
    return sum(until.values()) / whole if whole else 1.0
