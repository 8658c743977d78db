"""The description of a step or a command: a title, and lines of label and text."""

import re
from collections.abc import Iterable, Iterator
from typing import assert_never

from holdfast.names import literal, show
from holdfast.runtime.plan.ddl import (
    AlterIndex,
    AlterSource,
    CreateFunction,
    CreateIndex,
    CreateMaterializedView,
    CreateStream,
    CreateTable,
    CreateView,
    CreateWindowedTable,
    DdlCommand,
    DropFunction,
    DropIndex,
    DropSource,
    DropType,
    DropView,
    RegisterType,
)
from holdfast.runtime.plan.document import QueryPlan
from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, Formats, TimestampColumn
from holdfast.runtime.plan.optional import Maybe, value_of
from holdfast.runtime.plan.steps import (
    CollectionSource,
    FkTableTableJoin,
    JoinStep,
    SinkStep,
    Step,
    StreamAggregate,
    StreamFilter,
    StreamFlatMap,
    StreamGroupBy,
    StreamGroupByKey,
    StreamGroupByV1,
    StreamSelect,
    StreamSelectKey,
    StreamSelectKeyV1,
    StreamSink,
    StreamSource,
    StreamStreamJoin,
    StreamTableJoin,
    StreamWindowedAggregate,
    TableAggregate,
    TableFilter,
    TableGroupBy,
    TableGroupByV1,
    TableIndex,
    TableKeep,
    TableSelect,
    TableSelectKey,
    TableSink,
    TableSource,
    TableSourceV1,
    TableSuppress,
    TableTableJoin,
    TopicSourceStep,
    WindowedSourceStep,
    WindowedStreamSource,
    WindowedTableSource,
    WindowStoreSource,
    walk,
)
from holdfast.runtime.plan.windows import (
    Duration,
    HoppingWindow,
    SessionWindow,
    TumblingWindow,
    WindowExpression,
    WindowInfo,
    WindowStoreSettings,
    WindowText,
    WindowTime,
)

WORD = re.compile(r"[A-Z][a-z]*\d*")

Detail = tuple[str, str | None]
"""A line under a step, `label: text`; omitted when the text is None."""


def query_details(query: QueryPlan) -> Iterator[Detail]:
    steps = list(walk(query.physical_plan))
    sink = value_of(query.sink)
    yield "Reads", _names(query.sources)
    yield "Writes", None if sink is None else show(sink)
    yield "Topics Read", _texts(_unique(step.topic_name for step in steps if isinstance(step, TopicSourceStep))) or None
    yield "Topics Written", _texts(_unique(step.topic_name for step in steps if isinstance(step, SinkStep))) or None


def command_title(command: DdlCommand) -> str:
    match command:
        case CreateStream() | CreateTable() | CreateWindowedTable():
            replace = "or Replace " if value_of(command.or_replace) else ""
            source = "Source " if value_of(command.is_source) else ""
            kind = "Stream" if isinstance(command, CreateStream) else "Table"
            return f"Create {replace}{source}{kind} {show(command.source_name)} on topic {command.topic_name}"
        case CreateMaterializedView():
            replace = "or Replace " if value_of(command.or_replace) else ""
            return f"Create {replace}Materialized View {show(command.source_name)}"
        case RegisterType():
            return f"Register Type {show(command.type_name)}"
        case DropSource():
            return f"Drop Source {show(command.source_name)}"
        case DropType():
            return f"Drop Type {show(command.type_name)}"
        case CreateFunction():
            return f"Create Function {show(command.function_name)}"
        case DropFunction():
            return f"Drop Function {show(command.function_name)}"
        case CreateView():
            return f"Create View {show(command.view_name)}"
        case DropView():
            return f"Drop View {show(command.view_name)}"
        case CreateIndex():
            return f"Create Index {show(command.index_name)} on {show(command.source_name)}"
        case AlterIndex():
            return f"Alter Index {show(command.index_name)}"
        case DropIndex():
            return f"Drop Index {show(command.index_name)}"
        case AlterSource():
            return f"Alter {command.ksql_type.title()} {show(command.source_name)}"
        case _:
            assert_never(command)


def command_details(command: DdlCommand) -> Iterator[Detail]:
    match command:
        case CreateStream() | CreateTable():
            yield "Schema", command.schema
            yield "Key Field", value_of(command.key_field)
            yield "Formats", formats_text(command.formats)
            yield "Window", _window_info(command.window_info)
            yield "Timestamp", _timestamp(command.timestamp_column)
        case CreateWindowedTable():
            yield "Schema", command.schema
            yield "Formats", formats_text(command.formats)
            yield "Window", _window_info(command.window_info)
            yield from _window_store_details(command.window_store)
            yield "Timestamp", _timestamp(command.timestamp_column)
        case CreateMaterializedView():
            yield "Schema", command.schema
            yield "Window", _window_info(command.window_info)
        case RegisterType():
            yield "Type", command.type
        case AlterSource():
            yield "Add Columns", _texts(command.new_columns)
        case CreateFunction():
            yield "Kind", command.kind.title()
            yield "Arguments", command.arguments
            yield "Returns", command.returns
            yield "Language", command.language
        case CreateView():
            yield "Sources", _texts(command.sources)
            yield "Definition", command.definition
        case CreateIndex():
            yield "Schema", command.schema
            yield "Window", _window_info(command.window_info)
            yield "Indexed By", _indexed_by(command.expressions)
        case DropSource() | DropType() | DropFunction() | DropView() | AlterIndex() | DropIndex():
            pass
        case _:
            assert_never(command)


def step_name(step: Step) -> str:
    """The kind of a step, in words."""
    words = " ".join(WORD.findall(type(step).__name__))
    return f"{step.join_type.title()} {words}" if isinstance(step, JoinStep) else words


def step_title(step: Step) -> str:
    """The kind of a step, and the topic or object that it reads or writes."""
    match step:
        case CollectionSource():
            return f"{step_name(step)} on {show(step.source_name)}"
        case _ if isinstance(step, TopicSourceStep | SinkStep):
            return f"{step_name(step)} on topic {step.topic_name}"
        case _:
            return step_name(step)


def step_details(step: Step) -> Iterator[Detail]:
    match step:
        case StreamSource() | WindowedStreamSource() | TableSource() | TableSourceV1():
            yield from _source_details(step)
        case WindowedTableSource() | WindowStoreSource():
            yield from _source_details(step)
        case CollectionSource():
            yield "Schema", step.source_schema
            yield "Window", _window_info(step.window_info)
        case StreamStreamJoin() | StreamTableJoin() | TableTableJoin() | FkTableTableJoin():
            yield from _join_details(step)
        case StreamFilter() | TableFilter():
            yield "Filter", step.filter_expression
        case StreamSelect():
            yield "Key Columns", _maybe_names(step.key_column_names)
            yield "Selected Keys", _maybe_names(step.selected_keys)
            yield "Output", _texts(step.select_expressions) or None
        case TableSelect():
            yield "Key Columns", _maybe_names(step.key_column_names)
            yield "Output", _texts(step.select_expressions) or None
            yield "Stored As", _maybe_formats(step.internal_formats)
        case StreamSelectKey():
            yield "Key", _texts(step.key_expressions)
        case StreamSelectKeyV1():
            yield "Key", step.key_expression
        case TableSelectKey():
            yield "Key", _texts(step.key_expressions)
            yield "Internal Formats", formats_text(step.internal_formats)
        case StreamFlatMap():
            yield "Table Functions", _texts(step.table_functions)
        case StreamGroupByKey():
            yield "Internal Formats", formats_text(step.internal_formats)
        case StreamGroupBy() | StreamGroupByV1() | TableGroupBy() | TableGroupByV1():
            yield "Group Key", _texts(step.group_by_expressions)
            yield "Internal Formats", formats_text(step.internal_formats)
        case StreamAggregate() | TableAggregate():
            yield from _aggregate_details(step)
        case StreamWindowedAggregate():
            yield "Window", _window(step.window_expression)
            yield from _aggregate_details(step)
        case TableSuppress():
            yield "Emit", step.refinement_info.output_refinement
            yield "Internal Formats", formats_text(step.internal_formats)
        case StreamSink() | TableSink():
            yield "Formats", formats_text(step.formats)
            yield "Timestamp", _timestamp(step.timestamp_column)
        case TableKeep():
            pass
        case TableIndex():
            yield "Indexed By", _indexed_by(step.index_expressions)
        case _:
            assert_never(step)


def _indexed_by(expressions: Iterable[str]) -> str:
    return _texts(expressions) or "the key"


def _source_details(step: TopicSourceStep) -> Iterator[Detail]:
    yield "Schema", step.source_schema
    yield "Formats", formats_text(step.formats)
    if isinstance(step, WindowedSourceStep):
        yield "Window", _window_info(step.window_info)
    if isinstance(step, WindowStoreSource):
        yield from _window_store_details(step.window_store)
    yield "Timestamp", _timestamp(step.timestamp_column)
    version = value_of(step.pseudo_column_version)
    yield "Pseudo Columns", None if version is None else f"version {version}"
    if isinstance(step, TableSource):
        yield "Stored As", formats_text(step.state_store_formats)
    if isinstance(step, TableSourceV1) and value_of(step.force_changelog):
        yield "Stored From", "private changelog"


def _join_details(step: JoinStep) -> Iterator[Detail]:
    match step:
        case StreamStreamJoin():
            grace = value_of(step.grace)
            yield "Key Column", _maybe_name(step.key_column_name)
            yield "Within", f"{_duration(step.before)} before, {_duration(step.after)} after"
            yield "Grace Period", None if grace is None else _duration(grace)
            yield "Left Internal Formats", formats_text(step.left_internal_formats)
            yield "Right Internal Formats", formats_text(step.right_internal_formats)
        case StreamTableJoin():
            yield "Key Column", _maybe_name(step.key_column_name)
            yield "Internal Formats", formats_text(step.internal_formats)
        case TableTableJoin():
            yield "Key Column", _maybe_name(step.key_column_name)
        case FkTableTableJoin():
            yield "Foreign Key", value_of(step.left_join_expression) or _maybe_name(step.left_join_column_name)
            yield "Internal Formats", formats_text(step.formats)
        case _:
            assert_never(step)


def _aggregate_details(step: StreamAggregate | StreamWindowedAggregate | TableAggregate) -> Iterator[Detail]:
    yield "Aggregates", _texts(step.aggregation_functions)
    yield "Carried Columns", _names(step.non_aggregate_columns) or None
    yield "Internal Formats", formats_text(step.internal_formats)


def formats_text(formats: Formats) -> str:
    key = _format(formats.key_format, value_of(formats.key_features) or ())
    value = _format(
        formats.value_format, (*(value_of(formats.value_features) or ()), *(value_of(formats.options) or ()))
    )
    return f"key {key}, value {value}"


def _maybe_formats(formats: Maybe[Formats]) -> str | None:
    found = value_of(formats)
    return None if found is None else formats_text(found)


def _format(info: FormatInfo, features: Iterable[str]) -> str:
    settings = [feature.lower().replace("_", " ") for feature in features]
    properties = value_of(info.properties)
    if properties is not None:
        settings += _format_settings(properties)
    return f"{info.format} ({', '.join(settings)})" if settings else info.format


def _format_settings(properties: FormatProperties) -> Iterator[str]:
    labelled = (
        ("delimiter", properties.delimiter),
        ("schema name", properties.full_schema_name),
        ("schema id", properties.schema_id),
        ("unwrap primitives", properties.unwrap_primitives),
        ("nullable as", properties.nullable_representation),
    )
    for label, value in labelled:
        text = value_of(value)
        if text is not None:
            yield f"{label} {literal(text)}"


def _timestamp(timestamp: Maybe[TimestampColumn]) -> str | None:
    found = value_of(timestamp)
    if found is None:
        return None
    pattern = value_of(found.format)
    return show(found.column) if pattern is None else f"{show(found.column)} as {literal(pattern)}"


def _window_info(info: Maybe[WindowInfo]) -> str | None:
    found = value_of(info)
    if found is None:
        return None
    size, emit = value_of(found.size), value_of(found.emit_strategy)
    parts = [f"SIZE {_duration(size)}"] if size is not None else []
    if emit is not None:
        parts.append(f"EMIT {emit}")
    return f"{found.type} ({', '.join(parts)})" if parts else found.type.value


def _window_store_details(store: WindowStoreSettings) -> Iterator[Detail]:
    yield "Window Topic", store.topic
    yield "Retention", _duration(store.retention)


def _window(window: WindowText | WindowExpression) -> str:
    match window:
        case str():
            return " ".join(window.split()).replace("( ", "(").replace(" )", ")").replace(" ,", ",")
        case TumblingWindow():
            parts = [f"SIZE {_time(window.size)}"]
        case HoppingWindow():
            parts = [f"SIZE {_time(window.size)}", f"ADVANCE BY {_time(window.advance_by)}"]
        case SessionWindow():
            parts = [_time(window.gap)]
        case _:
            assert_never(window)
    retention, grace, emit = value_of(window.retention), value_of(window.grace_period), value_of(window.emit_strategy)
    if retention is not None:
        parts.append(f"RETENTION {_time(retention)}")
    if grace is not None:
        parts.append(f"GRACE PERIOD {_time(grace)}")
    if emit is not None:
        parts.append(f"EMIT {emit}")
    return f"{window.TAG} ({', '.join(parts)})"


def _time(time: WindowTime) -> str:
    return f"{time.value} {time.time_unit}"


def _duration(duration: Duration) -> str:
    return f"{duration.seconds.normalize():f} s"


def _maybe_name(name: Maybe[str]) -> str | None:
    found = value_of(name)
    return None if found is None else show(found)


def _maybe_names(names: Maybe[tuple[str, ...]]) -> str | None:
    found = value_of(names)
    return None if found is None else _names(found) or "none"


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(show, names))


def _texts(texts: Iterable[str]) -> str:
    return ", ".join(texts)


def _unique(texts: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys(texts)
