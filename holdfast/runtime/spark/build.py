"""From a decoded plan to a program."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.names import CollectionId, ObjectName, QueryId, StateId, TopicName
from holdfast.runtime.expressions.parse import parse_expression, parse_named
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.references import references
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression
from holdfast.runtime.functions.registry import CURRENT, Release
from holdfast.runtime.plan.document import QueryPlan
from holdfast.runtime.plan.formats import Formats, TimestampColumn
from holdfast.runtime.plan.presence import Maybe, given
from holdfast.runtime.plan.steps import (
    FkTableTableJoin,
    Step,
    StreamAggregate,
    StreamSink,
    StreamWindowedAggregate,
    TableAggregate,
    TableFilter,
    TableGroupBy,
    TableGroupByV1,
    TableIndex,
    TableKeep,
    TableSelect,
    TableSink,
    TableSuppress,
    sources_of,
)
from holdfast.runtime.plan.windows import OutputRefinement, WindowInfo, shape
from holdfast.runtime.program import (
    Append,
    MergeInto,
    Program,
    Remembered,
    Sink,
    Stage,
    StateInput,
    Tell,
    TopicInput,
    Upsert,
    table_schema,
    with_headers,
)
from holdfast.runtime.serdes.decoding import Decoder
from holdfast.runtime.serdes.encoding import Encoder
from holdfast.runtime.spark.builder import Builder, Sources, layout_of, unbuildable
from holdfast.runtime.spark.builders.aggregate import AggregateStep, Aggregation, build_aggregate
from holdfast.runtime.spark.builders.filter import build_table_filter
from holdfast.runtime.spark.builders.group_by import build_table_group_by
from holdfast.runtime.spark.builders.index import build_table_index, index_layout
from holdfast.runtime.spark.builders.select import build_table_select, renamed
from holdfast.runtime.spark.builders.sink import build_stream_sink, build_table_sink, build_told_again, timestamp_of
from holdfast.runtime.spark.builders.source import build_table_of_topic
from holdfast.runtime.spark.fragment import Fragment
from holdfast.runtime.spark.meaning import Meaning
from holdfast.runtime.spark.recorded import keep_records
from holdfast.runtime.spark.relation import Relation, StreamRelation, TableRelation
from holdfast.runtime.spark.views import decoded_view, remembered_view, state_view
from holdfast.runtime.spark.windowed import closes, closing_windows, grouped, is_final, time_windows
from holdfast.runtime.store.port import Layout, RideAlong
from holdfast.runtime.store.schemas import rows_schema
from holdfast.types import Column, Role, Scalar, Schema, SqlType


def build_query(
    plan: QueryPlan, sources: Sources, release: Release = CURRENT, properties: Mapping[str, str] | None = None
) -> Program:
    """The program of a stored query plan. A query whose steps, formats or types cannot run is refused here.

    `properties` are those that were kept with the plan.
    """
    builder = Builder(plan, sources, Meaning(release, properties or {}))
    keep_records(builder)
    sink = plan.physical_plan
    match sink:
        case StreamSink():
            stream = builder.stream(sink.source)
            builder.end_stage(build_stream_sink(sink, stream), Append())
            return _program(builder, stream, Sink(sink.topic_name, _encoder(stream, sink.formats)), None)
        case TableSink():
            collection = CollectionId(str(given(plan.sink) or plan.query_id))
            table = _table(builder, sink, collection)
            return _program(builder, table, Sink(sink.topic_name, _encoder(table, sink.formats)), collection)
        case TableKeep():
            collection = CollectionId(str(given(plan.sink) or plan.query_id))
            return _program(builder, _table(builder, sink, collection), None, collection)
        case TableIndex():
            collection = CollectionId(str(given(plan.sink) or plan.query_id))
            table = _table(builder, sink, collection)
            layout = index_layout(sink, table, builder.meaning)
            return replace(_program(builder, table, None, collection), layout=layout)
        case _:
            raise unbuildable(sink)


def build_table(
    name: ObjectName,
    topic: TopicName,
    schema: Schema,
    formats: Formats,
    timestamp: Maybe[TimestampColumn] = None,
    window: WindowInfo | None = None,
) -> Program:
    """The program that keeps a table over a topic."""
    window = None if window is None else shape(window)
    decoder = Decoder(schema, formats, keyed=True, window=window)
    decoder.check()
    source = TopicInput(topic, decoder, decoded_view(topic, decoder))
    collection = CollectionId(str(name))
    stage = Stage((source,), build_table_of_topic(schema, source.view, timestamp, window), Upsert(collection))
    return Program(
        query=QueryId(f"TABLE_{name}"),
        object=name,
        schema=schema,
        stages=(stage,),
        sink=None,
        collection=collection,
        layout=layout_of(schema.key, schema.row, window),
        states=(),
    )


def _table(builder: Builder, sink: TableSink | TableKeep | TableIndex, collection: CollectionId) -> TableRelation:
    """The last stages of a table. The projection of an aggregation rides along with its merge when it can."""
    top = sink.source
    aggregate = _aggregate_below(top)
    if aggregate is None:
        table = builder.table(top)
        if builder.told_again is not None and isinstance(sink, TableSink) and _is_fk_join(top):
            builder.add_stage(build_told_again(builder.told_again, table), Tell())
    else:
        final = _is_final(top, aggregate)
        if isinstance(aggregate, StreamWindowedAggregate) and (final or closes(aggregate)):
            closing = closing_windows(builder, aggregate, collection, _used(top, aggregate), final=final)
            table = _over(builder, top, aggregate, closing)
            _end(builder, sink, table, Upsert(collection, _order(table, final=final)))
            return table
        aggregation = build_aggregate(
            aggregate, _grouped(builder, aggregate, collection), _used(top, aggregate), builder.meaning
        )
        state = StateId(f"{builder.plan.query_id}/{aggregate.properties.query_context}")
        builder.states.append((state, aggregation.layout))
        plain = not isinstance(sink, TableIndex) and given(timestamp_of(sink)) is None
        along = _ride_along(top, aggregate, aggregation, builder.meaning) if plain else None
        merge = MergeInto(state, aggregation.merge, along, collection, aggregation.order)
        builder.end_stage(_partials(builder, state, aggregation), merge)
        view = state_view(state)
        table = _over(builder, top, aggregate, aggregation.relation(view))
        if along is not None:
            return table
        builder.reads(StateInput(state, view, table_schema(aggregation.layout)))
    # One row of the right side changes many of the left: they are told by their keys.
    order = _scalars(table.key_types) if _is_fk_join(top) else ()
    _end(builder, sink, table, Upsert(collection, order))
    return table


def _end(builder: Builder, sink: TableSink | TableKeep | TableIndex, table: TableRelation, into: Upsert) -> None:
    """The rows as they are kept. Those of an index are told to nobody, and their order does not matter."""
    if isinstance(sink, TableIndex):
        builder.end_stage(build_table_index(sink, table, builder.meaning), Upsert(into.collection))
    else:
        builder.end_stage(build_table_sink(sink, table), into)


def _grouped(builder: Builder, aggregate: AggregateStep, collection: CollectionId) -> StreamRelation:
    """The rows of an aggregation, by group."""
    match aggregate:
        case TableAggregate(source=TableGroupBy() | TableGroupByV1() as group_by):
            return build_table_group_by(group_by, builder.table(group_by.source), builder.meaning)
        case TableAggregate():
            raise unbuildable(aggregate)
        case StreamWindowedAggregate():
            return time_windows(builder, aggregate, collection)
        case StreamAggregate():
            return grouped(builder, aggregate)


def _partials(builder: Builder, state: StateId, aggregation: Aggregation) -> Fragment:
    """What the store merges. Where it cannot, the partials are held, and merged with the state by Spark first."""
    if not aggregation.merged_by_spark:
        return aggregation.fragment()
    held = builder.hold(aggregation.fragment())
    view = remembered_view(state, held.stage)
    before = builder.reads(Remembered(state, held.stage, view, rows_schema(aggregation.layout)))
    return aggregation.merged_fragment(held.view, before)


def _over(builder: Builder, step: Step, bottom: Step, relation: TableRelation) -> TableRelation:
    """The table steps above `bottom`, whose relation is known."""
    if step is bottom:
        return relation
    match step:
        case TableSuppress():
            return _over(builder, step.source, bottom, relation)
        case TableFilter():
            return build_table_filter(step, _over(builder, step.source, bottom, relation), builder.meaning)
        case TableSelect():
            return build_table_select(step, _over(builder, step.source, bottom, relation), builder.meaning)
        case _:
            raise unbuildable(step)


def _ride_along(top: Step, bottom: Step, aggregation: Aggregation, meaning: Meaning) -> RideAlong | None:
    """A projection of plain columns over at most a HAVING, when the store's dialect can compute the HAVING."""
    if not isinstance(top, TableSelect) or not all(part.shown_by_store for part in aggregation.parts):
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


def _aggregate_below(step: Step) -> AggregateStep | None:
    while isinstance(step, (TableFilter, TableSelect, TableSuppress)):
        step = step.source
    return step if isinstance(step, StreamAggregate | StreamWindowedAggregate | TableAggregate) else None


def _is_final(step: Step, bottom: AggregateStep) -> bool:
    """Whether windows show only when they close: the aggregation says so, or a step above it."""
    if isinstance(bottom, StreamWindowedAggregate) and is_final(bottom):
        return True
    while step is not bottom:
        if isinstance(step, TableSuppress):
            return step.refinement_info.output_refinement is OutputRefinement.FINAL
        step = sources_of(step)[0]
    return False


def _order(table: TableRelation, *, final: bool) -> tuple[str, ...]:
    """Windows are told as they close; of others, those that are gone come first."""
    if not final:
        return ("present", *table.keys[-2:])
    return (table.keys[-1], *_scalars(table.key_types[:-2]))


def _scalars(key: Sequence[SqlType]) -> tuple[str, ...]:
    """The key columns that rows can be sorted by."""
    return tuple(f"k{i}" for i, type_ in enumerate(key) if isinstance(type_, Scalar))


def _is_fk_join(step: Step) -> bool:
    """A join by a foreign key and at most its projection."""
    while isinstance(step, TableSelect):
        step = step.source
    return isinstance(step, FkTableTableJoin)


def _used(step: Step, bottom: Step) -> frozenset[str]:
    """The columns that the steps above an aggregation read; all of them when nothing projects."""
    used: set[str] = set()
    while step is not bottom:
        match step:
            case TableSuppress():
                pass
            case TableFilter():
                used |= references(parse_expression(step.filter_expression))
            case TableSelect():
                for text in step.select_expressions:
                    used |= references(parse_named(text).expression)
            case _:
                raise unbuildable(step)
        step = step.source
    return frozenset(used)


def _program(builder: Builder, relation: Relation, sink: Sink | None, collection: CollectionId | None) -> Program:
    plan = builder.plan
    return Program(
        query=plan.query_id,
        object=ObjectName(given(plan.sink) or plan.query_id),
        schema=_schema(relation),
        stages=tuple(builder.stages),
        sink=sink,
        collection=collection,
        layout=_layout(relation),
        states=tuple(builder.states),
    )


def _layout(relation: Relation) -> Layout:
    layout = layout_of(relation.key, relation.value, relation.window)
    return layout if isinstance(relation, TableRelation) else with_headers(layout)


def _encoder(relation: Relation, formats: Formats) -> Encoder:
    encoder = Encoder(_schema(relation), formats, relation.window)
    encoder.check()
    return encoder


def _schema(relation: Relation) -> Schema:
    return Schema((*renamed([_as_key(c) for c in relation.key], None), *relation.value))


def _as_key(column: Column) -> Column:
    return Column(column.name, column.type, Role.KEY)
