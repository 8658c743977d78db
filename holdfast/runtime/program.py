"""A query ready to run: stages in order, each one SELECT on Spark and what the store does with its rows.

A stage names the views that its SELECT reads. It runs in a tick that has rows for one of them; those of the others are
empty then. `Lookup`, `Changes`, `Recall`, `Remembered`, `Groups` and `Due` only add to what the others bring.
"""

from dataclasses import dataclass, replace

import pyarrow as pa

from holdfast.names import CollectionId, ObjectName, QueryId, StateId, TopicName
from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.serdes.decoding import Decoder
from holdfast.runtime.serdes.encoding import Encoder
from holdfast.runtime.spark.fragment import Fragment
from holdfast.runtime.store.port import Layout, Merge, RideAlong
from holdfast.runtime.store.schemas import delta_schema, upsert_schema
from holdfast.types import HEADERS, Schema


@dataclass(frozen=True, slots=True)
class TopicInput:
    """Records of a topic, decoded; the fragment knows them as `view`."""

    topic: TopicName
    decoder: Decoder
    view: str


@dataclass(frozen=True, slots=True)
class ObjectInput:
    """What another object's query gave in the same tick: rows of a stream, or the delta of a table."""

    name: ObjectName
    view: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class StateInput:
    """The delta of the state that the stage before has merged."""

    state: StateId
    view: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Held:
    """The rows that an earlier stage of the same query has held."""

    stage: int
    view: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Lookup:
    """The rows that a table had before the tick, for the keys (`k0..`) of the rows that a stage has held."""

    name: ObjectName
    stage: int
    view: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Changes:
    """The delta of a table in the tick, beside a `Lookup` in it; it does not drive the query."""

    name: ObjectName
    view: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Recall:
    """What a state kept by partition had before the tick, of the partitions in it; it does not drive the query."""

    state: StateId
    view: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a state had before the tick, for the keys (`k0..`) of the rows that a stage has held."""

    state: StateId
    stage: int
    view: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Groups:
    """The elements that a grouped state had before the tick, of the groups (`k0..`) of the rows that a stage held.

    With `near`, only those of a time from so many milliseconds before these rows to so many behind them.
    """

    state: StateId
    stage: int
    view: str
    schema: pa.Schema
    near: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Elapsed:
    """The time that a tick passes, less some milliseconds, by the column of a state which keeps time by partition.

    `part` is the key column that has the partition in the rows it is asked of.
    """

    state: StateId
    column: int
    less: int
    part: str


@dataclass(frozen=True, slots=True)
class Due:
    """The rows that a state had before the tick and whose `ts` the tick passes; it does not drive the query."""

    state: StateId
    elapsed: Elapsed
    view: str
    schema: pa.Schema


Input = TopicInput | ObjectInput | StateInput | Held | Lookup | Changes | Recall | Remembered | Groups | Due
Source = TopicInput | ObjectInput
RowsInput = ObjectInput | StateInput | Held | Lookup | Changes | Recall | Remembered | Groups | Due
"""What comes as rows."""


@dataclass(frozen=True, slots=True)
class Append:
    """The rows are the stream's."""


@dataclass(frozen=True, slots=True)
class Upsert:
    """The rows are the last ones of their keys; `order` are the columns that say in which order they are told."""

    collection: CollectionId
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeInto:
    """The rows are partials, in the order of the column `order` if there is one.

    With `along`, the store shows the result in `collection` by itself.
    """

    state: StateId
    merge: Merge
    along: RideAlong | None = None
    collection: CollectionId | None = None
    order: str | None = None


@dataclass(frozen=True, slots=True)
class MergeWindows:
    """The rows are partials of windows, which are elements of a state until their `clock` has passed them.

    A window is closed when its end is `closed_after` milliseconds before the clock, and forgotten by the state when it
    is `forgotten_after`. What is left for later stages is the delta of the windows that changed or, with `final`, that
    closed: `shown`. With `expires`, a window that is forgotten is gone, and that is a change too.
    """

    state: StateId
    layout: Layout
    shown: Layout
    merge: Merge
    clock: StateId
    closed_after: int
    forgotten_after: int
    final: bool
    expires: bool

    @property
    def end(self) -> str:
        """The key column of a window's end."""
        return f"k{len(self.layout.key) - 1}"


@dataclass(frozen=True, slots=True)
class Put:
    """The rows are the last ones of their keys in a state; those that the time has passed go."""

    state: StateId
    expired: Elapsed | None = None


@dataclass(frozen=True, slots=True)
class Tell:
    """The rows are for the sink topic alone."""


@dataclass(frozen=True, slots=True)
class Hold:
    """The rows are for later stages of the query."""


Action = Append | Upsert | MergeInto | MergeWindows | Put | Tell | Hold


@dataclass(frozen=True, slots=True)
class Stage:
    """One SELECT, what it reads, and where its rows go. Stages of one round do not wait for each other."""

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
    """A query of one object. `collection` is there when the object is a table."""

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
        """Whether its results may be as many rows as its records; an aggregation has a row for each group."""
        return not all(isinstance(stage.action, MergeInto | MergeWindows) for stage in self.stages)

    @property
    def is_timed(self) -> bool:
        """Whether it matters how far in time its inputs are from each other.

        It does where rows that wait for others expire, and where a table is read from its topic beside another.
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
        """How many rounds the stages take."""
        return 1 + max(stage.round for stage in self.stages)

    @property
    def sources(self) -> tuple[Source, ...]:
        """What drives the query, each once."""
        found = {i.view: i for stage in self.stages for i in stage.inputs if isinstance(i, TopicInput | ObjectInput)}
        return tuple(found.values())

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
        """The objects that must be there before the query can run."""
        looked_up = (i.name for stage in self.stages for i in stage.inputs if isinstance(i, Lookup))
        return self.objects | frozenset(looked_up)


def stream_schema(layout: Layout) -> pa.Schema:
    """Rows of a stream on their way to its readers: `k0.., c0.., ts, present, part, off, hdr`."""
    more = [pa.field("part", pa.int32()), pa.field("off", pa.int64()), pa.field("hdr", arrow_type(HEADERS))]
    return pa.schema([*upsert_schema(layout), *more])


def with_headers(layout: Layout) -> Layout:
    """How a stream's rows wait for its sink topic: their headers are one more column of the key, the last."""
    return replace(layout, key=(*layout.key, HEADERS))


def table_schema(layout: Layout) -> pa.Schema:
    """Changes of a table on their way to its readers."""
    return delta_schema(layout)
