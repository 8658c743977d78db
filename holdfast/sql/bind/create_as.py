"""CREATE STREAM, TABLE and MATERIALIZED VIEW from a query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.catalog.objects import QueryEntry
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import (
    BindError,
    Feature,
    NotYetSupported,
    Position,
    WrongObjectKind,
)
from holdfast.runtime.plan.formats import FormatInfo
from holdfast.runtime.plan.optional import value_of
from holdfast.sql.bind.create_source import DEFAULT_KEY_FORMAT
from holdfast.sql.bind.ddl_kind import BoundPlan, DdlKind, Privilege, TransactionRule
from holdfast.sql.bind.materialized_view import bind_materialized_view
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.bind.replace import replaced_query
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
    unknown_timestamp,
)
from holdfast.sql.properties.formats import (
    KAFKA,
    NONE,
)
from holdfast.sql.properties.session import takes_any_format
from holdfast.sql.properties.with_clause import WithProperties, read_properties, topic_name
from holdfast.sql.query.continuous import BoundQuery, bind_query, result_window
from holdfast.sql.query.joins import is_stream
from holdfast.sql.query.projection import BoundColumn
from holdfast.sql.syntax import statements as sql
from holdfast.types import Schema

NEW_PLANNER = "ksql.new.query.planner.enabled"


TOPIC_PREFIX = "ksql.output.topic.name.prefix"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateAs(BoundPlan):
    """An object that a query maintains. `replaces` is the query whose state the new one continues from."""

    target: Target
    query: BoundQuery
    replaces: QueryEntry | None = None
    position: Position | None = field(default=None, compare=False)


def bind_create_as(
    statement: sql.CreateAs, catalog: Catalog, properties: Mapping[str, str]
) -> BoundCreateAs | BoundNothing:
    nothing = check_existing(statement, catalog)
    if nothing is not None:
        return nothing
    if statement.kind is sql.ObjectKind.MATERIALIZED_VIEW:
        target, query = bind_materialized_view(statement, catalog, properties)
    else:
        target, query = _bind_with_topic(statement, catalog, properties)
    replaces = replaced_query(target, catalog, statement.name.position)
    return BoundCreateAs(target=target, query=query, replaces=replaces, position=statement.name.position)


def _bind_with_topic(
    statement: sql.CreateAs, catalog: Catalog, properties: Mapping[str, str]
) -> tuple[Target, BoundQuery]:
    """A stream or a table, which has a topic; formats default to those of the query's source."""
    with_ = read_properties(statement.properties)
    check_format_names(with_)
    query = bind_query(
        statement.select,
        catalog,
        lambda columns: _check_timestamp(with_, columns, statement),
        any_format=takes_any_format(properties),
    )
    _check_kind(statement, query)
    _check_planner(statement, query, properties)
    schema = query.schema
    topic = with_.topic or topic_name(
        properties.get(TOPIC_PREFIX, "") + statement.name.text,
        statement.name.position,
        hint="Give it a topic with another name: WITH (KAFKA_TOPIC='…').",
    )
    for source in query.sources:
        if topic == source.object.topic:
            raise BindError(
                f"the query cannot write to the topic that it reads: '{topic}'",
                hint="Give it another topic: WITH (KAFKA_TOPIC='…').",
                position=with_.position("KAFKA_TOPIC") or statement.name.position,
            )
    key_info, value_info = _inherited_formats(statement, with_, query, schema, properties)
    target = topic_target(statement, with_, schema, topic, key_info, value_info, properties)
    return replace(target, window=result_window(query)), query


def _inherited_formats(
    statement: sql.CreateAs, with_: WithProperties, query: BoundQuery, schema: Schema, properties: Mapping[str, str]
) -> tuple[FormatInfo, FormatInfo]:
    """The formats of the WITH clause, else of the query's source. If the source has no key but the result has one, the
    default key format."""
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
    options = value_of(source.value_format.properties)
    inherited = value_of(options.delimiter) if options is not None and value == source.value_format.format else None
    return formats_of(statement, with_, key, value, inherited)


def _check_timestamp(with_: WithProperties, columns: Sequence[BoundColumn], statement: sql.CreateAs) -> None:
    known = [column.name for column in columns]
    if with_.timestamp is not None and with_.timestamp not in known:
        raise unknown_timestamp(with_, known, statement.name.text)


def _check_planner(statement: sql.CreateAs, query: BoundQuery, properties: Mapping[str, str]) -> None:
    """ksqlDB's new planner keeps the order in which key columns are selected; otherwise both planners agree."""
    selected = tuple(column.name for column in query.projection if column.name in query.keys)
    if properties.get(NEW_PLANNER, "false").lower() == "true" and selected != query.keys:
        raise NotYetSupported(
            Feature.PROPERTY,
            f"{NEW_PLANNER} with key columns in another order",
            f"selecting key columns in another order than {query.source.name} has them is not supported yet",
            hint=f"Select {', '.join(query.keys)}, in this order.",
            position=statement.select.position,
        )


def _check_kind(statement: sql.CreateAs, query: BoundQuery) -> None:
    wanted, reason = sql.ObjectKind.STREAM, "The query reads a stream and does not aggregate it."
    if query.aggregates:
        wanted, reason = sql.ObjectKind.TABLE, "The result of an aggregation is a table."
    elif not is_stream(query.input):
        names = " and ".join(source.object.name for source in query.sources)
        wanted, reason = sql.ObjectKind.TABLE, f"The query reads only tables: {names}."
    if statement.kind is not wanted:
        raise WrongObjectKind(
            f"the result of this query is a {wanted.lower()}, not a {statement.kind.lower()}",
            detail=reason,
            hint=f"Write CREATE {wanted} {statement.name.text} AS …",
            position=statement.position,
        )


DDL = (
    DdlKind(
        statement=sql.CreateAs,
        bound=BoundCreateAs,
        bind=bind_create_as,
        id=lambda bound: create_id(bound.target),
        message=lambda bound: create_message(bound.target, replaces=bound.replaces is not None),
        privileges=(Privilege.CREATE, Privilege.SELECT, Privilege.USAGE),
        transaction=TransactionRule.CREATES,
        command=lambda bound, _: create_command(bound.target),
        properties=lambda bound: create_properties(bound.target),
    ),
)
