"""CREATE MATERIALIZED VIEW: a query's result that is only in the store, without a topic or formats."""

from collections.abc import Mapping

from holdfast.catalog.objects import NO_TOPIC_FORMATS
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import BindError, WrongObjectKind
from holdfast.names import ObjectName, show
from holdfast.sql.bind.target import Target
from holdfast.sql.properties.session import takes_any_format
from holdfast.sql.properties.with_clause import COMMON, read_properties
from holdfast.sql.query.continuous import BoundQuery, bind_query, result_window
from holdfast.sql.query.joins import is_stream
from holdfast.sql.syntax import statements as sql

OF_MATERIALIZED_VIEWS = (sql.RETAIN_HISTORY,)


def bind_materialized_view(
    statement: sql.CreateAs, catalog: Catalog, properties: Mapping[str, str]
) -> tuple[Target, BoundQuery]:
    """The target and the query; any query that CREATE TABLE … AS accepts is allowed."""
    for item in statement.properties:
        if item.name in COMMON and item.name not in OF_MATERIALIZED_VIEWS:
            raise _topic_property(item, statement)
    with_ = read_properties(statement.properties, OF_MATERIALIZED_VIEWS)
    query = bind_query(statement.select, catalog, any_format=takes_any_format(properties))
    _check_table(statement, query)
    target = Target(
        kind=statement.kind,
        name=ObjectName(statement.name.text),
        schema=query.schema,
        topic=None,
        formats=NO_TOPIC_FORMATS,
        window=result_window(query),
        or_replace=statement.or_replace,
        retain_ms=with_.retain_ms,
    )
    return target, query


def _topic_property(item: sql.Property, statement: sql.CreateAs) -> BindError:
    return BindError(
        f"a materialized view has no {item.name}",
        detail="Its rows are only in the store, not in a topic.",
        hint=f"Leave it out, or write CREATE TABLE {show(statement.name.text)} WITH (…) AS … to have a topic.",
        position=item.position,
    )


def _check_table(statement: sql.CreateAs, query: BoundQuery) -> None:
    """Refuse a stream: it has no current rows."""
    if query.aggregates or not is_stream(query.input):
        return
    names = " and ".join(source.object.name for source in query.sources if is_stream(source))
    raise WrongObjectKind(
        "the result of this query is a stream, which a materialized view cannot hold",
        detail=f"The query reads a stream ({names}) and does not aggregate it, so it has no current rows.",
        hint=f"Add GROUP BY, or write CREATE STREAM {show(statement.name.text)} AS …",
        position=statement.select.position,
    )
