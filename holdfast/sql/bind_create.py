"""CREATE STREAM and CREATE TABLE, over a topic and from a query."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.catalog.snapshot import Catalog
from holdfast.errors import (
    BindError,
    Feature,
    NotSupported,
    NotYetSupported,
    Position,
    TypeMismatch,
    UnknownColumn,
    WrongObjectKind,
)
from holdfast.names import ObjectName, TopicName
from holdfast.runtime.plan.formats import FormatInfo, TimestampColumn
from holdfast.runtime.plan.presence import given
from holdfast.sql import statements as sql
from holdfast.sql.bind_joins import is_stream
from holdfast.sql.bind_query import bind_query
from holdfast.sql.bound import BoundCreateAs, BoundCreateSource, BoundNothing, Target
from holdfast.sql.bound_query import BoundColumn, BoundQuery
from holdfast.sql.formats import KAFKA, NONE, build_formats, check_key, check_value, format_info, wrap_features
from holdfast.sql.properties import OF_SOURCES, WithProperties, no_history, read_properties, topic_name
from holdfast.sql.relation import RESERVED_COLUMNS, reserved
from holdfast.sql.replacing import check_replaces_source, replaced_query
from holdfast.sql.timestamp_formats import check_timestamp_format
from holdfast.sql.windows import result_window
from holdfast.types import Array, Column, Role, Scalar, Schema, Struct, StructField

DEFAULT_KEY_FORMAT = "ksql.persistence.default.format.key"
DEFAULT_VALUE_FORMAT = "ksql.persistence.default.format.value"
NEW_PLANNER = "ksql.new.query.planner.enabled"
WRAP_SINGLES = "ksql.persistence.wrap.single.values"
TOPIC_PREFIX = "ksql.output.topic.name.prefix"
HEADERS = Array(Struct((StructField("KEY", Scalar.STRING), StructField("VALUE", Scalar.BYTES))))
"""All headers of a record."""


def bind_create_source(
    statement: sql.CreateSource, catalog: Catalog, properties: Mapping[str, str]
) -> BoundCreateSource | BoundNothing:
    """An object over a topic."""
    if statement.or_replace and statement.read_only:
        raise NotSupported(
            f'SOURCE {statement.kind.lower()} "{statement.name.text}" cannot be replaced',
            hint="Leave out OR REPLACE.",
            position=statement.position,
        )
    nothing = taken(statement, catalog)
    if nothing is not None:
        return nothing
    with_ = read_properties(statement.properties, OF_SOURCES)
    _check_format_names(with_)
    schema = Schema(tuple(_column(column, statement.kind) for column in statement.columns))
    _check_columns(statement)
    if with_.topic is None:
        raise BindError(
            "KAFKA_TOPIC is missing",
            hint="Write WITH (KAFKA_TOPIC='…', VALUE_FORMAT='JSON').",
            position=statement.name.position,
        )
    if statement.kind is sql.ObjectKind.TABLE and not schema.key:
        raise BindError(
            "a table needs a PRIMARY KEY",
            hint=f"Write PRIMARY KEY after the type of its key column: {schema.columns[0].name} … PRIMARY KEY.",
            position=statement.name.position,
        )
    key_format = with_.key_format or properties.get(DEFAULT_KEY_FORMAT, KAFKA).upper()
    value_format = with_.value_format or properties.get(DEFAULT_VALUE_FORMAT, "").upper()
    if not value_format:
        raise BindError(
            "VALUE_FORMAT is missing",
            hint=f"Write VALUE_FORMAT='JSON', or SET '{DEFAULT_VALUE_FORMAT}'='JSON'.",
            position=statement.name.position,
        )
    if with_.window is not None and not schema.key:
        raise BindError(
            "a windowed topic needs a key column",
            detail="A window is a part of its key.",
            hint="Declare what its keys have as KEY columns, or as the PRIMARY KEY of a table.",
            position=with_.position("WINDOW_TYPE"),
        )
    key_info, value_info = _formats(statement, with_, key_format, value_format)
    target = _target(statement, with_, schema, with_.topic, key_info, value_info, properties)
    target = replace(target, window=with_.window, read_only=statement.read_only)
    check_replaces_source(target, catalog, statement.name.position)
    return BoundCreateSource(target=target)


def bind_create_as(
    statement: sql.CreateAs, catalog: Catalog, properties: Mapping[str, str]
) -> BoundCreateAs | BoundNothing:
    """An object that a query keeps current; what is not said is as the query's source has it."""
    nothing = taken(statement, catalog)
    if nothing is not None:
        return nothing
    with_ = read_properties(statement.properties)
    _check_format_names(with_)
    query = bind_query(statement.select, catalog, lambda columns: _check_timestamp(with_, columns, statement))
    _check_kind(statement, query)
    _check_planner(statement, query, properties)
    schema = schema_of(query)
    topic = with_.topic or topic_name(
        properties.get(TOPIC_PREFIX, "") + statement.name.text,
        statement.name.position,
        otherwise="Give it a topic with another name: WITH (KAFKA_TOPIC='…').",
    )
    for source in query.sources:
        if topic == source.object.topic:
            raise BindError(
                f"the query cannot write to the topic that it reads: '{topic}'",
                hint="Give it another topic: WITH (KAFKA_TOPIC='…').",
                position=with_.position("KAFKA_TOPIC") or statement.name.position,
            )
    key_info, value_info = _inherited_formats(statement, with_, query, schema, properties)
    target = _target(statement, with_, schema, topic, key_info, value_info, properties)
    target = replace(target, window=result_window(query))
    replaces = replaced_query(target, catalog, statement.name.position)
    return BoundCreateAs(target=target, query=query, replaces=replaces, position=statement.name.position)


def schema_of(query: BoundQuery) -> Schema:
    """The columns of a query's result, its key first."""
    types = {column.name: column.type for column in query.projection}
    keys = (Column(name, types[name], Role.KEY) for name in query.keys)
    return Schema((*keys, *(Column(column.name, column.type) for column in query.values)))


def taken(statement: sql.CreateSource | sql.CreateAs, catalog: Catalog) -> BoundNothing | None:
    """What to do about an object that has the name already."""
    found = catalog.find(statement.name.text)
    if found is None:
        catalog.check_free(statement.name.text, position=statement.name.position)
        return None
    if statement.if_not_exists:
        return BoundNothing(f'{found.KIND} "{found.name}" already exists')
    if found.read_only and statement.or_replace:
        raise NotSupported(
            f'SOURCE {found.KIND} "{found.name}" cannot be replaced',
            hint=f"DROP {found.KIND.upper()} {found.name} first.",
            position=statement.name.position,
        )
    if statement.or_replace:
        return None
    catalog.check_free(statement.name.text, position=statement.name.position)
    return None


def _formats(
    statement: sql.CreateSource | sql.CreateAs,
    with_: WithProperties,
    key: str,
    value: str,
    inherited: str | None = None,
) -> tuple[FormatInfo, FormatInfo]:
    name = statement.name.position
    key_position = with_.position("KEY_FORMAT", "FORMAT") or name
    value_position = with_.position("VALUE_FORMAT", "FORMAT") or name
    return (
        format_info(key, side="key", delimiter=with_.key_delimiter, position=key_position),
        format_info(value, side="value", delimiter=with_.value_delimiter or inherited, position=value_position),
    )


def _check_format_names(with_: WithProperties) -> None:
    """A format that does not exist is told of before what else may be wrong."""
    for side, name in (("key", with_.key_format), ("value", with_.value_format)):
        if name is not None:
            format_info(name, side=side, position=with_.position(f"{side.upper()}_FORMAT", "FORMAT"))


def _inherited_formats(
    statement: sql.CreateAs, with_: WithProperties, query: BoundQuery, schema: Schema, properties: Mapping[str, str]
) -> tuple[FormatInfo, FormatInfo]:
    """The formats that are given, else those of the query's source; a key that NONE cannot hold gets the default."""
    source = query.source.formats
    key = with_.key_format or source.key_format.format
    if key == NONE and with_.key_format is None and schema.key:
        key = properties.get(DEFAULT_KEY_FORMAT, KAFKA).upper()
    if with_.key_format not in (None, NONE) and not schema.key:
        raise BindError(
            "KEY_FORMAT is given, but the result has no key columns",
            hint="Leave it out.",
            position=with_.position("KEY_FORMAT", "FORMAT"),
        )
    value = with_.value_format or source.value_format.format
    options = given(source.value_format.properties)
    inherited = given(options.delimiter) if options is not None and value == source.value_format.format else None
    return _formats(statement, with_, key, value, inherited)


def _target(
    statement: sql.CreateSource | sql.CreateAs,
    with_: WithProperties,
    schema: Schema,
    topic: TopicName,
    key: FormatInfo,
    value: FormatInfo,
    properties: Mapping[str, str],
) -> Target:
    name = statement.name.position
    check_key(key.format, schema.key, position=with_.position("KEY_FORMAT", "FORMAT") or name)
    check_value(value.format, schema.value, position=with_.position("VALUE_FORMAT", "FORMAT") or name)
    default = properties.get(WRAP_SINGLES)
    features = wrap_features(
        with_.wrap_single_value,
        value.format,
        schema.value,
        default=None if default is None else default.lower() == "true",
        position=with_.position("WRAP_SINGLE_VALUE"),
    )
    return Target(
        kind=statement.kind,
        name=ObjectName(statement.name.text),
        schema=schema,
        topic=topic,
        formats=build_formats(key, value, key_columns=len(schema.key), value_features=features),
        timestamp=_timestamp(with_, schema, statement.name.text),
        topic_settings=with_.topic_settings,
        or_replace=statement.or_replace,
        retain_ms=_retained(statement, with_),
    )


def _retained(statement: sql.CreateSource | sql.CreateAs, with_: WithProperties) -> int | None:
    if with_.retain_ms is not None and statement.kind is sql.ObjectKind.STREAM:
        raise no_history(statement.name.text, with_.position(sql.RETAIN_HISTORY))
    return with_.retain_ms


# ---- columns


def _column(column: sql.ColumnDefinition, kind: sql.ObjectKind) -> Column:
    match column.marker, kind:
        case sql.Marker.KEY, sql.ObjectKind.TABLE:
            raise _wrong_marker(column, "PRIMARY KEY", kind)
        case sql.Marker.PRIMARY_KEY, sql.ObjectKind.STREAM:
            raise _wrong_marker(column, "KEY", kind)
        case sql.Marker.HEADERS, _:
            return _header(column)
    return Column(column.name, column.type, Role.VALUE if column.marker is sql.Marker.NONE else Role.KEY)


def _header(column: sql.ColumnDefinition) -> Column:
    wanted, written = (HEADERS, "HEADERS") if column.header is None else (Scalar.BYTES, f"HEADER('{column.header}')")
    if column.type != wanted:
        raise TypeMismatch(
            f'the {written} column "{column.name}" must be {wanted}, not {column.type}',
            hint=f"Write {column.name} {wanted} {written}.",
            position=column.position,
        )
    return Column(column.name, column.type, Role.HEADERS, column.header)


def _wrong_marker(column: sql.ColumnDefinition, wanted: str, kind: sql.ObjectKind) -> BindError:
    return BindError(
        f'column "{column.name}" of a {kind.lower()} cannot be {column.marker}',
        hint=f"Write {wanted}.",
        position=column.position,
    )


def _check_columns(statement: sql.CreateSource) -> None:
    if not statement.columns:
        raise NotYetSupported(
            Feature.STATEMENT,
            "CREATE without columns",
            "a CREATE without columns is not supported yet",
            detail="Columns cannot be learnt from a schema registry.",
            hint=f"Write CREATE {statement.kind} {statement.name.text} (column type, …) WITH (…).",
            position=statement.name.position,
        )
    seen: set[str] = set()
    for column in statement.columns:
        if column.name in RESERVED_COLUMNS:
            raise reserved(column.name, column.position)
        if column.name in seen:
            raise BindError(f'column "{column.name}" is declared twice', position=column.position)
        seen.add(column.name)
    _check_headers([column for column in statement.columns if column.marker is sql.Marker.HEADERS])


def _check_headers(headers: Sequence[sql.ColumnDefinition]) -> None:
    if len(headers) > 1 and any(column.header is None for column in headers):
        raise BindError("a HEADERS column has all headers and must be the only one", position=headers[1].position)
    for i, column in enumerate(headers):
        same = next((other.name for other in headers[:i] if other.header == column.header), None)
        if same is not None:
            raise BindError(
                f"HEADER('{column.header}') is declared twice, as {same} and as {column.name}",
                hint="Leave one out.",
                position=column.position,
            )


def _timestamp(with_: WithProperties, schema: Schema, relation: str) -> TimestampColumn | None:
    position = with_.position("TIMESTAMP", "TIMESTAMP_FORMAT")
    if with_.timestamp is None:
        if with_.timestamp_format is not None:
            raise BindError("TIMESTAMP_FORMAT needs TIMESTAMP", position=position)
        return None
    column = schema.find(with_.timestamp)
    if column is None:
        raise _no_timestamp(with_, [c.name for c in schema.columns], relation)
    _check_timestamp_type(column, with_.timestamp_format, position)
    return TimestampColumn(column=column.name, format=with_.timestamp_format)


def _check_timestamp(with_: WithProperties, columns: Sequence[BoundColumn], statement: sql.CreateAs) -> None:
    known = [column.name for column in columns]
    if with_.timestamp is not None and with_.timestamp not in known:
        raise _no_timestamp(with_, known, statement.name.text)


def _no_timestamp(with_: WithProperties, known: Sequence[str], relation: str) -> UnknownColumn:
    assert with_.timestamp is not None
    position = with_.position("TIMESTAMP", "TIMESTAMP_FORMAT")
    return UnknownColumn(with_.timestamp, relation=relation, known=known, position=position)


def _check_timestamp_type(column: Column, pattern: str | None, position: Position | None) -> None:
    if column.type is Scalar.STRING and pattern is None:
        raise BindError(
            f'TIMESTAMP column "{column.name}" is a STRING and needs a TIMESTAMP_FORMAT',
            hint="Write TIMESTAMP_FORMAT='yyyy-MM-dd HH:mm:ss'.",
            position=position,
        )
    if column.type is not Scalar.STRING and pattern is not None:
        raise BindError(f"TIMESTAMP_FORMAT is for a STRING, not for {column.type}", position=position)
    if pattern is not None:
        check_timestamp_format(pattern, position)
    if column.type not in (Scalar.BIGINT, Scalar.TIMESTAMP, Scalar.STRING):
        raise TypeMismatch(
            f'TIMESTAMP column "{column.name}" must be BIGINT, TIMESTAMP or STRING, not {column.type}',
            detail="A BIGINT has milliseconds since 1970; a STRING needs a TIMESTAMP_FORMAT.",
            position=position,
        )


# ---- kinds


def _check_planner(statement: sql.CreateAs, query: BoundQuery, properties: Mapping[str, str]) -> None:
    """ksqlDB's other planner keeps the order in which key columns are selected; otherwise the two give the same."""
    selected = tuple(column.name for column in query.projection if column.name in query.keys)
    if properties.get(NEW_PLANNER, "false").lower() == "true" and selected != query.keys:
        raise NotYetSupported(
            Feature.PROPERTY,
            f"{NEW_PLANNER} with key columns in another order",
            f"key columns in another order than those of {query.source.name} are not supported yet",
            hint=f"Select {', '.join(query.keys)}, in this order.",
            position=statement.select.position,
        )


def _check_kind(statement: sql.CreateAs, query: BoundQuery) -> None:
    names = " and ".join(source.object.name for source in query.sources)
    wanted, reason = sql.ObjectKind.STREAM, f"{names} is a stream and the query does not aggregate."
    if query.aggregates:
        wanted, reason = sql.ObjectKind.TABLE, "An aggregation gives a table."
    elif not is_stream(query.input):
        wanted, reason = sql.ObjectKind.TABLE, f"{names} is a table."
    if statement.kind is not wanted:
        raise WrongObjectKind(
            f"the result of this query is a {wanted.lower()}, not a {statement.kind.lower()}",
            detail=reason,
            hint=f"Write CREATE {wanted} {statement.name.text} AS …",
            position=statement.position,
        )
