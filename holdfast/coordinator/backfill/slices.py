"""Cuts backfill slices: what queries that catch up read next.

A query over topics reads them in ranges, up to the ends of the remap. A query over tables takes the tables' rows as of
the last tick, in one slice unless they are many; one whose result needs their history takes it time by time. A query
over a derived stream reads the stream's sink topic as far as it is published, and then its pending rows. Queries at the
same positions of the same inputs share a slice.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass

import pyarrow as pa

from holdfast.coordinator.backfill.deltas import as_delta
from holdfast.coordinator.backfill.hydration import Hydration
from holdfast.coordinator.backfill.replay import Replay
from holdfast.coordinator.intake import as_end_offsets, as_ends, by_topic, ranges_by_topic
from holdfast.coordinator.outbox_batch import OutboxStore
from holdfast.coordinator.publishing import Publishing
from holdfast.coordinator.queries import collections
from holdfast.coordinator.read_limits import SILENT_SECONDS, Ends, Partition, ReadLimits, aligned
from holdfast.coordinator.topics.sink_ids import lost_sink_key
from holdfast.coordinator.uppers import Uppers
from holdfast.errors import TopicChanged
from holdfast.kafka.changes import check_positions
from holdfast.kafka.port import Kafka
from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.program import Program, TopicInput
from holdfast.runtime.spark.engine import ViewInput
from holdfast.runtime.spark.views import decoded_view
from holdfast.runtime.store.port import EndOffset, Time
from holdfast.runtime.tick_inputs import TickInputs


@dataclass(frozen=True, slots=True)
class BackfillSlice:
    """What some queries read next, and how far that goes; with the `last` slice they have caught up.

    A replayed slice commits `at` its time. After a slice that is not `resumable`, a crash makes the queries start over.
    Several `short` slices may run between two ticks.
    """

    queries: Mapping[QueryId, Program]
    inputs: TickInputs
    ends: tuple[EndOffset, ...]
    done: float
    last: bool
    at: Time | None = None
    resumable: bool = True
    short: bool = False


class BackfillSlices:
    """Cuts slices. On the coordinator's thread.

    `history_start` gives where the history of an object has to start; None when it starts once the object is built.
    """

    def __init__(
        self,
        store: OutboxStore,
        uppers: Uppers,
        kafka: Kafka,
        limits: ReadLimits,
        publishing: Publishing,
        history_start: Callable[[ObjectName], Time | None],
    ) -> None:
        self._store, self._uppers = store, uppers
        self._kafka, self._limits, self._publishing = kafka, limits, publishing
        self.history_start = history_start
        self._replay = Replay(store)
        self._hydration: Hydration | None = None

    def next(self, waiting: Mapping[QueryId, Program], dataflow: Dataflow, remap: Ends) -> BackfillSlice | None:
        """The next slice of the first waiting query, and of those that can share it; None when it has to wait."""
        if self._hydration is not None:
            return _hydration_slice(self._hydration)
        first = next(iter(waiting.values()))
        maintainers = {name: each for name in sorted(first.objects) if (each := dataflow.maintainer(name)) is not None}
        tables = {name: each for name, each in maintainers.items() if each.collection is not None}
        if (start := self.history_start(first.object)) is not None:
            return self._replay_slice(first, tables, start)
        positions = self._positions(first.query)
        together = {
            query: program
            for query, program in waiting.items()
            if _reads_same(program, first)
            and self._positions(query) == positions
            and self.history_start(program.object) is None
        }
        if tables:
            return self._table_slice(tables, together)
        if not maintainers:
            return self._topic_slice(first.topics, positions, together, remap)
        if (lost := self._store.get(lost_sink_key(first.query))) is not None:
            message, _, hint = lost.partition("\nHINT: ")
            raise TopicChanged(message, hint=hint)
        together = {query: each for query, each in together.items() if self._store.get(lost_sink_key(query)) is None}
        sinks = {each.sink.topic for each in maintainers.values() if each.sink is not None}
        with self._publishing.paused(sinks) as paused:
            if not paused:
                return None
            return self._stream_slice(maintainers, dataflow, first.topics, positions, together, remap)

    def cancel_all_but(self, waiting: Mapping[QueryId, Program]) -> None:
        """Cancel what was begun for queries that no longer wait, or have another program now."""
        if self._hydration is not None and not self._hydration.continue_with(waiting):
            self._end_hydration()

    def committed(self, done: BackfillSlice) -> None:
        """A slice is committed. One that is not comes again."""
        if self._hydration is not None:
            self._hydration.committed()
            if done.last:
                self._end_hydration()

    def set_floor(self, ends: Iterable[EndOffset]) -> None:
        """Ignore sink topics up to here: an abandoned store wrote that, and all of it will be written again."""
        for end in ends:
            self._store.put(f"floor/{end.topic}/{end.partition}", str(end.offset))

    def _end_hydration(self) -> None:
        assert self._hydration is not None
        self._hydration.close()
        self._hydration = None

    def _positions(self, query: QueryId) -> Ends:
        return self._store.position(query).offsets

    # -- topics

    def _topic_slice(
        self, topics: Set[TopicName], positions: Ends, together: Mapping[QueryId, Program], remap: Ends
    ) -> BackfillSlice:
        ends = {p: end for p, end in remap.items() if p[0] in topics}
        starts = self._starts(positions, ends)
        until = self._until(starts, ends, together)
        last = all(until[p] >= end for p, end in ends.items())
        read = self._read({p: (starts[p], end) for p, end in until.items()})
        return BackfillSlice(together, TickInputs(read), as_end_offsets(until), _done(until, ends), last)

    def _until(self, starts: Ends, ends: Ends, together: Mapping[QueryId, Program]) -> dict[Partition, int]:
        returned = any(program.passes_rows_on for program in together.values())
        until = self._limits.cut(starts, ends, returned=returned)
        if len(until) == 1 or not any(program.is_timed for program in together.values()):
            return until
        next_records = {p: (end, end + 1) for p, end in until.items() if end < ends[p]}
        following = self._kafka.ranges.read(next_records, timeout=SILENT_SECONDS)
        partitions = zip(following.column("topic").to_pylist(), following.column("partition").to_pylist(), strict=True)
        timestamps = dict(zip(partitions, following.column("timestamp").to_pylist(), strict=True))
        return aligned(starts, until, timestamps, lambda time: self._kafka.topics.offsets_at(until, time))

    def _starts(self, positions: Ends, ends: Ends) -> dict[Partition, int]:
        unread = [p for p in ends if p not in positions]
        first = self._kafka.topics.starts(unread) if unread else {}
        return {p: min(positions.get(p, first.get(p, 0)), end) for p, end in ends.items()}

    def _above_floor(self, starts: Ends, ends: Ends) -> dict[Partition, int]:
        floors = {p: int(self._store.get(f"floor/{p[0]}/{p[1]}") or 0) for p in starts}
        return {p: min(max(start, floors[p]), ends[p]) for p, start in starts.items()}

    def _read(self, ranges: Mapping[Partition, tuple[int, int]]) -> dict[TopicName, ViewInput]:
        if sum(end - start for start, end in ranges.values()) > self._limits.polled:
            return ranges_by_topic(ranges)
        wanted = {p: r for p, r in ranges.items() if r[1] > r[0]}
        return by_topic(self._kafka.ranges.read(wanted, timeout=SILENT_SECONDS)) if wanted else {}

    # -- tables

    def _table_slice(
        self, maintainers: Mapping[ObjectName, Program], together: Mapping[QueryId, Program]
    ) -> BackfillSlice:
        """The rows of all tables as of one time; in many slices when they are many."""
        at = self._uppers.follow_clock(collections(maintainers.values()))
        tables = {name: (m.collection, m.layout) for name, m in maintainers.items() if m.collection is not None}
        if sum(self._store.count(collection) for collection, _ in tables.values()) > self._limits.rows_at_once:
            self._hydration = Hydration(self._store, together, tables, at, self._limits.returned_bytes)
            return _hydration_slice(self._hydration)
        rows: dict[ObjectName, pa.Table] = {}
        for name, (collection, layout) in tables.items():
            if pages := list(self._store.snapshot(collection, at)):
                rows[name] = as_delta(pages, layout)
        return BackfillSlice(together, TickInputs({}, rows), (), 1.0, last=True)

    def _replay_slice(self, program: Program, tables: Mapping[ObjectName, Program], start: Time) -> BackfillSlice:
        queries = {program.query: program}
        step = self._replay.next(program.query, tables, start)
        if step is None:
            return BackfillSlice(queries, TickInputs({}), (), 1.0, last=True)
        return BackfillSlice(queries, step.inputs, (), step.done, last=False, at=step.at)

    # -- derived streams

    def _stream_slice(
        self,
        maintainers: Mapping[ObjectName, Program],
        dataflow: Dataflow,
        topics: Set[TopicName],
        positions: Ends,
        together: Mapping[QueryId, Program],
        remap: Ends,
    ) -> BackfillSlice:
        """What is published of the streams, with the topics beside them; at last the pending rows."""
        sources = {name: _sink_source(maintainer) for name, maintainer in maintainers.items()}
        sinks = {source.topic for source in sources.values()}
        published = as_ends(self._store.published_ends())
        ends = {p: end for p, end in published.items() if p[0] in sinks}
        check_positions(self._kafka.topics, positions, ends)
        starts = self._above_floor(self._starts(positions, ends), ends)
        beside = {p: end for p, end in remap.items() if p[0] in topics}
        starts, ends = {**starts, **self._starts(positions, beside)}, {**ends, **beside}
        until = self._until(starts, ends, together)
        if any(until[p] > start for p, start in starts.items()):
            read = self._read({p: (starts[p], end) for p, end in until.items()})
            decoded = {name: source for name, source in sources.items() if source.topic in read}
            inputs = TickInputs(read, decoded=decoded)
            return BackfillSlice(together, inputs, as_end_offsets(until), _done(until, ends), last=False)
        return BackfillSlice(together, TickInputs({}, self._pending_rows(maintainers, dataflow)), (), 1.0, last=True)

    def _pending_rows(self, names: Iterable[ObjectName], dataflow: Dataflow) -> dict[ObjectName, pa.Table]:
        """The rows of streams that are still to be published."""
        rows: dict[ObjectName, pa.Table] = {}
        for name in names:
            pending = self._store.pending(writer.query for writer in dataflow.maintainers(name))
            found = [self._store.pending_rows(each.query, each.time) for each in pending]
            if found:
                rows[name] = as_stream(found)
        return rows


def _hydration_slice(hydration: Hydration) -> BackfillSlice:
    part = hydration.next()
    return BackfillSlice(
        hydration.queries, part.inputs, (), part.done, part.last, resumable=False, short=part.done == 1.0
    )


def _sink_source(maintainer: Program) -> TopicInput:
    """The sink topic of a stream, as an input."""
    assert maintainer.sink is not None
    decoder = maintainer.sink.encoder.decoder()
    return TopicInput(maintainer.sink.topic, decoder, decoded_view(maintainer.sink.topic, decoder))


def _reads_same(program: Program, other: Program) -> bool:
    return program.topics == other.topics and program.objects == other.objects


def as_stream(tables: list[pa.Table]) -> pa.Table:
    """Rows of an outbox as rows of a stream, in their order."""
    rows = pa.concat_tables(tables)
    headers = f"k{sum(name.startswith('k') for name in rows.column_names) - 1}"
    rows = rows.rename_columns(["hdr" if name == headers else name for name in rows.column_names])
    order = pa.array(range(rows.num_rows), pa.int64())
    return rows.append_column("part", pa.repeat(pa.scalar(0, pa.int32()), rows.num_rows)).append_column("off", order)


def _done(until: Ends, ends: Ends) -> float:
    whole = sum(ends.values())
    return sum(until.values()) / whole if whole else 1.0
