"""Builds the program of a decoded plan."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from holdfast.names import CollectionId, ObjectName, StateId, TopicName, table_query_id
from holdfast.runtime import physical_columns as col
from holdfast.runtime.expressions.parse import parse_expression, parse_named
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.references import references
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression
from holdfast.runtime.fragment import Fragment
from holdfast.runtime.functions.registry import CURRENT, Release
from holdfast.runtime.plan.document import QueryPlan
from holdfast.runtime.plan.formats import Formats, TimestampColumn
from holdfast.runtime.plan.optional import Maybe, value_of
from holdfast.runtime.plan.steps import (
    AggregateStep,
    FkTableTableJoin,
    LastStep,
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
from holdfast.runtime.plan.windows import OutputRefinement, WindowInfo, WindowStoreSettings, WindowTopic, shape
from holdfast.runtime.program import (
    Append,
    Emit,
    MergeInto,
    Program,
    SavedKeys,
    SavedRows,
    Sink,
    Stage,
    StateLookup,
    TopicInput,
    Upsert,
    table_schema,
    with_headers,
)
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.runtime.spark.builders.aggregate import AggregateMerge, build_aggregate
from holdfast.runtime.spark.builders.filter import build_table_filter
from holdfast.runtime.spark.builders.group_by import build_table_group_by
from holdfast.runtime.spark.builders.index import build_table_index, index_layout
from holdfast.runtime.spark.builders.select import build_table_select, renamed
from holdfast.runtime.spark.builders.sink import (
    build_repeated_deletes,
    build_stream_sink,
    build_table_sink,
    timestamp_of,
)
from holdfast.runtime.spark.builders.source import build_table_of_topic
from holdfast.runtime.spark.builders.windowed_table import WINDOW_COLUMNS, retain_windows
from holdfast.runtime.spark.expression_compiler import ExpressionCompiler
from holdfast.runtime.spark.record_positions import store_records
from holdfast.runtime.spark.relation import Relation, StreamRelation, TableRelation
from holdfast.runtime.spark.stage_builder import Sources, StageBuilder, layout_of, unbuildable
from holdfast.runtime.spark.stream_steps import build_stream_step
from holdfast.runtime.spark.table_steps import build_table_step
from holdfast.runtime.spark.views import decoded_view, state_lookup_view, state_view
from holdfast.runtime.spark.window_stages import closing_windows, grouped, is_final, stored_until_closed, time_windows
from holdfast.runtime.store.port import Layout, StateProjection
from holdfast.runtime.store.schemas import rows_schema
from holdfast.types import Column, Role, Scalar, Schema, SqlType

AboveAggregate = TableFilter | TableSelect | TableSuppress
"""Steps that may be above an aggregation."""


def build_query(
    plan: QueryPlan, sources: Sources, release: Release = CURRENT, properties: Mapping[str, str] | None = None
) -> Program:
    """The program of a stored query plan. A query whose steps, formats or types cannot run is refused here.

    `properties` are those stored with the plan.
    """
    builder = StageBuilder(plan, sources, ExpressionCompiler(release, properties or {}))
    store_records(builder)
    sink = plan.physical_plan
    if not isinstance(sink, LastStep):
        raise unbuildable(sink)
    match sink:
        case StreamSink():
            stream = build_stream_step(builder, sink.source)
            builder.end_stage(build_stream_sink(sink, stream), Append())
            return _program(builder, stream, Sink(sink.topic_name, _encoder(stream, sink.formats)), None)
        case TableSink():
            collection = CollectionId(str(value_of(plan.sink) or plan.query_id))
            table = _table(builder, sink, collection)
            return _program(builder, table, Sink(sink.topic_name, _encoder(table, sink.formats)), collection)
        case TableKeep():
            collection = CollectionId(str(value_of(plan.sink) or plan.query_id))
            return _program(builder, _table(builder, sink, collection), None, collection)
        case TableIndex():
            collection = CollectionId(str(value_of(plan.sink) or plan.query_id))
            table = _table(builder, sink, collection)
            layout = index_layout(sink, table, builder.compiler)
            return replace(_program(builder, table, None, collection), layout=layout)
        case _:
            assert_never(sink)


def build_table(
    name: ObjectName,
    topic: TopicName,
    schema: Schema,
    formats: Formats,
    timestamp: Maybe[TimestampColumn] = None,
    window: WindowInfo | None = None,
    store: WindowStoreSettings | None = None,
) -> Program:
    """The program that maintains a table over a topic; with `store`, its windows are retained as that says."""
    window = None if window is None else shape(window)
    window_topic = WindowTopic.TOPIC if store is None else store.topic
    decoder = Decoder(schema, formats, keyed=True, window=window, window_topic=window_topic)
    decoder.check()
    source = TopicInput(topic, decoder, decoded_view(topic, decoder))
    collection, layout = CollectionId(str(name)), layout_of(schema.key, schema.row, window)
    query = table_query_id(name)
    if window is None or store is None:
        stage = Stage((source,), build_table_of_topic(schema, source.view, timestamp, window), Upsert(collection))
        states: tuple[tuple[StateId, Layout], ...] = ()
    else:
        fragment = build_table_of_topic(schema, source.view, timestamp, window, WINDOW_COLUMNS)
        action, states = retain_windows(query, collection, layout, window, store)
        stage = Stage((source,), fragment, action)
    return Program(
        query=query,
        object=name,
        schema=schema,
        stages=(stage,),
        sink=None,
        collection=collection,
        layout=layout,
        states=states,
    )


def _table(builder: StageBuilder, sink: TableSink | TableKeep | TableIndex, collection: CollectionId) -> TableRelation:
    """The last stages of a table. If possible, the store computes the projection of an aggregation in its merge."""
    top = sink.source
    aggregate = _aggregate_below(top)
    if aggregate is None:
        table = build_table_step(builder, top)
        if builder.repeated_deletes is not None and isinstance(sink, TableSink) and _is_fk_join(top):
            builder.add_stage(build_repeated_deletes(builder.repeated_deletes, table), Emit())
    else:
        final = _is_final(top, aggregate)
        if isinstance(aggregate, StreamWindowedAggregate) and (final or stored_until_closed(aggregate)):
            closing = closing_windows(builder, aggregate, collection, _used(top, aggregate), final=final)
            table = _build_above(builder, top, aggregate, closing)
            _end(builder, sink, table, Upsert(collection, _order(table, final=final)))
            return table
        windows = None
        if isinstance(aggregate, StreamWindowedAggregate):
            windows = time_windows(builder, aggregate, collection)
        rows = _grouped(builder, aggregate) if windows is None else windows.rows
        aggregation = build_aggregate(aggregate, rows, _used(top, aggregate), builder.compiler)
        if windows is not None:
            aggregation = windows.aggregation(aggregation)
        state = builder.state(aggregate, None, aggregation.layout)
        plain = not isinstance(sink, TableIndex) and value_of(timestamp_of(sink)) is None
        projection = _store_projection(top, aggregate, aggregation, builder.compiler) if plain else None
        expiry = None if windows is None else windows.expiry(aggregation)
        merge = MergeInto(state, aggregation.merge, projection, collection, aggregation.order, expiry)
        stage = builder.end_stage(_partials(builder, state, aggregation), merge)
        view = state_view(state)
        table = _build_above(builder, top, aggregate, aggregation.relation(view))
        if projection is not None:
            return table
        builder.read(SavedRows(stage, view, table_schema(aggregation.layout)))
    # One row on the right can change many on the left: these are emitted in the order of their keys.
    order = _scalars(table.key_types) if _is_fk_join(top) else ()
    _end(builder, sink, table, Upsert(collection, order))
    return table


def _end(builder: StageBuilder, sink: TableSink | TableKeep | TableIndex, table: TableRelation, into: Upsert) -> None:
    """End the stage that writes the table. Rows of an index are not emitted, so their order does not matter."""
    if isinstance(sink, TableIndex):
        builder.end_stage(build_table_index(sink, table, builder.compiler), Upsert(into.collection))
    else:
        builder.end_stage(build_table_sink(sink, table), into)


def _grouped(builder: StageBuilder, aggregate: AggregateStep) -> StreamRelation:
    """The rows of an aggregation, by group."""
    match aggregate:
        case TableAggregate(source=TableGroupBy() | TableGroupByV1() as group_by):
            return build_table_group_by(group_by, build_table_step(builder, group_by.source), builder.compiler)
        case TableAggregate():
            raise unbuildable(aggregate)
        case StreamAggregate() | StreamWindowedAggregate():
            return grouped(builder, aggregate)


def _partials(builder: StageBuilder, state: StateId, aggregation: AggregateMerge) -> Fragment:
    """The rows that the store merges. If it cannot merge, Spark merges the saved partials with the state first."""
    if not aggregation.merged_by_spark:
        return aggregation.fragment()
    saved = builder.save(aggregation.fragment())
    view = state_lookup_view(state, saved.stage)
    before = builder.read(StateLookup(state, SavedKeys(saved.stage), view, rows_schema(aggregation.layout)))
    return aggregation.merged_fragment(saved.view, before)


def _build_above(builder: StageBuilder, step: Step, bottom: Step, relation: TableRelation) -> TableRelation:
    """Build `step` and the steps below it down to an aggregation, `bottom`, over the relation of that."""
    if step is bottom:
        return relation
    if not isinstance(step, AboveAggregate):
        raise unbuildable(step)
    match step:
        case TableSuppress():
            return _build_above(builder, step.source, bottom, relation)
        case TableFilter():
            return build_table_filter(step, _build_above(builder, step.source, bottom, relation), builder.compiler)
        case TableSelect():
            return build_table_select(step, _build_above(builder, step.source, bottom, relation), builder.compiler)
        case _:
            assert_never(step)


def _store_projection(
    top: Step, bottom: Step, aggregation: AggregateMerge, compiler: ExpressionCompiler
) -> StateProjection | None:
    """The projection for the store to compute: plain columns over at most a HAVING, if DuckDB can compute that."""
    if not isinstance(top, TableSelect) or not all(part.result_in_duckdb for part in aggregation.parts):
        return None
    scope = aggregation.scope(Dialect.DUCKDB, "s", "ts")
    selected = [parse_named(text).expression for text in top.select_expressions]
    if not all(_is_plain(expression) for expression in selected):
        return None
    having = None
    if isinstance(top.source, TableFilter) and top.source.source is bottom:
        condition = parse_expression(top.source.filter_expression)
        if not compiler.in_duckdb(condition, scope):
            return None
        having = compiler.duckdb(condition, scope)
    elif top.source is not bottom:
        return None
    return StateProjection(tuple(compiler.duckdb(expression, scope) for expression in selected), having)


def _is_plain(expression: Expression) -> bool:
    """A column, or a copy of one."""
    if isinstance(expression, Call) and expression.name == "AS_VALUE":
        return _is_plain(expression.arguments[0])
    return isinstance(expression, ColumnRef)


def _aggregate_below(step: Step) -> AggregateStep | None:
    while isinstance(step, AboveAggregate):
        step = step.source
    return step if isinstance(step, AggregateStep) else None


def _is_final(step: Step, bottom: AggregateStep) -> bool:
    """Whether windows are emitted only when they close, by the aggregation or by a step above it."""
    if isinstance(bottom, StreamWindowedAggregate) and is_final(bottom):
        return True
    while step is not bottom:
        if isinstance(step, TableSuppress):
            return step.refinement_info.output_refinement is OutputRefinement.FINAL
        step = sources_of(step)[0]
    return False


def _order(table: TableRelation, *, final: bool) -> tuple[str, ...]:
    """Final windows are emitted in the order in which they close; other windows with deletes first."""
    if not final:
        return (col.PRESENT, *table.keys[-2:])
    return (table.keys[-1], *_scalars(table.key_types[:-2]))


def _scalars(key: Sequence[SqlType]) -> tuple[str, ...]:
    """The key columns that rows can be sorted by."""
    return tuple(col.key(i) for i, type_ in enumerate(key) if isinstance(type_, Scalar))


def _is_fk_join(step: Step) -> bool:
    """Whether a step is a foreign-key join, possibly with projections."""
    while isinstance(step, TableSelect):
        step = step.source
    return isinstance(step, FkTableTableJoin)


def _used(step: Step, bottom: Step) -> frozenset[str]:
    """The columns that the steps above an aggregation read."""
    used: set[str] = set()
    while step is not bottom:
        if not isinstance(step, AboveAggregate):
            raise unbuildable(step)
        match step:
            case TableSuppress():
                pass
            case TableFilter():
                used |= references(parse_expression(step.filter_expression))
            case TableSelect():
                for text in step.select_expressions:
                    used |= references(parse_named(text).expression)
            case _:
                assert_never(step)
        step = step.source
    return frozenset(used)


def _program(builder: StageBuilder, relation: Relation, sink: Sink | None, collection: CollectionId | None) -> Program:
    plan = builder.plan
    return Program(
        query=plan.query_id,
        object=ObjectName(value_of(plan.sink) or plan.query_id),
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
