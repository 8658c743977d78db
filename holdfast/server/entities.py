"""The answers of /ksql: one entity per statement, each with ksqlDB's `@type` and properties."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.catalog.objects import CatalogObject, QueryEntry, View
from holdfast.catalog.snapshot import Catalog
from holdfast.names import QueryId, TopicName, quote
from holdfast.runtime.functions.declaration import (
    AggregateFunction,
    Function,
    ScalarFunction,
    Signature,
    TableFunction,
    named,
)
from holdfast.runtime.functions.registry import functions
from holdfast.runtime.functions.user import UserFunction
from holdfast.server.problems import Json
from holdfast.server.pushes import OpenPush
from holdfast.server.service import Done, HoldInfo, QueryInfo, Topic
from holdfast.sql.bound import (
    BoundAlter,
    BoundAssertTopic,
    BoundCreateAs,
    BoundCreateFunction,
    BoundCreateSource,
    BoundCreateType,
    BoundCreateView,
    BoundDrop,
    BoundDropFunction,
    BoundDropType,
    BoundDropView,
    BoundInsert,
    BoundInsertSelect,
    BoundNothing,
    BoundPause,
    BoundResume,
    BoundSelect,
    BoundStatement,
    BoundTerminate,
)
from holdfast.sql.bound_hold import BoundAdvanceHold, BoundCreateHold, BoundDropHold, BoundRenameHold
from holdfast.sql.bound_index import BoundAlterIndex, BoundCreateIndex, BoundDropIndex
from holdfast.sql.bound_read import BoundRead
from holdfast.sql.session import KNOWN, TRANSACTION
from holdfast.sql.statements import ExplainFormat
from holdfast.types import Array, Column, Decimal, Map, Role, Scalar, Schema, SqlType, Struct

INTERNAL = ("_holdfast_", "__")
"""How the names of topics begin that are nobody's data."""
FUNCTION_TYPES = {ScalarFunction: "SCALAR", AggregateFunction: "AGGREGATE", TableFunction: "TABLE"}


def entity(kind: str, text: str, warnings: Sequence[str] = (), **more: Any) -> Json:
    return {"@type": kind, "statementText": text, "warnings": [{"message": told} for told in warnings], **more}


# ---- what a statement did


def current_status(text: str, command: str, done: Done, warnings: Sequence[str] = ()) -> Json:
    return status(text, command, done.message, done.sequence, done.query, warnings)


def status(
    text: str, command: str, message: str, sequence: int, query: QueryId | None = None, warnings: Sequence[str] = ()
) -> Json:
    return entity(
        "currentStatus",
        text,
        warnings,
        commandId=command,
        commandStatus={"status": "SUCCESS", "message": message, "queryId": query},
        commandSequenceNumber=sequence,
    )


def command_id(bound: BoundStatement) -> str:
    """`type/name/action`, in words that ksqlDB's clients can read."""
    match bound:
        case BoundCreateSource(target=target) | BoundCreateAs(target=target):
            return f"{_type(target.kind.lower())}/{quote(target.name)}/create"
        case BoundDrop(target=dropped):
            return f"{_type(dropped.KIND)}/{quote(dropped.name)}/drop"
        case BoundInsert(target=written):
            return f"{written.KIND}/{quote(written.name)}/execute"
        case BoundInsertSelect(target=written):
            return f"{written.KIND}/{quote(written.name)}/create"
        case BoundAlter(target=altered):
            return f"{_type(altered.KIND)}/{quote(altered.name)}/alter"
        case BoundCreateType(name=name):
            return f"type/{quote(name)}/create"
        case BoundDropType(name=name):
            return f"type/{quote(name)}/drop"
        case BoundCreateFunction(function=created):
            return f"function/{quote(created.name)}/create"
        case BoundCreateView(name=name):
            return f"view/{quote(name)}/create"
        case BoundDropView(name=name):
            return f"view/{quote(name)}/drop"
        case BoundCreateIndex(name=name):
            return f"index/{quote(name)}/create"
        case BoundAlterIndex(index=index):
            return f"index/{quote(index.name)}/alter"
        case BoundDropIndex(index=index):
            return f"index/{quote(index.name)}/drop"
        case BoundDropFunction(name=name):
            return f"function/{quote(name)}/drop"
        case BoundTerminate(queries=queries):
            return f"terminate/{queries[0].id if len(queries) == 1 else 'ALL'}/execute"
        case BoundPause(queries=queries):
            return f"pause/{queries[0].id if len(queries) == 1 else 'ALL'}/execute"
        case BoundResume(queries=queries):
            return f"resume/{queries[0].id if len(queries) == 1 else 'ALL'}/execute"
        case BoundCreateHold(name=name):
            return f"hold/{quote(name)}/create"
        case BoundAdvanceHold(hold=hold) | BoundRenameHold(hold=hold):
            return f"hold/{quote(hold.name)}/alter"
        case BoundDropHold(hold=hold):
            return f"hold/{quote(hold.name)}/drop"
        case BoundNothing():
            return "topic/none/execute"
        case _:
            raise AssertionError(f"{type(bound).__name__} is not a command")


def _type(kind: str) -> str:
    return kind.replace(" ", "_")


def transaction(text: str, id_: str, state: str, changed: Sequence[tuple[str, Done]] = ()) -> Json:
    """A transaction: while it is open, a client sends its id with what follows, as a property.

    `changed` is what its COMMIT did, by the ids of commands; all have one place in the command topic.
    """
    more: Json = {"transactionId": id_, "state": state, "property": TRANSACTION}
    if changed:
        more["changes"] = [{"commandId": id_, "message": d.message, "queryId": d.query} for id_, d in changed]
        more["commandSequenceNumber"] = max(done.sequence for _, done in changed)
    return entity("transaction", text, **more)


def queued(text: str, command: str) -> Json:
    """A statement that is done on COMMIT."""
    told = status(text, command, "Waits for COMMIT.", -1)
    told["commandStatus"]["status"] = "QUEUED"
    return told


# ---- lists


def listed_objects(text: str, kind: str, found: Iterable[CatalogObject]) -> Json:
    return entity(kind, text) | {kind: [listed(each) for each in found]}


def listed(found: CatalogObject) -> Json:
    return {
        "type": found.KIND.upper(),
        "name": found.name,
        "topic": found.topic or "",
        "keyFormat": found.formats.key_format.format,
        "valueFormat": found.formats.value_format.format,
        "isWindowed": found.window is not None,
    }


def listed_queries(text: str, queries: Iterable[QueryInfo], pushes: Iterable[OpenPush]) -> Json:
    return entity("queries", text, queries=[*map(listed_query, queries), *map(listed_push, pushes)])


def listed_push(opened: OpenPush) -> Json:
    return {
        "id": opened.push.id,
        "queryString": opened.statement,
        "sinks": [],
        "sinkKafkaTopics": [],
        "statusCount": {"RUNNING": 1},
        "queryType": "PUSH",
        "state": "RUNNING",
        "reason": None,
        "done": 1.0,
    }


def listed_query(query: QueryInfo) -> Json:
    """ksqlDB's properties, and why the query does not run (`reason`) or how far its backfill has come (`done`)."""
    return {
        "id": query.id,
        "queryString": query.statement,
        "sinks": [query.sink] if query.sink else [],
        "sinkKafkaTopics": [query.sink_topic] if query.sink_topic else [],
        "statusCount": {query.state: 1},
        "queryType": "PERSISTENT",
        "state": query.state,
        "reason": query.reason,
        "done": query.done,
    }


def shown_topics(names: Iterable[TopicName], *, internal: bool) -> list[TopicName]:
    return [name for name in names if internal or not name.startswith(INTERNAL)]


def listed_topics(text: str, topics: Mapping[TopicName, Topic]) -> Json:
    found = [{"name": name, "replicaInfo": list(topic.replicas)} for name, topic in topics.items()]
    return entity("kafka_topics", text, topics=found)


def listed_topics_extended(
    text: str, topics: Mapping[TopicName, Topic], readers: Mapping[TopicName, tuple[int, int]]
) -> Json:
    found = []
    for name, topic in topics.items():
        consumers, groups = readers.get(name, (0, 0))
        counts = {"consumerCount": consumers, "consumerGroupCount": groups}
        found.append({"name": name, "replicaInfo": list(topic.replicas), **counts})
    return entity("kafka_topics_extended", text, topics=found)


def asserted_topic(text: str, asserted: BoundAssertTopic) -> Json:
    return entity("assert_topic", text, topicName=asserted.topic, exists=asserted.exists)


def listed_views(text: str, found: Iterable[View]) -> Json:
    views = [{"name": view.name, "reads": list(view.sources), "definition": view.definition} for view in found]
    return entity("views", text, views=views)


def listed_materialized_views(text: str, catalog: Catalog) -> Json:
    views = []
    for view in catalog.materialized_views:
        query = catalog.queries.get(view.query) if view.query is not None else None
        reads = list(query.sources) if query is not None else []
        windowed = view.window is not None
        views.append(
            {
                "name": view.name,
                "reads": reads,
                "queryId": view.query,
                "isWindowed": windowed,
                "definition": view.statement,
            }
        )
    return entity("materialized_views", text, materializedViews=views)


def listed_functions(text: str, users: Iterable[UserFunction]) -> Json:
    shown = {name: versions[-1] for name, versions in functions().items()} | {u.name: u.declaration() for u in users}
    found = [{"name": n, "type": _kind(f), "category": f.category} for n, f in sorted(shown.items())]
    return entity("function_names", text, functions=found)


def described_function(text: str, function: Function, user: UserFunction | None = None) -> Json:
    return entity(
        "describe_function",
        text,
        name=function.name,
        description=function.doc,
        author="",
        version="" if user is None else user.digest,
        path="internal" if user is None else "python",
        functions=[_form(function, form) for form in function.forms],
        type=_kind(function),
        examples=[{"call": each.call, "over": each.over, "gives": each.gives} for each in function.examples],
    )


def _kind(function: Function) -> str:
    return FUNCTION_TYPES[type(function)]


def _form(function: Function, form: Signature) -> Json:
    arguments = [
        {
            "name": name,
            "type": str(parameter),
            "description": "",
            "isVariadic": form.variadic and place == form.repeats % len(form.parameters),
        }
        for place, (name, parameter) in enumerate(zip(named(function, form), form.parameters, strict=True))
    ]
    return {"arguments": arguments, "returnType": form.returns_text, "description": function.doc}


def listed_holds(text: str, found: Sequence[HoldInfo]) -> Json:
    rows = [
        {
            "id": each.hold.id,
            "name": each.hold.name,
            "on": list(each.hold.on),
            "at": each.at,
            "lagMs": each.lag_ms,
            "maxLagMs": each.hold.max_lag_ms,
            "pinnedRows": each.pinned.rows,
            "pinnedBytes": each.pinned.bytes,
            "advanced": each.advanced,
            "reason": each.reason,
        }
        for each in found
    ]
    return entity("holds", text, holds=rows)


def listed_types(text: str, types: Mapping[str, SqlType]) -> Json:
    return entity("type_list", text, types={name: type_json(type_) for name, type_ in sorted(types.items())})


def properties(text: str, session: Mapping[str, str]) -> Json:
    """The session's properties; also the answer to SET and UNSET, so that a client can carry them on."""
    found = [{"name": name, "scope": "KSQL", "value": value} for name, value in sorted(session.items())]
    return entity("properties", text, properties=found, overwrittenProperties=sorted(session), defaultProperties=[])


def listed_properties(text: str, session: Mapping[str, str]) -> Json:
    """Every property that SET takes; those that nobody has set are as they are by default."""
    found = [{"name": name, "scope": "KSQL", "value": session.get(name)} for name in sorted({*KNOWN, *session})]
    unset = sorted(KNOWN.keys() - session.keys())
    return entity("properties", text, properties=found, overwrittenProperties=sorted(session), defaultProperties=unset)


def variables(text: str, defined: Mapping[str, str]) -> Json:
    """The session's variables; also the answer to DEFINE and UNDEFINE, so that a client can carry them on."""
    found = [{"name": name, "value": value} for name, value in sorted(defined.items())]
    return entity("variables", text, variables=found)


# ---- descriptions


def source_description(text: str, described: Json) -> Json:
    return entity("sourceDescription", text, sourceDescription=described)


def source_descriptions(text: str, described: Sequence[Json]) -> Json:
    return entity("source_descriptions", text, sourceDescriptions=list(described))


def described(
    found: CatalogObject,
    catalog: Catalog,
    queries: Iterable[QueryInfo],
    topics: Mapping[TopicName, Topic],
    *,
    extended: bool,
) -> Json:
    by_id = {query.id: query for query in queries}
    topic = topics.get(found.topic) if found.topic is not None else None

    def of(entries: Iterable[QueryEntry]) -> list[Json]:
        return [listed_query(by_id[entry.id]) for entry in entries if entry.id in by_id]

    return {
        "name": found.name,
        "windowType": found.window.type if found.window is not None else None,
        "readQueries": of(catalog.readers(found.name)),
        "writeQueries": of(catalog.writers(found.name)),
        "fields": fields(found.schema),
        "type": found.KIND.upper(),
        "timestamp": found.timestamp.column if found.timestamp else "",
        "statistics": "",
        "errorStats": "",
        "extended": extended,
        "keyFormat": found.formats.key_format.format if found.topic is not None else "",
        "valueFormat": found.formats.value_format.format if found.topic is not None else "",
        "topic": found.topic or "",
        "partitions": topic.partitions if topic else 0,
        "replication": min(topic.replicas, default=0) if topic else 0,
        "statement": found.statement,
        "queryOffsetSummaries": [],
        "sourceConstraints": [],
        "clusterStatistics": [],
        "clusterErrorStats": [],
    }


def described_view(view: View, schema: Schema, *, extended: bool) -> Json:
    """A view in the words of other objects; it has no topic and no queries."""
    nothing: list[Json] = []
    return {
        "name": view.name,
        "windowType": None,
        "readQueries": nothing,
        "writeQueries": nothing,
        "fields": fields(schema),
        "type": view.KIND.upper(),
        "timestamp": "",
        "statistics": "",
        "errorStats": "",
        "extended": extended,
        "keyFormat": "",
        "valueFormat": "",
        "topic": "",
        "partitions": 0,
        "replication": 0,
        "statement": view.definition,
        "queryOffsetSummaries": nothing,
        "sourceConstraints": list(view.sources),
        "clusterStatistics": nothing,
        "clusterErrorStats": nothing,
    }


def query_description(text: str, described: Json) -> Json:
    return entity("queryDescription", text, queryDescription=described)


def query_descriptions(text: str, described: Sequence[Json]) -> Json:
    return entity("query_descriptions", text, queryDescriptions=list(described))


def described_query(
    text: str,
    plan: str,
    format_: ExplainFormat,
    session: Mapping[str, str],
    *,
    bound: BoundStatement | None,
    info: QueryInfo | None,
) -> Json:
    """The plan in the format that was asked for, with what the query reads, writes and gives."""
    sources: list[str] = list(info.sources) if info else []
    sinks: list[str] = [info.sink] if info and info.sink else []
    shown: list[Json] = []
    kind = "PERSISTENT"
    match bound:
        case BoundCreateAs(target=target, query=query):
            sources, sinks, shown = [query.source.name], [target.name], fields(target.schema)
        case BoundCreateSource(target=target):
            sinks, shown = [target.name], fields(target.schema)
        case BoundSelect(kind=select, relation=relation, columns=columns):
            sources, kind = [relation.name], select.value
            shown = [field(Column(column.name, column.type)) for column in columns]
        case BoundRead(columns=given, tables=tables):
            sources, kind = [table.name for table in tables], "PULL"
            shown = [field(column) for column in given]
        case _:
            pass
    return {
        "id": info.id if info else "",
        "statementText": info.statement if info else text,
        "windowType": None,
        "fields": shown,
        "sources": sources,
        "sinks": sinks,
        "topology": "",
        "executionPlan": plan,
        "format": format_,
        "overriddenProperties": dict(session),
        "ksqlHostQueryStatus": {},
        "queryType": kind,
        "queryErrors": [{"errorMessage": info.reason, "type": "USER"}] if info and info.reason else [],
        "tasksMetadata": [],
        "state": info.state if info else None,
        "consumerGroupId": None,
    }


def fields(schema: Schema) -> list[Json]:
    return [field(column) for column in schema.columns]


def field(column: Column) -> Json:
    told: Json = {"name": column.name, "schema": type_json(column.type)}
    match column.role:
        case Role.KEY:
            told["type"] = "KEY"
        case Role.HEADERS:
            told["type"] = "HEADER"
        case Role.VALUE:
            pass
    return told


def type_json(type_: SqlType) -> Json:
    match type_:
        case Scalar():
            return simple(type_.value)
        case Decimal(precision, scale):
            return simple("DECIMAL") | {"parameters": {"precision": precision, "scale": scale}}
        case Array(element):
            return simple("ARRAY") | {"memberSchema": type_json(element)}
        case Map(_, value):
            return simple("MAP") | {"memberSchema": type_json(value)}
        case Struct(parts):
            return simple("STRUCT") | {"fields": [{"name": p.name, "schema": type_json(p.type)} for p in parts]}


def simple(name: str) -> Json:
    return {"type": name, "fields": None, "memberSchema": None}
