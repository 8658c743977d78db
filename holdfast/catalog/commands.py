"""Commands of the command topic, and the catalog as a fold over them.

The fold reads encoded plans only: never the statement's text, never an object that the planner made. It takes every
record. What this release cannot read becomes an INCOMPATIBLE entry with the reason, and the fold goes on.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial, reduce
from typing import Self, assert_never

from holdfast.catalog.objects import (
    NO_PROPERTIES,
    Hold,
    Index,
    MaterializedView,
    QueryEntry,
    QueryState,
    Stream,
    Table,
    TopicSettings,
    View,
)
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.errors import HoldfastError, PlanError
from holdfast.names import HoldId, ObjectName, QueryId, StoreId
from holdfast.runtime.expressions.parse import parse_schema, parse_type
from holdfast.runtime.functions.user import PYTHON, UserFunction, declare
from holdfast.runtime.plan import jsontext
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
from holdfast.runtime.plan.presence import given
from holdfast.types import Schema

RELEASE = "0.1.0"

PARTITIONS = "holdfast.topic.partitions"
REPLICAS = "holdfast.topic.replicas"
RETENTION_MS = "holdfast.topic.retention.ms"
CLEANUP_POLICY = "holdfast.topic.cleanup.policy"
DELETE_TOPIC = "holdfast.topic.delete"
RETAIN_MS = "holdfast.retain.history.ms"
"""How long a table keeps its history; empty when it is to be the default again."""
HOLD_ID = "holdfast.hold.id"
HOLD_ON = "holdfast.hold.on"
HOLD_MAX_LAG = "holdfast.hold.max.lag.ms"
HOLD_NAME = "holdfast.hold.name"
EVERY_QUERY = "ALL"


class CommandType(StrEnum):
    """The first part of a command's key."""

    STREAM = "stream"
    TABLE = "table"
    TYPE = "type"
    FUNCTION = "function"
    HOLD = "hold"
    VIEW = "view"
    TRANSACTION = "transaction"
    MATERIALIZED_VIEW = "materialized_view"
    INDEX = "index"
    TERMINATE = "terminate"
    PAUSE = "pause"
    RESUME = "resume"


class CommandAction(StrEnum):
    """The last part of a command's key."""

    CREATE = "create"
    DROP = "drop"
    INSERT = "insert"
    ALTER = "alter"
    EXECUTE = "execute"


@dataclass(frozen=True, slots=True)
class CommandId:
    """The key of a command: `stream/PAGEVIEWS/create`. Types and actions of later releases are kept as text."""

    type: str
    entity: str
    action: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a key; one that is not of this form is an entity without type and action."""
        type_, _, rest = text.strip('"').partition("/")
        entity, separator, action = rest.rpartition("/")
        return cls(type_, entity, action) if separator else cls("", text, "")

    def __str__(self) -> str:
        return f"{self.type}/{self.entity}/{self.action}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One record of the command topic. `offset` is its place there; `problem` says why it could not be read.

    A transaction is one record too: its `parts` are applied in their order, all or none.
    """

    id: CommandId
    statement: str
    plan: bytes | None = None
    properties: Mapping[str, str] = field(default_factory=lambda: NO_PROPERTIES)
    release: str = RELEASE
    store_id: StoreId | None = None
    offset: int = field(default=0, compare=False)
    problem: str | None = None
    parts: "tuple[Command, ...]" = ()


Creation = CreateStream | CreateTable | CreateMaterializedView

Replan = Callable[[Catalog, Command], bytes]
"""Plans a command that was written without a plan; gives the encoded plan."""


def encode_command(command: Command) -> tuple[bytes, bytes]:
    """The key and the value of a command's record."""
    value: dict[str, jsontext.JsonValue] = {**_said(command), "release": command.release}
    if command.parts:
        value["commands"] = [{"id": str(part.id), **_said(part)} for part in command.parts]
    if command.store_id is not None:
        value["storeId"] = command.store_id
    return str(command.id).encode(), jsontext.write(value)


def _said(command: Command) -> dict[str, jsontext.JsonValue]:
    return {
        "statement": command.statement,
        "plan": None if command.plan is None else jsontext.read(command.plan),
        "properties": dict(command.properties),
    }


def decode_command(key: bytes, value: bytes, *, offset: int = 0) -> Command:
    """The command of a record. Properties that this release does not know are ignored; a record that is not a command
    is one with a `problem`."""
    id_ = CommandId.parse(key.decode(errors="replace"))
    try:
        document = jsontext.read(value)
    except PlanError as error:
        return Command(id=id_, statement="", offset=offset, problem=_reason(error))
    if not isinstance(document, dict):
        return Command(id=id_, statement="", offset=offset, problem="the record is not a command")
    whole = _read(id_, document, _text(document.get("release")) or "", offset)
    parts = document.get("commands", [])
    inner = [_part(part, whole) for part in parts] if isinstance(parts, list) else []
    bad = next((part.problem for part in inner if part.problem is not None), whole.problem)
    if id_.type == CommandType.TRANSACTION and not inner:
        bad = "the transaction has no commands"
    store = _text(document.get("storeId"))
    return replace(whole, store_id=StoreId(store) if store else None, parts=tuple(inner), problem=bad)


def _read(id_: CommandId, document: dict[str, jsontext.JsonValue], release: str, offset: int) -> Command:
    statement, plan = document.get("statement"), document.get("plan")
    if not isinstance(statement, str):
        return Command(id=id_, statement="", offset=offset, problem="the record is not a command")
    return Command(
        id=id_,
        statement=statement,
        plan=None if plan is None else jsontext.write(plan),
        properties=_texts(document.get("properties")),
        release=release,
        offset=offset,
    )


def _part(document: jsontext.JsonValue, whole: Command) -> Command:
    """A command of a transaction; it has the release and the place of the whole."""
    id_ = _text(document.get("id")) if isinstance(document, dict) else None
    if not isinstance(document, dict) or id_ is None:
        return replace(whole, problem="a command of the transaction cannot be read")
    return _read(CommandId.parse(id_), document, whole.release, whole.offset)


def hold_properties(hold: Hold) -> dict[str, str]:
    """The properties with which a command remembers a hold; the time is the store's."""
    on = jsontext.write(list(hold.on)).decode()
    return {HOLD_ID: hold.id, HOLD_ON: on, HOLD_MAX_LAG: str(hold.max_lag_ms)}


def topic_properties(settings: TopicSettings) -> dict[str, str]:
    """The properties with which a command remembers how its topic is to be created."""
    values = {
        PARTITIONS: settings.partitions,
        REPLICAS: settings.replicas,
        RETENTION_MS: settings.retention_ms,
        CLEANUP_POLICY: settings.cleanup_policy,
    }
    return {name: str(value) for name, value in values.items() if value is not None}


def fold(commands: Iterable[Command], catalog: Catalog = EMPTY, *, replan: Replan | None = None) -> Catalog:
    """The catalog after these commands."""
    return reduce(lambda before, command: apply(before, command, replan=replan), commands, catalog)


def apply(catalog: Catalog, command: Command, *, replan: Replan | None = None) -> Catalog:
    """The catalog after one more command; never raises for what the command holds."""
    try:
        return _applied(catalog, command, replan)
    except HoldfastError as error:
        return _quarantine(catalog, command, _reason(error))


def _applied(catalog: Catalog, command: Command, replan: Replan | None) -> Catalog:
    """The same; raises for what this release cannot read."""
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
    """The catalog after a command's plan; raises for what this release cannot read."""
    plan = decode(encoded)
    query = given(plan.query_plan)
    if query is not None and given(query.sink) is None and isinstance(plan.ddl_command, CreateTable):
        # ksqlDB keeps a SOURCE table current by a query without a sink; ours are kept from their topics.
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
        case CreateStream() | CreateTable():
            kind = Stream if isinstance(ddl, CreateStream) else partial(Table, retain_ms=_retained(command))
            return _without(catalog, ddl, query).with_object(
                kind(
                    name=ddl.source_name,
                    schema=parse_schema(ddl.schema),
                    topic=ddl.topic_name,
                    formats=ddl.formats,
                    window=given(ddl.window_info),
                    timestamp=given(ddl.timestamp_column),
                    read_only=bool(given(ddl.is_source)),
                    statement=command.statement,
                    query=query,
                    topic_settings=_topic_settings(command.properties),
                )
            )
        case CreateMaterializedView():
            return _without(catalog, ddl, query).with_object(
                MaterializedView(
                    name=ddl.source_name,
                    schema=parse_schema(ddl.schema),
                    window=given(ddl.window_info),
                    statement=command.statement,
                    query=query,
                    retain_ms=_retained(command),
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
            return catalog.with_view(View(name=ddl.view_name, sources=ddl.sources, definition=ddl.definition))
        case DropView():
            return catalog.without_indexes(*catalog.indexes_on(ddl.view_name)).without_view(ddl.view_name)
        case CreateIndex():
            return catalog.with_index(_index(ddl, command, query))
        case AlterIndex():
            return catalog.with_index(replace(catalog.index(ddl.index_name), retain_ms=_retained(command)))
        case DropIndex():
            gone = catalog.indexes.get(ddl.index_name)
            return catalog if gone is None else catalog.without_indexes(gone)
        case _:
            assert_never(ddl)


def _index(ddl: CreateIndex, command: Command, query: QueryId | None) -> Index:
    return Index(
        name=ddl.index_name,
        on=ddl.source_name,
        expressions=ddl.expressions,
        schema=parse_schema(ddl.schema),
        window=given(ddl.window_info),
        query=query or QueryId(ddl.index_name),
        retain_ms=_retained(command),
        statement=command.statement,
    )


def _function(ddl: CreateFunction) -> UserFunction:
    """The version that a command makes; one that was replaced or dropped is still known to the plans that have it."""
    if ddl.language != PYTHON:
        raise PlanError(f"function {ddl.function_name} is in {ddl.language}, which this release cannot run")
    return UserFunction(
        name=ddl.function_name,
        parameters=parse_schema(ddl.arguments).columns,
        returns=parse_type(ddl.returns),
        source=ddl.body,
        aggregate=ddl.kind is FunctionKind.AGGREGATE,
    )


def _apply_hold(catalog: Catalog, command: Command) -> Catalog:
    """A hold that is gone is not missed."""
    name, said = ObjectName(command.id.entity), command.properties
    known = catalog.holds.get(name)
    match command.id.action:
        case CommandAction.CREATE:
            try:
                on = jsontext.read(said.get(HOLD_ON, "").encode())
                names = tuple(ObjectName(each) for each in on if isinstance(each, str)) if isinstance(on, list) else ()
                made = Hold(
                    id=HoldId(said[HOLD_ID]),
                    name=name,
                    on=names,
                    max_lag_ms=int(said[HOLD_MAX_LAG]),
                    statement=command.statement,
                )
            except (PlanError, KeyError, ValueError) as error:
                raise PlanError("the command of the hold cannot be read") from error
            return catalog.with_hold(made)
        case CommandAction.DROP if known is not None:
            return catalog.without_holds(known)
        case CommandAction.ALTER if known is not None:
            renamed = replace(known, name=ObjectName(said.get(HOLD_NAME, name)))
            return catalog.without_holds(known).with_hold(renamed)
        case _:
            return catalog


def _without(catalog: Catalog, ddl: Creation, query: QueryId | None) -> Catalog:
    """Room for an object. One that is replaced keeps its place, before those that read it, as its query does."""
    found = catalog.find(ddl.source_name)
    if found is None or not given(ddl.or_replace):
        return catalog.without_object(ddl.source_name)
    return catalog if found.query in (None, query) else catalog.without_query(found.query)


def _alter(catalog: Catalog, ddl: AlterSource, command: Command) -> Catalog:
    altered = catalog.object(ddl.source_name)
    if isinstance(altered, Table) and RETAIN_MS in command.properties:
        altered = replace(altered, retain_ms=_retained(command))
    added = tuple(column for text in ddl.new_columns for column in parse_schema(text).columns)
    schema = Schema((*altered.schema.columns, *added))
    return catalog.with_object(replace(altered, schema=schema))


def _entry(command: Command, query: QueryPlan, encoded: bytes) -> QueryEntry:
    return QueryEntry(
        id=query.query_id,
        statement=command.statement,
        plan=encoded,
        sources=query.sources,
        sink=given(query.sink),
        properties=command.properties,
        release=command.release,
    )


STATES: Mapping[str, QueryState] = {CommandType.PAUSE: QueryState.PAUSED, CommandType.RESUME: QueryState.RUNNING}
"""What a command without a plan makes of a query."""


def _set_state(catalog: Catalog, entity: str, state: QueryState) -> Catalog:
    """A query in quarantine stays there, and one that is gone is not missed."""
    entry = catalog.queries.get(QueryId(entity))
    if entry is None or entry.state is QueryState.INCOMPATIBLE:
        return catalog
    return catalog.with_query(replace(entry, state=state))


def _terminate(catalog: Catalog, entity: str) -> Catalog:
    ids = tuple(catalog.queries) if entity == EVERY_QUERY else (QueryId(entity),)
    return reduce(Catalog.without_query, ids, catalog)


def _quarantine(catalog: Catalog, command: Command, reason: str) -> Catalog:
    """Keep a command that cannot be run. Its object is there when that part of the plan can be read, so that the name
    is taken and others can go on reading it."""
    document = _loose(command.plan)
    query = document.get("queryPlan")
    parts = query if isinstance(query, dict) else {}
    id_ = QueryId(_text(parts.get("queryId")) or f"COMMAND_{command.offset}")
    sources = parts.get("sources")
    try:
        alone = decode(jsontext.write({**document, "queryPlan": None}))
        if isinstance(alone.ddl_command, DdlCommand):
            catalog = _apply_ddl(catalog, command, alone.ddl_command, id_ if parts else None)
    except HoldfastError:
        pass
    return catalog.with_query(
        QueryEntry(
            id=id_,
            statement=command.statement,
            plan=command.plan or b"",
            sources=tuple(ObjectName(s) for s in sources if isinstance(s, str)) if isinstance(sources, list) else (),
            sink=ObjectName(sink) if (sink := _text(parts.get("sink"))) else None,
            properties=command.properties,
            release=command.release,
            state=QueryState.INCOMPATIBLE,
            reason=reason,
        )
    )


def _loose(plan: bytes | None) -> dict[str, jsontext.JsonValue]:
    try:
        document = jsontext.read(plan) if plan is not None else None
    except PlanError:
        return {}
    return document if isinstance(document, dict) else {}


def _reason(error: HoldfastError) -> str:
    return f"{error.message}. {error.detail}" if error.detail else error.message


def _retained(command: Command) -> int | None:
    text = command.properties.get(RETAIN_MS, "")
    return int(text) if text.isdecimal() else None


def _topic_settings(properties: Mapping[str, str]) -> TopicSettings:
    def number(name: str) -> int | None:
        text = properties.get(name, "")
        return int(text) if text.lstrip("-").isdecimal() else None

    policy = properties.get(CLEANUP_POLICY)
    return TopicSettings(number(PARTITIONS), number(REPLICAS), number(RETENTION_MS), policy)


def _text(value: jsontext.JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: jsontext.JsonValue) -> Mapping[str, str]:
    """A map of texts; other values are written as JSON does."""
    if not isinstance(value, dict):
        return NO_PROPERTIES
    return {name: item if isinstance(item, str) else jsontext.write(item).decode() for name, item in value.items()}
