"""A query ready to run: stages in order, each one SELECT on Spark and what the store does with its rows."""

from dataclasses import dataclass

from holdfast.names import CollectionId, ObjectName, QueryId, StateId, TopicName
from holdfast.runtime.serdes.decoding import Decoder
from holdfast.runtime.serdes.encoding import Encoder
from holdfast.runtime.spark.fragment import Fragment
from holdfast.runtime.store.port import Layout, Merge, RideAlong
from holdfast.types import Schema


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


@dataclass(frozen=True, slots=True)
class StateInput:
    """The delta of the state that the stage before has merged."""

    state: StateId
    view: str


Input = TopicInput | ObjectInput | StateInput


@dataclass(frozen=True, slots=True)
class Append:
    """The rows are the stream's."""


@dataclass(frozen=True, slots=True)
class Upsert:
    """The rows are the last ones of their keys."""

    collection: CollectionId


@dataclass(frozen=True, slots=True)
class MergeInto:
    """The rows are partials. With `along`, the store shows the result in `collection` by itself."""

    state: StateId
    merge: Merge
    along: RideAlong | None
    collection: CollectionId


Action = Append | Upsert | MergeInto


@dataclass(frozen=True, slots=True)
class Stage:
    """One SELECT and where its rows go."""

    input: Input
    fragment: Fragment
    action: Action


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
    def source(self) -> TopicInput | ObjectInput:
        first = self.stages[0].input
        assert not isinstance(first, StateInput)
        return first
