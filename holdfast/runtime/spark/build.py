"""From a decoded plan to a program: one match arm per step."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Protocol

from holdfast.errors import Feature, NotYetSupported, PlanError
from holdfast.names import CollectionId, ObjectName, QueryId, StateId, TopicName
from holdfast.runtime.expressions.parse import parse_expression, parse_named, parse_schema
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.references import references
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression
from holdfast.runtime.functions.registry import CURRENT, Release
from holdfast.runtime.plan.document import QueryPlan
from holdfast.runtime.plan.formats import Formats, TimestampColumn
from holdfast.runtime.plan.presence import Maybe, given
from holdfast.runtime.plan.steps import (
    Step,
    StreamAggregate,
    StreamFilter,
    StreamGroupBy,
    StreamGroupByKey,
    StreamSelect,
    StreamSink,
    StreamSource,
    TableFilter,
    TableSelect,
    TableSink,
    TableSource,
)
from holdfast.runtime.program import (
    Append,
    Input,
    MergeInto,
    ObjectInput,
    Program,
    Sink,
    Stage,
    StateInput,
    TopicInput,
    Upsert,
    stream_schema,
    table_schema,
)
from holdfast.runtime.serdes.decoding import Decoder
from holdfast.runtime.serdes.encoding import Encoder
from holdfast.runtime.spark.builders.aggregate import Aggregation, build_stream_aggregate
from holdfast.runtime.spark.builders.filter import build_stream_filter, build_table_filter
from holdfast.runtime.spark.builders.group_by import build_stream_group_by, build_stream_group_by_key
from holdfast.runtime.spark.builders.select import build_stream_select, build_table_select, renamed
from holdfast.runtime.spark.builders.sink import build_stream_sink, build_table_sink
from holdfast.runtime.spark.builders.source import (
    build_derived_stream,
    build_stream_source,
    build_table_of_topic,
    build_table_source,
)
from holdfast.runtime.spark.meaning import Meaning
from holdfast.runtime.spark.relation import Relation, StreamRelation, TableRelation
from holdfast.runtime.store.port import Layout, RideAlong
from holdfast.types import Column, Role, Schema


class Sources(Protocol):
    """What a source step reads, by the names that its plan gives."""

    def object_of(self, topic: TopicName, names: Sequence[ObjectName]) -> ObjectName | None:
        """The table or derived stream behind a topic; None for a stream that reads the topic itself."""


@dataclass
class Builder:
    """Builds one query."""

    plan: QueryPlan
    sources: Sources
    meaning: Meaning
    inputs: dict[str, Input] = field(default_factory=dict)

    def stream(self, step: Step) -> StreamRelation:
        match step:
            case StreamSource():
                return self._stream_source(step)
            case StreamFilter():
                return build_stream_filter(step, self.stream(step.source), self.meaning)
            case StreamSelect():
                return build_stream_select(step, self.stream(step.source), self.meaning)
            case StreamGroupByKey():
                return build_stream_group_by_key(self.stream(step.source))
            case StreamGroupBy():
                return build_stream_group_by(step, self.stream(step.source), self.meaning)
            case _:
                raise unbuildable(step)

    def table(self, step: Step) -> TableRelation:
        match step:
            case TableSource():
                return self._table_source(step)
            case TableFilter():
                return build_table_filter(step, self.table(step.source), self.meaning)
            case TableSelect():
                return build_table_select(step, self.table(step.source), self.meaning)
            case _:
                raise unbuildable(step)

    def over(self, step: Step, bottom: Step, relation: TableRelation) -> TableRelation:
        """The table steps above `bottom`, whose relation is known."""
        if step is bottom:
            return relation
        match step:
            case TableFilter():
                return build_table_filter(step, self.over(step.source, bottom, relation), self.meaning)
            case TableSelect():
                return build_table_select(step, self.over(step.source, bottom, relation), self.meaning)
            case _:
                raise unbuildable(step)

    def _stream_source(self, step: StreamSource) -> StreamRelation:
        schema = parse_schema(step.source_schema)
        derived = self.sources.object_of(step.topic_name, self.plan.sources)
        if derived is not None:
            rows = stream_schema(_layout(schema.key, schema.value))
            view = self._reads(ObjectInput(derived, object_view(derived), rows))
            return build_derived_stream(schema, view)
        decoder = Decoder(schema, step.formats)
        view = self._reads(TopicInput(step.topic_name, decoder, decoded_view(step.topic_name, decoder)))
        return build_stream_source(schema, view, step.timestamp_column)

    def _reads(self, source: Input) -> str:
        self.inputs[source.view] = source
        return source.view

    def _table_source(self, step: TableSource) -> TableRelation:
        name = self.sources.object_of(step.topic_name, self.plan.sources)
        if name is None:
            raise PlanError(f'query {self.plan.query_id} reads topic "{step.topic_name}" as a table that is not there')
        schema = parse_schema(step.source_schema)
        changes = table_schema(_layout(schema.key, schema.value))
        return build_table_source(schema, self._reads(ObjectInput(name, object_view(name), changes)))


def build_query(plan: QueryPlan, sources: Sources, release: Release = CURRENT) -> Program:
    """The program of a stored query plan. A query whose steps, formats or types cannot run is refused here."""
    builder = Builder(plan, sources, Meaning(release))
    sink = plan.physical_plan
    match sink:
        case StreamSink():
            relation = builder.stream(sink.source)
            stage = Stage(_inputs(builder), build_stream_sink(sink, relation), Append())
            return _program(plan, relation, (stage,), Sink(sink.topic_name, _encoder(relation, sink.formats)), None, ())
        case TableSink():
            collection = CollectionId(str(given(plan.sink) or plan.query_id))
            aggregate = _aggregate_below(sink.source)
            if aggregate is None:
                table = builder.table(sink.source)
                stages: tuple[Stage, ...] = (
                    Stage(_inputs(builder), build_table_sink(sink, table), Upsert(collection)),
                )
                states: tuple[tuple[StateId, Layout], ...] = ()
            else:
                table, stages, states = _aggregated(builder, sink, aggregate, collection)
            return _program(
                plan, table, stages, Sink(sink.topic_name, _encoder(table, sink.formats)), collection, states
            )
        case _:
            raise unbuildable(sink)


def build_table(
    name: ObjectName, topic: TopicName, schema: Schema, formats: Formats, timestamp: Maybe[TimestampColumn] = None
) -> Program:
    """The program that keeps a table over a topic."""
    decoder = Decoder(schema, formats, keyed=True)
    source = TopicInput(topic, decoder, decoded_view(topic, decoder))
    collection = CollectionId(str(name))
    stage = Stage((source,), build_table_of_topic(schema, source.view, timestamp), Upsert(collection))
    return Program(
        query=QueryId(f"TABLE_{name}"),
        object=name,
        schema=schema,
        stages=(stage,),
        sink=None,
        collection=collection,
        layout=_layout(schema.key, schema.value),
        states=(),
    )


def _aggregated(
    builder: Builder, sink: TableSink, aggregate: StreamAggregate, collection: CollectionId
) -> tuple[TableRelation, tuple[Stage, ...], tuple[tuple[StateId, Layout], ...]]:
    """The stages of an aggregation: one when its projection rides along with the merge, else two."""
    top = sink.source
    grouped = builder.stream(aggregate.source)
    aggregation = build_stream_aggregate(aggregate, grouped, _used(top, aggregate), builder.meaning)
    state = StateId(f"{builder.plan.query_id}/{aggregate.properties.query_context}")
    view = state_view(state)
    table = builder.over(top, aggregate, aggregation.relation(view))
    along = None
    if given(sink.timestamp_column) is None:
        along = _ride_along(top, aggregate, aggregation, builder.meaning)
    merge = MergeInto(state, aggregation.merge, along, collection)
    stages = [Stage(_inputs(builder), aggregation.fragment(), merge)]
    if along is None:
        stages.append(
            Stage(
                (StateInput(state, view, table_schema(aggregation.layout)),),
                build_table_sink(sink, table),
                Upsert(collection),
            )
        )
    return table, tuple(stages), ((state, aggregation.layout),)


def _ride_along(top: Step, bottom: Step, aggregation: Aggregation, meaning: Meaning) -> RideAlong | None:
    """A projection of plain columns over at most a HAVING, when the store's dialect can compute the HAVING."""
    if not isinstance(top, TableSelect):
        return None
    scope = aggregation.scope(Dialect.DUCKDB, "s", "ts")
    selected = [parse_named(text).expression for text in top.select_expressions]
    if not all(_is_plain(expression) for expression in selected):
        return None
    having = None
    if isinstance(top.source, TableFilter) and top.source.source is bottom:
        condition = parse_expression(top.source.filter_expression)
        if not meaning.in_duckdb(condition, scope):
            return None
        having = meaning.duckdb(condition, scope)
    elif top.source is not bottom:
        return None
    return RideAlong(tuple(meaning.duckdb(expression, scope) for expression in selected), having)


def _is_plain(expression: Expression) -> bool:
    """A column, or a copy of one."""
    if isinstance(expression, Call) and expression.name == "AS_VALUE":
        return _is_plain(expression.arguments[0])
    return isinstance(expression, ColumnRef)


def _aggregate_below(step: Step) -> StreamAggregate | None:
    while isinstance(step, (TableFilter, TableSelect)):
        step = step.source
    return step if isinstance(step, StreamAggregate) else None


def _used(step: Step, bottom: Step) -> frozenset[str]:
    """The columns that the steps above an aggregation read; all of them when nothing projects."""
    used: set[str] = set()
    while step is not bottom:
        match step:
            case TableFilter():
                used |= references(parse_expression(step.filter_expression))
            case TableSelect():
                for text in step.select_expressions:
                    used |= references(parse_named(text).expression)
            case _:
                raise unbuildable(step)
        step = step.source
    return frozenset(used)


def _program(
    plan: QueryPlan,
    relation: Relation,
    stages: tuple[Stage, ...],
    sink: Sink,
    collection: CollectionId | None,
    states: tuple[tuple[StateId, Layout], ...],
) -> Program:
    return Program(
        query=plan.query_id,
        object=ObjectName(given(plan.sink) or plan.query_id),
        schema=_schema(relation),
        stages=stages,
        sink=sink,
        collection=collection,
        layout=_layout(relation.key, relation.value),
        states=states,
    )


def _encoder(relation: Relation, formats: Formats) -> Encoder:
    encoder = Encoder(_schema(relation), formats)
    encoder.check()
    return encoder


def _schema(relation: Relation) -> Schema:
    return Schema((*renamed([_as_key(c) for c in relation.key], None), *relation.value))


def _as_key(column: Column) -> Column:
    return Column(column.name, column.type, Role.KEY)


def _layout(key: Sequence[Column], value: Sequence[Column]) -> Layout:
    return Layout(tuple(c.type for c in key), tuple(c.type for c in value))


def _inputs(builder: Builder) -> tuple[Input, ...]:
    return tuple(builder.inputs.values())


def unbuildable(step: Step) -> NotYetSupported:
    return NotYetSupported(
        Feature.STEP,
        step.TAG,
        f"this release cannot run step {step.TAG} here",
        detail=f"The step is at {step.properties.query_context}.",
        hint="The query is kept as it is; a release that has the step will run it.",
    )


def decoded_view(topic: TopicName, decoder: Decoder) -> str:
    """The view of a topic's decoded records; the same text for the same reading of it."""
    return "d_" + _digest(f"{topic}\0{decoder.schema}\0{decoder.formats}\0{decoder.keyed}")


def topic_view(topic: TopicName) -> str:
    return "t_" + _digest(topic)


def object_view(name: ObjectName) -> str:
    return "o_" + _digest(name)


def state_view(state: StateId) -> str:
    return "s_" + _digest(state)


def _digest(text: str) -> str:
    return sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]
