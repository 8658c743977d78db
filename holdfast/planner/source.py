"""The steps that read a stream or a table: its topic or, without one, its collection."""

from holdfast.catalog.objects import CatalogObject, Stream, Table
from holdfast.planner.node import Node
from holdfast.runtime.plan.sources import (
    CollectionSource,
    SchemaText,
    StreamSource,
    TableSource,
    WindowedStreamSource,
    WindowedTableSource,
    WindowStoreSource,
)
from holdfast.runtime.plan.steps import Step
from holdfast.sql.plan_text import context
from holdfast.sql.properties.formats import build_formats
from holdfast.sql.query.relation import PSEUDO_COLUMNS, RECORD_COLUMNS, WINDOW_BOUNDS
from holdfast.types import Column

PSEUDO_COLUMN_VERSION = 1
"""ROWTIME, ROWPARTITION and ROWOFFSET."""


def plan_source(source: CatalogObject, name: str = "KsqlTopic") -> Node:
    """The rows of a source; `name` distinguishes it from the other sources of the query."""
    schema, formats = source.schema, source.formats
    pseudo = [Column(name, type_) for name, type_ in PSEUDO_COLUMNS.items() if schema.find(name) is None]
    if source.topic is None:
        pseudo = [column for column in pseudo if column.name not in RECORD_COLUMNS]
    bounds = [Column(name, type_) for name, type_ in WINDOW_BOUNDS.items()] if source.window is not None else []
    return Node(
        step=_step(source, f"{name}/Source"),
        stream=isinstance(source, Stream),
        key=schema.key,
        value=(*schema.value, *schema.headers, *pseudo, *schema.key, *bounds),
        key_format=formats.key_format,
        value_format=formats.value_format,
        window=source.window,
    )


def _step(source: CatalogObject, path: str) -> Step:
    properties, schema = context(path), SchemaText(str(source.schema))
    stream = isinstance(source, Stream)
    if source.topic is None:
        return CollectionSource(
            properties=properties, source_name=source.name, window_info=source.window, source_schema=schema
        )
    if source.window is not None and isinstance(source, Table) and source.window_store is not None:
        return WindowStoreSource(
            properties=properties,
            topic_name=source.topic,
            formats=source.formats,
            window_info=source.window,
            window_topic=source.window_store.topic,
            retention=source.window_store.retention,
            timestamp_column=source.timestamp,
            source_schema=schema,
            pseudo_column_version=PSEUDO_COLUMN_VERSION,
            source_name=source.name,
        )
    if source.window is not None:
        windowed = WindowedStreamSource if stream else WindowedTableSource
        return windowed(
            properties=properties,
            topic_name=source.topic,
            formats=source.formats,
            window_info=source.window,
            timestamp_column=source.timestamp,
            source_schema=schema,
            pseudo_column_version=PSEUDO_COLUMN_VERSION,
        )
    if stream:
        return StreamSource(
            properties=properties,
            topic_name=source.topic,
            formats=source.formats,
            timestamp_column=source.timestamp,
            source_schema=schema,
            pseudo_column_version=PSEUDO_COLUMN_VERSION,
        )
    state_formats = build_formats(
        source.formats.key_format, source.formats.value_format, key_columns=len(source.schema.key)
    )
    return TableSource(
        properties=properties,
        topic_name=source.topic,
        formats=source.formats,
        timestamp_column=source.timestamp,
        source_schema=schema,
        pseudo_column_version=PSEUDO_COLUMN_VERSION,
        state_store_formats=state_formats,
    )
