"""CREATE MATERIALIZED VIEW: a query's result that is kept in the store, without a topic and its formats."""

from holdfast.catalog.objects import UNWRITTEN
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import BindError, WrongObjectKind
from holdfast.names import ObjectName, show
from holdfast.sql import statements as sql
from holdfast.sql.bind_create import schema_of, taken
from holdfast.sql.bind_joins import is_stream
from holdfast.sql.bind_query import bind_query
from holdfast.sql.bound import BoundCreateAs, BoundNothing, Target
from holdfast.sql.bound_query import BoundQuery
from holdfast.sql.properties import COMMON, read_properties
from holdfast.sql.replacing import replaced_query
from holdfast.sql.windows import result_window

OF_MATERIALIZED_VIEWS = (sql.RETAIN_HISTORY,)


def bind_create_materialized(statement: sql.CreateAs, catalog: Catalog) -> BoundCreateAs | BoundNothing:
    """A materialized view; what can be one is what CREATE TABLE … AS can keep."""
    nothing = taken(statement, catalog)
    if nothing is not None:
        return nothing
    for item in statement.properties:
        if item.name in COMMON and item.name not in OF_MATERIALIZED_VIEWS:
            raise _of_topics(item, statement)
    with_ = read_properties(statement.properties, OF_MATERIALIZED_VIEWS)
    query = bind_query(statement.select, catalog)
    _check_table(statement, query)
    target = Target(
        kind=statement.kind,
        name=ObjectName(statement.name.text),
        schema=schema_of(query),
        topic=None,
        formats=UNWRITTEN,
        window=result_window(query),
        or_replace=statement.or_replace,
        retain_ms=with_.retain_ms,
    )
    replaces = replaced_query(target, catalog, statement.name.position)
    return BoundCreateAs(target=target, query=query, replaces=replaces, position=statement.name.position)


def _of_topics(item: sql.Property, statement: sql.CreateAs) -> BindError:
    return BindError(
        f"a materialized view has no {item.name}",
        detail="Its rows are kept in the store, and written to no topic.",
        hint=f"Leave it out, or write CREATE TABLE {show(statement.name.text)} WITH (…) AS … to have a topic.",
        position=item.position,
    )


def _check_table(statement: sql.CreateAs, query: BoundQuery) -> None:
    """Refuse what has no current rows: a stream."""
    if query.aggregates or not is_stream(query.input):
        return
    names = " and ".join(source.object.name for source in query.sources if is_stream(source))
    raise WrongObjectKind(
        "the result of this query is a stream, which a materialized view cannot keep",
        detail=f"{names} is a stream and the query does not aggregate: it has no current rows.",
        hint=f"Add GROUP BY, or write CREATE STREAM {show(statement.name.text)} AS …",
        position=statement.select.position,
    )
