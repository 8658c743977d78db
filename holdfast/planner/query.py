"""The steps of a query, in ksqlDB's own vocabulary and shape."""

from collections.abc import Iterable, Sequence

from holdfast.catalog.objects import CatalogObject, Stream
from holdfast.planner.aggregation import plan_aggregation
from holdfast.planner.texts import columns_text, context, expression_text
from holdfast.runtime.expressions.tree import ColumnRef, Expression, NamedExpression
from holdfast.runtime.plan.formats import Formats
from holdfast.runtime.plan.sources import SchemaText, StreamSource, TableSource
from holdfast.runtime.plan.steps import (
    Step,
    StreamFilter,
    StreamSelect,
    StreamSink,
    TableFilter,
    TableSelect,
    TableSink,
)
from holdfast.sql.bound import BoundColumn, BoundQuery, BoundSelect, Target
from holdfast.sql.formats import build_formats
from holdfast.sql.statements import ObjectKind

PSEUDO_COLUMN_VERSION = 1
"""ROWTIME, ROWPARTITION and ROWOFFSET."""


def plan_steps(query: BoundQuery, target: Target) -> Step:
    """The steps from the source's topic to the target's."""
    source = query.source
    step = _filter(_source(source), source, query.where)
    step = plan_aggregation(step, query) if query.aggregates else _project(step, source, query.keys, query.values)
    sink = StreamSink if target.kind is ObjectKind.STREAM else TableSink
    return sink(
        properties=context(target.name),
        source=step,
        formats=target.formats,
        topic_name=target.topic,
        timestamp_column=target.timestamp,
    )


def plan_select(select: BoundSelect) -> Step:
    """The steps of a client's query, which has no sink. Rows keep the key of what they come from, shown or not."""
    source = select.relation
    step = _filter(_source(source), source, select.where)
    shown = {column.expression: column.name for column in reversed(select.columns)}
    keys = {key.name: shown.get(ColumnRef(key.name), key.name) for key in source.schema.key}
    named = {(name, ColumnRef(key)) for key, name in keys.items()}
    values = [column for column in select.columns if (column.name, column.expression) not in named]
    return _project(step, source, tuple(keys.values()), values)


def _source(source: CatalogObject) -> Step:
    properties, schema = context("KsqlTopic/Source"), SchemaText(str(source.schema))
    if isinstance(source, Stream):
        return StreamSource(
            properties=properties,
            topic_name=source.topic,
            formats=source.formats,
            timestamp_column=source.timestamp,
            source_schema=schema,
            pseudo_column_version=PSEUDO_COLUMN_VERSION,
        )
    return TableSource(
        properties=properties,
        topic_name=source.topic,
        formats=source.formats,
        timestamp_column=source.timestamp,
        source_schema=schema,
        pseudo_column_version=PSEUDO_COLUMN_VERSION,
        state_store_formats=_stored(source),
    )


def _filter(step: Step, source: CatalogObject, where: Expression | None) -> Step:
    if where is None:
        return step
    filter_ = StreamFilter if isinstance(source, Stream) else TableFilter
    return filter_(properties=context("WhereFilter"), source=step, filter_expression=expression_text(where))


def _project(step: Step, source: CatalogObject, keys: Sequence[str], values: Iterable[BoundColumn]) -> Step:
    expressions = columns_text(NamedExpression(column.name, column.expression) for column in values)
    if isinstance(source, Stream):
        return StreamSelect(
            properties=context("Project"),
            source=step,
            key_column_names=tuple(keys),
            selected_keys=None,
            select_expressions=expressions,
        )
    return TableSelect(
        properties=context("Project"),
        source=step,
        key_column_names=tuple(keys),
        select_expressions=expressions,
        internal_formats=_stored(source),
    )


def _stored(source: CatalogObject) -> Formats:
    """How a table's rows are kept inside a query: as in its topic, but never unwrapped."""
    formats = source.formats
    return build_formats(formats.key_format.format, formats.value_format.format, key_columns=len(source.schema.key))
