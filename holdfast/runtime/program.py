"""A query ready to run: stages in order, each one SELECT on Spark and what the store does with its rows.

A stage has five kinds of input, each a view that its SELECT names:

| input | rows |
|---|---|
| `TopicInput` | decoded records of a topic in this tick |
| `ObjectInput` | rows of a stream, or changes of a table, that another query emitted in this tick |
| `SavedRows` | rows that an earlier stage of the same query saved |
| `TableLookup` | rows that a table had before the tick |
| `StateLookup` | rows that a state had before the tick |

A stage runs if the tick has rows for one of its inputs; inputs without rows are empty. Lookups, and an `ObjectInput`
with `drives` false, never start a stage.
"""

from dataclasses import dataclass, replace

import pyarrow as pa

from holdfast.names import CollectionId, ObjectName, QueryId, StateId, TopicName
from holdfast.runtime import physical_columns as col
from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.fragment import Fragment
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.runtime.store.port import Layout, Merge, StateProjection
from holdfast.runtime.store.schemas import delta_schema, upsert_schema
from holdfast.types import HEADERS, Schema


@dataclass(frozen=True, slots=True)
class TopicInput:
    """Decoded records of a topic."""

    topic: TopicName
    decoder: Decoder
    view: str


@dataclass(frozen=True, slots=True)
class ObjectInput:
    """What another object's query emitted in this tick: rows of a stream, or the delta of a table.

    With `drives` false, it is read together with a `TableLookup` of the same table and does not start the stage.
    """

    name: ObjectName
    view: str
    schema: pa.Schema
    drives: bool = True


@dataclass(frozen=True, slots=True)
class SavedRows:
    """Rows of an earlier stage of the same query: those that it saved, or the delta of its merge."""

    stage: int
    view: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class TableLookup:
    """The rows that a table had before the tick, for the keys (`k0..`) of the rows that a stage saved."""

    name: ObjectName
    stage: int
    view: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class SavedKeys:
    """Look up the keys (`k0..`) of the rows that a stage saved."""

    stage: int


@dataclass(frozen=True, slots=True)
class SavedGroups:
    """Look up all elements of the groups (`k0..`) of the rows that a stage saved.

    With `near`, only elements from that many milliseconds before the first of these rows to that many after the last.
    """

    stage: int
    near: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class TickPartitions:
    """Look up the partitions that the query reads in this tick, in a state keyed by partition."""


@dataclass(frozen=True, slots=True)
class Elapsed:
    """Look up the rows whose `ts` the clock, minus `less` milliseconds, passes in this tick.

    The time is in column `column` of `clock`, a state keyed by partition. `partition` is the key column that holds
    the partition in the rows to look up.
    """

    clock: StateId
    column: int
    less: int
    partition: str


@dataclass(frozen=True, slots=True)
class StateLookup:
    """The rows that a state had before the tick, selected by keys, groups, partitions or time."""

    state: StateId
    by: SavedKeys | SavedGroups | TickPartitions | Elapsed
    view: str
    schema: pa.Schema


RowsInput = ObjectInput | SavedRows | TableLookup | StateLookup
"""Inputs that are rows, not records."""
Input = TopicInput | RowsInput
Source = TopicInput | ObjectInput


@dataclass(frozen=True, slots=True)
class Append:
    """Emit the rows to the stream."""


@dataclass(frozen=True, slots=True)
class Upsert:
    """Write the rows, one per key, to a collection. They are emitted in the order of the columns `order`."""

    collection: CollectionId
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UpsertWindows:
    """Write the rows, one per key and window, to a collection that retains them as a window store does.

    `windows` is a state with an element for each window in the collection, `clock` one with the observed time of each
    partition. `time` and `partition` are the columns of a row's window time and of its partition, `first` and `last`
    those of the offsets of its first and last record. A window is removed when its time is `retention` milliseconds
    before the observed time. `wrong_layout` is the condition that the key of a raw record does not have the declared
    layout, `layout_hint` what to declare instead.
    """

    collection: CollectionId
    layout: Layout
    windows: StateId
    clock: StateId
    clock_merge: Merge
    time: str
    partition: str
    first: str
    last: str
    retention: int
    wrong_layout: str
    layout_hint: str

    @property
    def key_width(self) -> int:
        """The number of key columns, with those of the window."""
        return len(self.layout.key)

    @property
    def width(self) -> int:
        """The number of value columns."""
        return len(self.layout.value)


@dataclass(frozen=True, slots=True)
class ExpiringWindows:
    """When the time windows of a state are removed: `retention` milliseconds after their start, the last key column
    but one.

    `clock` is the state of stream time. The time of a window is that of its partition, in the value column `partition`
    of `layout`, or, if the rows of a key can be in several partitions (None), the greatest of all.
    """

    layout: Layout
    clock: StateId
    retention: int
    size: int
    advance: int
    partition: int | None


@dataclass(frozen=True, slots=True)
class MergeInto:
    """Merge the rows, partial aggregates, into a state, in the order of the column `order` if there is one.

    With `projection`, the store itself computes the result and writes it to `collection`. With `expiry`, the rows are
    windows, which are removed in the tick in which they expire.
    """

    state: StateId
    merge: Merge
    projection: StateProjection | None = None
    collection: CollectionId | None = None
    order: str | None = None
    expiry: ExpiringWindows | None = None


@dataclass(frozen=True, slots=True)
class MergeWindows:
    """Merge the rows, partial aggregates of windows, into windows that a state stores until `clock` has passed them.

    A window closes when its end is `closed_after` milliseconds before the clock, and is removed from the state when it
    is `removed_after` milliseconds before the clock. The stage saves the delta of the windows that changed or, with
    `final`, that closed, in the layout `result_layout`. With `expires`, a window that is removed from the state is
    also deleted from the result.
    """

    state: StateId
    layout: Layout
    result_layout: Layout
    merge: Merge
    clock: StateId
    closed_after: int
    removed_after: int
    final: bool
    expires: bool

    @property
    def end(self) -> str:
        """The key column of a window's end."""
        return col.key(len(self.layout.key) - 1)


@dataclass(frozen=True, slots=True)
class Put:
    """Write the rows, one per key, to a state; delete the rows that are `expired`."""

    state: StateId
    expired: Elapsed | None = None


@dataclass(frozen=True, slots=True)
class Emit:
    """Send the rows to the sink topic only."""


@dataclass(frozen=True, slots=True)
class SaveRows:
    """Save the rows for later stages of the query."""


Action = Append | Upsert | UpsertWindows | MergeInto | MergeWindows | Put | Emit | SaveRows


@dataclass(frozen=True, slots=True)
class Stage:
    """One SELECT, what it reads, and where its rows go. Stages of one round are independent of each other."""

    inputs: tuple[Input, ...]
    fragment: Fragment
    action: Action
    round: int = 0


@dataclass(frozen=True, slots=True)
class Sink:
    """The topic that a query writes to."""

    topic: TopicName
    encoder: Encoder


@dataclass(frozen=True, slots=True)
class Program:
    """The query that maintains an object. `collection` is set when the object is a table."""

    query: QueryId
    object: ObjectName
    schema: Schema
    stages: tuple[Stage, ...]
    sink: Sink | None
    collection: CollectionId | None
    layout: Layout
    states: tuple[tuple[StateId, Layout], ...]

    @property
    def passes_rows_on(self) -> bool:
        """Whether there may be as many result rows as records; an aggregation has one row per group."""
        return not all(isinstance(stage.action, MergeInto | MergeWindows) for stage in self.stages)

    @property
    def is_timed(self) -> bool:
        """Whether results depend on how far apart in time its inputs are.

        They do if rows waiting for a match expire, or if a table is read from its topic together with another input.
        """
        expires = any(isinstance(stage.action, Put) and stage.action.expired is not None for stage in self.stages)
        return expires or (bool(self.table_topics) and len(self.sources) > 1)

    @property
    def table_topics(self) -> frozenset[TopicName]:
        """The topics that the query reads as tables."""
        read = (source for source in self.sources if isinstance(source, TopicInput))
        return frozenset(source.topic for source in read if source.decoder.keyed)

    @property
    def rounds(self) -> int:
        """The number of rounds that the stages take."""
        return 1 + max(stage.round for stage in self.stages)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The inputs that drive the query, without duplicates."""
        inputs = (i for stage in self.stages for i in stage.inputs)
        found = {i.view: i for i in inputs if isinstance(i, TopicInput) or (isinstance(i, ObjectInput) and i.drives)}
        return tuple(found.values())

    def reads_saved(self, stage: int) -> bool:
        """Whether a later stage reads the rows of a stage."""
        return any(isinstance(i, SavedRows) and i.stage == stage for each in self.stages for i in each.inputs)

    @property
    def topics(self) -> frozenset[TopicName]:
        """The topics that drive the query."""
        return frozenset(source.topic for source in self.sources if isinstance(source, TopicInput))

    @property
    def objects(self) -> frozenset[ObjectName]:
        """The objects that drive the query."""
        return frozenset(source.name for source in self.sources if isinstance(source, ObjectInput))

    @property
    def needs(self) -> frozenset[ObjectName]:
        """The objects that must exist before the query can run."""
        looked_up = (i.name for stage in self.stages for i in stage.inputs if isinstance(i, TableLookup))
        return self.objects | frozenset(looked_up)


def stream_schema(layout: Layout) -> pa.Schema:
    """The schema in which readers get the rows of a stream: `k0.., c0.., ts, present, part, off, hdr`."""
    more = [(col.PARTITION, pa.int32()), (col.OFFSET, pa.int64()), (col.HEADERS, arrow_type(HEADERS))]
    return pa.schema([*upsert_schema(layout), *more])


def with_headers(layout: Layout) -> Layout:
    """The layout of a stream's rows in the outbox: the headers are an additional last key column."""
    return replace(layout, key=(*layout.key, HEADERS))


def table_schema(layout: Layout) -> pa.Schema:
    """The schema in which readers get the changes of a table."""
    return delta_schema(layout)
