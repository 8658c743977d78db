"""CREATE STREAM and CREATE TABLE over a topic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.catalog.snapshot import Catalog
from holdfast.errors import (
    BindError,
    Feature,
    NotSupported,
    NotYetSupported,
    TypeMismatch,
)
from holdfast.sql.bind.ddl_kind import BoundPlan, DdlKind, Privilege
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.bind.replace import check_replaces_source
from holdfast.sql.bind.target import (
    Target,
    check_existing,
    check_format_names,
    create_command,
    create_id,
    create_message,
    create_properties,
    formats_of,
    topic_target,
)
from holdfast.sql.bind.windowed_table import stream_notice, window_store_of
from holdfast.sql.properties.formats import (
    KAFKA,
)
from holdfast.sql.properties.with_clause import OF_SOURCES, read_properties
from holdfast.sql.query.relation import RESERVED_COLUMNS, reserved
from holdfast.sql.syntax import statements as sql
from holdfast.types import Array, Column, Role, Scalar, Schema, Struct, StructField

DEFAULT_KEY_FORMAT = "ksql.persistence.default.format.key"
DEFAULT_VALUE_FORMAT = "ksql.persistence.default.format.value"
HEADERS = Array(Struct((StructField("KEY", Scalar.STRING), StructField("VALUE", Scalar.BYTES))))
"""All headers of a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateSource(BoundPlan):
    """A stream or a table over a topic that no query of this server maintains."""

    target: Target
    replaces: bool = False


def bind_create_source(
    statement: sql.CreateSource, catalog: Catalog, properties: Mapping[str, str]
) -> BoundCreateSource | BoundNothing:
    if statement.or_replace and statement.read_only:
        raise NotSupported(
            f'SOURCE {statement.kind.lower()} "{statement.name.text}" cannot be replaced',
            hint="Leave out OR REPLACE.",
            position=statement.position,
        )
    nothing = check_existing(statement, catalog)
    if nothing is not None:
        return nothing
    with_ = read_properties(statement.properties, OF_SOURCES)
    check_format_names(with_)
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
            detail="The window is part of a record's key.",
            hint="Declare the columns of the key as KEY columns, or as the PRIMARY KEY of a table.",
            position=with_.position("WINDOW_TYPE"),
        )
    key_info, value_info = formats_of(statement, with_, key_format, value_format)
    target = topic_target(statement, with_, schema, with_.topic, key_info, value_info, properties)
    store = window_store_of(statement, with_)
    target = replace(target, window=with_.window, window_store=store, read_only=statement.read_only)
    check_replaces_source(target, catalog, statement.name.position)
    return BoundCreateSource(target=target, replaces=target.name in catalog.objects)


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
            detail="Columns cannot be read from a schema registry.",
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
        raise BindError(
            "a HEADERS column holds all headers and must be the only header column", position=headers[1].position
        )
    for i, column in enumerate(headers):
        same = next((other.name for other in headers[:i] if other.header == column.header), None)
        if same is not None:
            raise BindError(
                f"HEADER('{column.header}') is declared twice, as {same} and as {column.name}",
                hint="Leave one out.",
                position=column.position,
            )


def _notices(bound: BoundCreateSource) -> Sequence[str]:
    return stream_notice(bound.target.name, bound.target.window if bound.target.window_store is None else None)


# ---- kinds


DDL = (
    DdlKind(
        statement=sql.CreateSource,
        bound=BoundCreateSource,
        bind=bind_create_source,
        id=lambda bound: create_id(bound.target),
        message=lambda bound: create_message(bound.target, replaces=bound.replaces),
        privileges=(Privilege.CREATE,),
        command=lambda bound, _: create_command(bound.target),
        properties=lambda bound: create_properties(bound.target),
        notices=_notices,
    ),
)
