"""Binding: check a statement's names, types and rules against the catalog."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from holdfast.catalog.objects import NO_PROPERTIES
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import Feature, NotSupported, NotYetSupported
from holdfast.runtime.functions.registry import function
from holdfast.sql.bind.assert_topic import BoundAssertTopic, bind_assert_topic
from holdfast.sql.bind.ddl import ddl_kind
from holdfast.sql.bind.ddl_kind import BoundDdl
from holdfast.sql.bind.explain_timestamp import BoundExplainTimestamp, bind_explain_timestamp
from holdfast.sql.bind.function import versioned
from holdfast.sql.bind.hold import BoundAdvanceHold, bind_advance_hold
from holdfast.sql.bind.insert import BoundInsert, bind_insert
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.properties.session import check_property, plain_name
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect, bind_select
from holdfast.sql.read.subscribe import BoundSubscribe, bind_subscribe
from holdfast.sql.syntax import statements as sql


@dataclass(frozen=True, slots=True)
class BoundExplain:
    """EXPLAIN of a statement, which is not run; `text` is the statement's text."""

    statement: "BoundStatement"
    text: str
    format: sql.ExplainFormat


BoundStatement = (
    BoundDdl
    | BoundNothing
    | BoundAdvanceHold
    | BoundInsert
    | BoundAssertTopic
    | BoundSelect
    | BoundRead
    | BoundSubscribe
    | BoundExplain
    | BoundExplainTimestamp
    | sql.ExplainQuery
    | sql.Print
    | sql.Show
    | sql.Describe
    | sql.DescribeFunction
    | sql.Begin
    | sql.End
    | sql.SetProperty
    | sql.UnsetProperty
    | sql.Define
    | sql.Undefine
)


def bind(statement: sql.Statement, catalog: Catalog, properties: Mapping[str, str] = NO_PROPERTIES) -> BoundStatement:
    """Bind a statement; `properties` are those of the session and the server."""
    for name, value in properties.items():
        check_property(name, value)
    try:
        return _bind(versioned(statement, catalog), catalog, properties)
    except RecursionError:
        raise NotSupported(
            "the statement is nested too deeply",
            hint="Write long chains of OR as IN (…), and group the terms of long sums with parentheses.",
            position=statement.position,
        ) from None


def _bind(statement: sql.Statement, catalog: Catalog, properties: Mapping[str, str]) -> BoundStatement:
    if isinstance(statement, sql.DdlStatement):
        bound: BoundDdl | BoundNothing = ddl_kind(statement).bind(statement, catalog, properties)
        return bound
    match statement:
        case sql.InsertValues():
            return bind_insert(statement, catalog)
        case sql.Select():
            return bind_select(statement, catalog)
        case sql.Subscribe():
            return bind_subscribe(statement, catalog)
        case sql.AdvanceHold():
            return bind_advance_hold(statement, catalog)
        case sql.AssertTopic():
            return bind_assert_topic(statement)
        case sql.ExplainStatement():
            format_ = statement.format or sql.ExplainFormat.TEXT
            return BoundExplain(bind(statement.statement, catalog, properties), statement.text, format_)
        case sql.ExplainTimestamp():
            return bind_explain_timestamp(statement, catalog)
        case sql.ExplainQuery():
            catalog.query(statement.query.text, position=statement.query.position)
            return statement
        case sql.Describe():
            if statement.name.text not in catalog.views and statement.name.text not in catalog.indexes:
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
        case sql.Show():
            if statement.on is not None and statement.on.text not in catalog.views:
                catalog.relation(statement.on.text, position=statement.on.position)
            return statement
        case sql.Print() | sql.Define() | sql.Undefine() | sql.Begin() | sql.End():
            return statement
        case sql.AssertSchema() | sql.Refused():
            raise _refused(statement)
        case _:
            assert_never(statement)


def _refused(statement: sql.AssertSchema | sql.Refused) -> NotYetSupported:
    if isinstance(statement, sql.Refused):
        message = f"{statement.words} is not supported yet"
        return NotYetSupported(Feature.STATEMENT, statement.words, message, position=statement.position)
    return NotYetSupported(
        Feature.STATEMENT,
        "ASSERT SCHEMA",
        "ASSERT SCHEMA needs a schema registry, which is not supported yet",
        detail="The formats that use one (AVRO, PROTOBUF, JSON_SR) are not supported either.",
        position=statement.position,
    )
