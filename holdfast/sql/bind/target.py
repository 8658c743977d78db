"""The object that a CREATE statement creates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.catalog.commands import CommandAction, CommandId, CommandType, retain_property, topic_properties
from holdfast.catalog.objects import NO_PROPERTIES, TopicSettings
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import (
    BindError,
    NotSupported,
    Position,
    TypeMismatch,
    UnknownColumn,
)
from holdfast.names import ObjectName, TopicName
from holdfast.runtime.plan import ddl
from holdfast.runtime.plan.formats import FormatInfo, Formats, TimestampColumn
from holdfast.runtime.plan.sources import SchemaText
from holdfast.runtime.plan.windows import WindowInfo, WindowStoreSettings
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.literals.timestamp_format import check_timestamp_format
from holdfast.sql.properties.formats import (
    build_formats,
    check_key,
    check_value,
    format_info,
    wrap_features,
)
from holdfast.sql.properties.with_clause import WithProperties, no_history
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.statements import ObjectKind
from holdfast.types import Column, Scalar, Schema

WRAP_SINGLES = "ksql.persistence.wrap.single.values"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The created object, with its topic and formats; a materialized view has no topic."""

    kind: ObjectKind
    name: ObjectName
    schema: Schema
    topic: TopicName | None
    formats: Formats
    window: WindowInfo | None = None
    window_store: WindowStoreSettings | None = None
    timestamp: TimestampColumn | None = None
    topic_settings: TopicSettings = field(default_factory=TopicSettings)
    or_replace: bool = False
    read_only: bool = False
    retain_ms: int | None = None


def check_existing(statement: sql.CreateSource | sql.CreateAs, catalog: Catalog) -> BoundNothing | None:
    """Check for an existing object of this name: `BoundNothing` or an error if it stays, None to go ahead."""
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


def formats_of(
    statement: sql.CreateSource | sql.CreateAs,
    with_: WithProperties,
    key: str,
    value: str,
    inherited: str | None = None,
) -> tuple[FormatInfo, FormatInfo]:
    key_position = with_.position("KEY_FORMAT", "FORMAT") or statement.name.position
    value_position = with_.position("VALUE_FORMAT", "FORMAT") or statement.name.position
    return (
        format_info(key, side="key", delimiter=with_.key_delimiter, position=key_position),
        format_info(value, side="value", delimiter=with_.value_delimiter or inherited, position=value_position),
    )


def check_format_names(with_: WithProperties) -> None:
    """Report an unknown format before any other error."""
    for side, name in (("key", with_.key_format), ("value", with_.value_format)):
        if name is not None:
            format_info(name, side=side, position=with_.position(f"{side.upper()}_FORMAT", "FORMAT"))


def topic_target(
    statement: sql.CreateSource | sql.CreateAs,
    with_: WithProperties,
    schema: Schema,
    topic: TopicName,
    key: FormatInfo,
    value: FormatInfo,
    properties: Mapping[str, str],
) -> Target:
    name_at = statement.name.position
    check_key(key.format, schema.key, position=with_.position("KEY_FORMAT", "FORMAT") or name_at)
    check_value(value.format, schema.value, position=with_.position("VALUE_FORMAT", "FORMAT") or name_at)
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
        retain_ms=_retain_ms(statement, with_),
    )


def _retain_ms(statement: sql.CreateSource | sql.CreateAs, with_: WithProperties) -> int | None:
    if with_.retain_ms is not None and statement.kind is sql.ObjectKind.STREAM:
        raise no_history(statement.name.text, with_.position(sql.RETAIN_HISTORY))
    return with_.retain_ms


def _timestamp(with_: WithProperties, schema: Schema, relation: str) -> TimestampColumn | None:
    position = with_.position("TIMESTAMP", "TIMESTAMP_FORMAT")
    if with_.timestamp is None:
        if with_.timestamp_format is not None:
            raise BindError(
                "TIMESTAMP_FORMAT needs TIMESTAMP", hint="Name the column: TIMESTAMP='…'.", position=position
            )
        return None
    column = schema.find(with_.timestamp)
    if column is None:
        raise unknown_timestamp(with_, [c.name for c in schema.columns], relation)
    _check_timestamp_type(column, with_.timestamp_format, position)
    return TimestampColumn(column=column.name, format=with_.timestamp_format)


def unknown_timestamp(with_: WithProperties, known: Sequence[str], relation: str) -> UnknownColumn:
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
        raise BindError(f"TIMESTAMP_FORMAT needs a STRING column, not {column.type}", position=position)
    if pattern is not None:
        check_timestamp_format(pattern, position)
    if column.type not in (Scalar.BIGINT, Scalar.TIMESTAMP, Scalar.STRING):
        raise TypeMismatch(
            f'TIMESTAMP column "{column.name}" must be BIGINT, TIMESTAMP or STRING, not {column.type}',
            detail="A BIGINT is in milliseconds since 1970; a STRING needs a TIMESTAMP_FORMAT.",
            position=position,
        )


def create_command(target: Target) -> ddl.DdlCommand:
    """The DDL command of a plan that creates the object."""
    if target.topic is None:
        return ddl.CreateMaterializedView(
            source_name=target.name,
            schema=SchemaText(str(target.schema)),
            window_info=target.window,
            or_replace=target.or_replace,
        )
    if target.window is not None and target.window_store is not None:
        return ddl.CreateWindowedTable(
            source_name=target.name,
            schema=SchemaText(str(target.schema)),
            timestamp_column=target.timestamp,
            topic_name=target.topic,
            formats=target.formats,
            window_info=target.window,
            window_topic=target.window_store.topic,
            retention=target.window_store.retention,
            or_replace=target.or_replace,
            is_source=target.read_only,
        )
    create = ddl.CreateStream if target.kind is sql.ObjectKind.STREAM else ddl.CreateTable
    return create(
        source_name=target.name,
        schema=SchemaText(str(target.schema)),
        timestamp_column=target.timestamp,
        topic_name=target.topic,
        formats=target.formats,
        window_info=target.window,
        or_replace=target.or_replace,
        is_source=target.read_only,
    )


def create_id(target: Target) -> CommandId:
    return CommandId(CommandType.of(target.kind.lower()), target.name, CommandAction.CREATE)


def create_properties(target: Target) -> Mapping[str, str]:
    retained = NO_PROPERTIES if target.retain_ms is None else retain_property(target.retain_ms)
    return {**topic_properties(target.topic_settings), **retained}


def create_message(target: Target, *, replaces: bool) -> str:
    return f"{target.kind.capitalize()} {target.name} {'replaced' if replaces else 'created'}."
