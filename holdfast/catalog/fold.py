"""The catalog as a fold over the command topic.

The fold reads only encoded plans, never the statement's text or an object from the planner. It accepts every record: a
command that this release cannot read becomes an INCOMPATIBLE query with the reason, and the fold continues.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial, reduce
from typing import assert_never

from holdfast.catalog.commands import (
    HOLD_NAME,
    RETAIN_MS,
    Command,
    CommandAction,
    CommandType,
    read_hold,
    reason_of,
    retained_ms,
    text_of,
    topic_settings,
)
from holdfast.catalog.objects import (
    CatalogObject,
    Index,
    MaterializedView,
    QueryEntry,
    QueryState,
    Stream,
    Table,
    View,
)
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.errors import HoldfastError, PlanError
from holdfast.names import ObjectId, ObjectName, QueryId
from holdfast.runtime.expressions.parse import parse_schema, parse_type
from holdfast.runtime.functions.user import PYTHON, UserFunction, declare
from holdfast.runtime.plan import json_text
from holdfast.runtime.plan.codec import decode
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
    FunctionKind,
    RegisterType,
)
from holdfast.runtime.plan.document import QueryPlan
from holdfast.runtime.plan.optional import value_of
from holdfast.types import Schema

EVERY_QUERY = "ALL"
STATES: Mapping[str, QueryState] = {CommandType.PAUSE: QueryState.PAUSED, CommandType.RESUME: QueryState.RUNNING}
"""The query state that a command without a plan sets."""
TopicCreation = CreateStream | CreateTable | CreateWindowedTable
Creation = TopicCreation | CreateMaterializedView
Replan = Callable[[Catalog, Command], bytes]
"""Plans a command that was written without a plan, and returns the encoded plan."""


def fold(commands: Iterable[Command], catalog: Catalog = EMPTY, *, replan: Replan | None = None) -> Catalog:
    """The catalog after these commands."""
    return reduce(lambda before, command: apply(before, command, replan=replan), commands, catalog)


def apply(catalog: Catalog, command: Command, *, replan: Replan | None = None) -> Catalog:
    """The catalog after one more command. Never raises: an unreadable command is quarantined."""
    try:
        return _applied(catalog, command, replan)
    except HoldfastError as error:
        return _quarantine(catalog, command, reason_of(error))


def _applied(catalog: Catalog, command: Command, replan: Replan | None) -> Catalog:
    """Like `apply`, but raises for a command that this release cannot read."""
    if command.problem is not None:
        raise PlanError(command.problem)
    if command.id.type == CommandType.TRANSACTION:
        return reduce(lambda before, part: _applied(before, part, replan), command.parts, catalog)
    if command.id.type == CommandType.TERMINATE:
        return _terminate(catalog, command.id.entity)
    if command.id.type in STATES:
        return _set_state(catalog, command.id.entity, STATES[command.id.type])
    if command.id.type == CommandType.HOLD:
        return _apply_hold(catalog, command)
    if command.plan is not None:
        return apply_plan(catalog, command, command.plan)
    if replan is None:
        raise PlanError("the command has no plan")
    return apply_plan(catalog, command, replan(catalog, command))


def apply_plan(catalog: Catalog, command: Command, encoded: bytes) -> Catalog:
    """The catalog after a command's plan; raises for a plan that this release cannot read."""
    plan = decode(encoded)
    query = value_of(plan.query_plan)
    creates_table = isinstance(plan.ddl_command, CreateTable | CreateWindowedTable)
    if query is not None and value_of(query.sink) is None and creates_table:
        # ksqlDB maintains a SOURCE table by a query without a sink; ours read their topics directly.
        query = None
    if isinstance(plan.ddl_command, DdlCommand):
        catalog = _apply_ddl(catalog, command, plan.ddl_command, query.query_id if query else None)
    if query is None:
        return catalog
    entry, replaced = _entry(command, query, encoded), catalog.queries.get(query.query_id)
    if replaced is not None and replaced.state is QueryState.PAUSED:
        entry = replace(entry, state=QueryState.PAUSED)
    return catalog.with_query(entry)


def _apply_ddl(catalog: Catalog, command: Command, ddl: DdlCommand, query: QueryId | None) -> Catalog:
    match ddl:
        case CreateStream() | CreateTable() | CreateWindowedTable():
            constructor = _constructor(ddl, command)
            return _without_recreated(catalog, ddl, query).with_object(
                constructor(
                    name=ddl.source_name,
                    schema=parse_schema(ddl.schema),
                    topic=ddl.topic_name,
                    formats=ddl.formats,
                    window=value_of(ddl.window_info),
                    timestamp=value_of(ddl.timestamp_column),
                    read_only=bool(value_of(ddl.is_source)),
                    statement=command.statement,
                    query=query,
                    topic_settings=topic_settings(command.properties),
                    id=_id(catalog, ddl, command),
                )
            )
        case CreateMaterializedView():
            return _without_recreated(catalog, ddl, query).with_object(
                MaterializedView(
                    name=ddl.source_name,
                    schema=parse_schema(ddl.schema),
                    window=value_of(ddl.window_info),
                    statement=command.statement,
                    query=query,
                    retain_ms=retained_ms(command),
                    id=_id(catalog, ddl, command),
                )
            )
        case DropSource():
            catalog = catalog.without_indexes(*catalog.indexes_on(ddl.source_name))
            return catalog.without_holds(*catalog.holds_on(ddl.source_name)).without_object(ddl.source_name)
        case AlterSource():
            return _alter(catalog, ddl, command)
        case RegisterType():
            return catalog.with_type(ddl.type_name, parse_type(ddl.type))
        case DropType():
            return catalog.without_type(ddl.type_name)
        case CreateFunction():
            function = _function(ddl)
            declare(function)
            return catalog.with_function(function)
        case DropFunction():
            return catalog.without_function(ddl.function_name)
        case CreateView():
            view = View(name=ddl.view_name, sources=ddl.sources, definition=ddl.definition, id=ObjectId(command.offset))
            return catalog.with_view(view)
        case DropView():
            return catalog.without_indexes(*catalog.indexes_on(ddl.view_name)).without_view(ddl.view_name)
        case CreateIndex():
            return catalog.with_index(_index(ddl, command, query))
        case AlterIndex():
            return catalog.with_index(replace(catalog.index(ddl.index_name), retain_ms=retained_ms(command)))
        case DropIndex():
            dropped = catalog.indexes.get(ddl.index_name)
            return catalog if dropped is None else catalog.without_indexes(dropped)
        case _:
            assert_never(ddl)


def _constructor(ddl: TopicCreation, command: Command) -> Callable[..., CatalogObject]:
    """The constructor for a command's object."""
    if isinstance(ddl, CreateStream):
        return Stream
    store = ddl.window_store if isinstance(ddl, CreateWindowedTable) else None
    return partial(Table, retain_ms=retained_ms(command), window_store=store)


def _index(ddl: CreateIndex, command: Command, query: QueryId | None) -> Index:
    return Index(
        name=ddl.index_name,
        on=ddl.source_name,
        expressions=ddl.expressions,
        schema=parse_schema(ddl.schema),
        window=value_of(ddl.window_info),
        query=query or QueryId(ddl.index_name),
        retain_ms=retained_ms(command),
        statement=command.statement,
    )


def _function(ddl: CreateFunction) -> UserFunction:
    """The version that a command creates; plans that use it still find it after it is replaced or dropped."""
    if ddl.language != PYTHON:
        raise PlanError(f"function {ddl.function_name} is written in {ddl.language}, which this release cannot run")
    return UserFunction(
        name=ddl.function_name,
        parameters=parse_schema(ddl.arguments).columns,
        returns=parse_type(ddl.returns),
        source=ddl.body,
        aggregate=ddl.kind is FunctionKind.AGGREGATE,
    )


def _apply_hold(catalog: Catalog, command: Command) -> Catalog:
    """ALTER and DROP of a missing hold change nothing."""
    name = ObjectName(command.id.entity)
    known = catalog.holds.get(name)
    match command.id.action:
        case CommandAction.CREATE:
            return catalog.with_hold(read_hold(command))
        case CommandAction.DROP if known is not None:
            return catalog.without_holds(known)
        case CommandAction.ALTER if known is not None:
            renamed = replace(known, name=ObjectName(command.properties.get(HOLD_NAME, name)))
            return catalog.without_holds(known).with_hold(renamed)
        case _:
            return catalog


def _without_recreated(catalog: Catalog, ddl: Creation, query: QueryId | None) -> Catalog:
    """The catalog without the object that is created again. An object replaced by OR REPLACE and its query stay, to
    keep their order before their dependents."""
    found = catalog.find(ddl.source_name)
    if found is None or not value_of(ddl.or_replace):
        return catalog.without_object(ddl.source_name)
    return catalog if found.query in (None, query) else catalog.without_query(found.query)


def _id(catalog: Catalog, ddl: Creation, command: Command) -> ObjectId:
    """The id of an object that a command creates; one that it replaces keeps its own."""
    found = catalog.find(ddl.source_name)
    return found.id if found is not None and value_of(ddl.or_replace) else ObjectId(command.offset)


def _alter(catalog: Catalog, ddl: AlterSource, command: Command) -> Catalog:
    altered = catalog.object(ddl.source_name)
    if isinstance(altered, Table) and RETAIN_MS in command.properties:
        altered = replace(altered, retain_ms=retained_ms(command))
    added = tuple(column for text in ddl.new_columns for column in parse_schema(text).columns)
    schema = Schema((*altered.schema.columns, *added))
    return catalog.with_object(replace(altered, schema=schema))


def _entry(command: Command, query: QueryPlan, encoded: bytes) -> QueryEntry:
    return QueryEntry(
        id=query.query_id,
        statement=command.statement,
        plan=encoded,
        sources=query.sources,
        sink=value_of(query.sink),
        properties=command.properties,
        release=command.release,
    )


def _set_state(catalog: Catalog, entity: str, state: QueryState) -> Catalog:
    """A quarantined query is left unchanged; a missing one is ignored."""
    entry = catalog.queries.get(QueryId(entity))
    if entry is None or entry.state is QueryState.INCOMPATIBLE:
        return catalog
    return catalog.with_query(replace(entry, state=state))


def _terminate(catalog: Catalog, entity: str) -> Catalog:
    ids = tuple(catalog.queries) if entity == EVERY_QUERY else (QueryId(entity),)
    return reduce(Catalog.without_query, ids, catalog)


def _quarantine(catalog: Catalog, command: Command, reason: str) -> Catalog:
    """Record a command that cannot run. Its object is added if that part of the plan can be read, so that its name is
    taken and its dependents still bind."""
    document = _document(command.plan)
    query = document.get("queryPlan")
    parts = query if isinstance(query, dict) else {}
    id_ = QueryId(text_of(parts.get("queryId")) or f"COMMAND_{command.offset}")
    sources = parts.get("sources")
    try:
        ddl_only = decode(json_text.write({**document, "queryPlan": None}))
        if isinstance(ddl_only.ddl_command, DdlCommand):
            catalog = _apply_ddl(catalog, command, ddl_only.ddl_command, id_ if parts else None)
    except HoldfastError:
        pass
    return catalog.with_query(
        QueryEntry(
            id=id_,
            statement=command.statement,
            plan=command.plan or b"",
            sources=tuple(ObjectName(s) for s in sources if isinstance(s, str)) if isinstance(sources, list) else (),
            sink=ObjectName(sink) if (sink := text_of(parts.get("sink"))) else None,
            properties=command.properties,
            release=command.release,
            state=QueryState.INCOMPATIBLE,
            reason=reason,
        )
    )


def _document(plan: bytes | None) -> dict[str, json_text.JsonValue]:
    """The JSON of a plan, unchecked; empty if it cannot be parsed."""
    try:
        document = json_text.read(plan) if plan is not None else None
    except PlanError:
        return {}
    return document if isinstance(document, dict) else {}
