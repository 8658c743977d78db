"""From statements to bound statements: names, types and rules are checked here, against one catalog."""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from holdfast.catalog.objects import NO_PROPERTIES, QueryEntry
from holdfast.catalog.snapshot import Catalog, wrong_kind
from holdfast.errors import DependentObjects, Feature, NotSupported, NotYetSupported
from holdfast.runtime.functions.registry import function
from holdfast.sql import statements as sql
from holdfast.sql.bind_alter import bind_alter
from holdfast.sql.bind_assert import bind_assert_topic
from holdfast.sql.bind_create import bind_create_as, bind_create_source
from holdfast.sql.bind_function import bind_create_function, bind_drop_function, versioned
from holdfast.sql.bind_hold import bind_advance_hold, bind_create_hold, bind_drop_hold, bind_rename_hold
from holdfast.sql.bind_index import bind_alter_index, bind_create_index, bind_drop_index
from holdfast.sql.bind_insert import bind_insert
from holdfast.sql.bind_insert_select import bind_insert_select
from holdfast.sql.bind_materialized import bind_create_materialized
from holdfast.sql.bind_query import bind_select
from holdfast.sql.bind_subscribe import bind_subscribe
from holdfast.sql.bind_type import bind_create_type, bind_drop_type
from holdfast.sql.bind_view import bind_create_view, bind_drop_view, refuse_dependent_views
from holdfast.sql.bound import (
    BoundDrop,
    BoundExplain,
    BoundExplainTimestamp,
    BoundNothing,
    BoundPause,
    BoundResume,
    BoundSelect,
    BoundStatement,
    BoundTerminate,
    SelectKind,
)
from holdfast.sql.session import check_property, plain_name

__all__ = ["bind", "bind_select"]


def bind(statement: sql.Statement, catalog: Catalog, properties: Mapping[str, str] = NO_PROPERTIES) -> BoundStatement:
    """Bind a statement; `properties` are those of the session and the server."""
    for name, value in properties.items():
        check_property(name, value)
    try:
        return _bind(versioned(statement, catalog), catalog, properties)
    except RecursionError:
        raise NotSupported(
            "the statement is nested too deeply",
            hint="Write many alternatives as IN (…), and long sums with brackets in the middle.",
            position=statement.position,
        ) from None


def _bind(statement: sql.Statement, catalog: Catalog, properties: Mapping[str, str]) -> BoundStatement:
    match statement:
        case sql.CreateSource():
            return bind_create_source(statement, catalog, properties)
        case sql.CreateAs(kind=sql.ObjectKind.MATERIALIZED_VIEW):
            return bind_create_materialized(statement, catalog)
        case sql.CreateAs():
            return bind_create_as(statement, catalog, properties)
        case sql.InsertValues():
            return bind_insert(statement, catalog)
        case sql.InsertSelect():
            return bind_insert_select(statement, catalog, properties)
        case sql.Select():
            return bind_select(statement, catalog)
        case sql.Subscribe():
            return bind_subscribe(statement, catalog)
        case sql.Drop():
            return _bind_drop(statement, catalog)
        case sql.CreateType():
            return bind_create_type(statement, catalog)
        case sql.DropType():
            return bind_drop_type(statement, catalog)
        case sql.CreateFunction():
            return bind_create_function(statement, catalog)
        case sql.CreateView():
            return bind_create_view(statement, catalog)
        case sql.DropView():
            return bind_drop_view(statement, catalog)
        case sql.CreateIndex():
            return bind_create_index(statement, catalog)
        case sql.AlterIndex():
            return bind_alter_index(statement, catalog)
        case sql.DropIndex():
            return bind_drop_index(statement, catalog)
        case sql.DropFunction():
            return bind_drop_function(statement, catalog)
        case sql.Alter():
            return bind_alter(statement, catalog)
        case sql.Terminate():
            return _bind_terminate(statement, catalog)
        case sql.Pause():
            return BoundPause(queries=_queries(statement, catalog))
        case sql.Print():
            return statement
        case sql.AssertTopic():
            return bind_assert_topic(statement)
        case sql.AssertSchema():
            raise NotYetSupported(
                Feature.STATEMENT,
                "ASSERT SCHEMA",
                "ASSERT SCHEMA needs a schema registry, and there is none",
                hint="Formats with schemas of their own (AVRO, PROTOBUF, JSON_SR) are not in this release.",
                position=statement.position,
            )
        case sql.Resume():
            return BoundResume(queries=_queries(statement, catalog))
        case sql.CreateHold():
            return bind_create_hold(statement, catalog)
        case sql.AdvanceHold():
            return bind_advance_hold(statement, catalog)
        case sql.RenameHold():
            return bind_rename_hold(statement, catalog)
        case sql.DropHold():
            gone = f'hold "{statement.name.text}" does not exist'
            return bind_drop_hold(statement, catalog) or BoundNothing(gone)
        case sql.ExplainStatement():
            format_ = statement.format or sql.ExplainFormat.TEXT
            return BoundExplain(bind(statement.statement, catalog, properties), statement.text, format_)
        case sql.ExplainTimestamp():
            return bind_explain_timestamp(statement, catalog)
        case sql.ExplainQuery():
            catalog.query(statement.query.text, position=statement.query.position)
            return statement
        case sql.Describe(name=sql.Identifier(text=text)) if text in catalog.views:
            return statement
        case sql.Describe():
            if statement.name.text not in catalog.indexes:
                catalog.relation(statement.name.text, position=statement.name.position)
            return statement
        case sql.DescribeFunction():
            if statement.name.text.upper() not in catalog.functions:
                function(statement.name.text.upper(), position=statement.name.position)
            return statement
        case sql.SetProperty():
            check_property(statement.name, statement.value, position=statement.position)
            return replace(statement, name=plain_name(statement.name))
        case sql.UnsetProperty():
            check_property(statement.name, None, position=statement.position)
            return replace(statement, name=plain_name(statement.name))
        case sql.Show(on=sql.Identifier() as on):
            if on.text not in catalog.views:
                catalog.relation(on.text, position=on.position)
            return statement
        case sql.Show() | sql.Define() | sql.Undefine() | sql.Begin() | sql.End():
            return statement
        case sql.Refused():
            message = f"{statement.words} is not supported yet"
            raise NotYetSupported(Feature.STATEMENT, statement.words, message, position=statement.position)
        case _:
            assert_never(statement)


def bind_explain_timestamp(statement: sql.ExplainTimestamp, catalog: Catalog) -> BoundExplainTimestamp:
    bound = bind_select(statement.query, catalog)
    if isinstance(bound, BoundSelect) and bound.kind is not SelectKind.PULL:
        raise NotSupported(
            "EXPLAIN TIMESTAMP is for a query that is answered once",
            hint="Leave out EMIT.",
            position=statement.query.position,
        )
    return BoundExplainTimestamp(bound)


def _bind_drop(statement: sql.Drop, catalog: Catalog) -> BoundDrop | BoundNothing:
    name, position = statement.name.text, statement.name.position
    if statement.if_exists and catalog.find(name) is None:
        return BoundNothing(f'{statement.kind.lower()} "{name}" does not exist')
    found = catalog.object(name, kind=statement.kind.lower(), position=position)
    if statement.kind.lower() != found.KIND:
        raise wrong_kind(found, wanted=statement.kind.lower(), position=position)
    if statement.delete_topic and found.read_only:
        raise NotSupported(
            f'the topic of {found.KIND} "{name}" cannot be deleted',
            detail="It is a SOURCE, which is read-only.",
            hint="Leave out DELETE TOPIC.",
            position=position,
        )
    others = [f'{o.KIND} "{o.name}"' for o in catalog.objects.values() if o.topic == found.topic and o.name != name]
    if statement.delete_topic and others:
        raise DependentObjects(
            f'the topic of {found.KIND} "{name}" cannot be deleted because others have it',
            detail=f"It is also the topic of {', '.join(others)}.",
            hint="Drop them first, or leave out DELETE TOPIC.",
            position=position,
        )
    catalog.check_drop(name, cascade=statement.cascade, position=position)
    refuse_dependent_views(f'{found.KIND} "{name}"', name, catalog, statement)
    return BoundDrop(target=found, delete_topic=statement.delete_topic)


def _bind_terminate(statement: sql.Terminate, catalog: Catalog) -> BoundTerminate:
    """The query of an index ends with the index."""
    queries = _queries(statement, catalog)
    if statement.query is not None and (index := catalog.index_of(queries[0].id)) is not None:
        raise DependentObjects(
            f'query {queries[0].id} keeps index "{index.name}"',
            hint=f"Drop the index instead: DROP INDEX {index.name};",
            position=statement.query.position,
        )
    return BoundTerminate(queries=tuple(query for query in queries if catalog.index_of(query.id) is None))


def _queries(statement: sql.Terminate | sql.Pause | sql.Resume, catalog: Catalog) -> tuple[QueryEntry, ...]:
    if statement.query is None:
        return tuple(catalog.queries.values())
    return (catalog.query(statement.query.text, position=statement.query.position),)
