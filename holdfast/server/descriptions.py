"""The responses to DESCRIBE and EXPLAIN."""

from collections.abc import Iterable, Mapping, Sequence

from holdfast.catalog.objects import CatalogObject, QueryEntry, Table, View
from holdfast.catalog.snapshot import Catalog
from holdfast.kafka.port import Topic
from holdfast.names import TopicName
from holdfast.runtime.functions.declaration import (
    Function,
    Signature,
    named,
)
from holdfast.runtime.functions.user import UserFunction
from holdfast.runtime.plan.optional import value_of
from holdfast.server.entities import entity
from holdfast.server.listings import function_kind, listed_query
from holdfast.server.problems import Json
from holdfast.server.schema_json import field, fields
from holdfast.service.status import QueryInfo
from holdfast.sql.bind.create_as import BoundCreateAs
from holdfast.sql.bind.create_source import BoundCreateSource
from holdfast.sql.bind.statement import BoundStatement
from holdfast.sql.literals.duration import duration_text
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.statements import ExplainFormat
from holdfast.types import Column, Schema


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
        type=function_kind(function),
        examples=[{"call": each.call, "over": each.over, "gives": each.gives} for each in function.examples],
    )


def _form(function: Function, form: Signature) -> Json:
    arguments = [
        {
            "name": name,
            "type": str(parameter),
            "description": "",
            "isVariadic": form.variadic and index == form.repeats % len(form.parameters),
        }
        for index, (name, parameter) in enumerate(zip(named(function, form), form.parameters, strict=True))
    ]
    return {"arguments": arguments, "returnType": form.returns_text, "description": function.doc}


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
        **_window(found),
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


def _window(found: CatalogObject) -> Json:
    """The window of an object's keys and, for a table over a windowed topic, its layout and retention."""
    window, store = found.window, found.window_store if isinstance(found, Table) else None
    size = value_of(window.size) if window is not None else None
    return {
        "windowType": window.type if window is not None else None,
        "windowSize": duration_text(size.millis) if size is not None else None,
        "windowTopic": store.topic if store is not None else None,
        "windowRetention": duration_text(store.retention.millis) if store is not None else None,
    }


def described_view(view: View, schema: Schema, *, extended: bool) -> Json:
    """A view, described like other objects; it has no topic and no queries."""
    empty: list[Json] = []
    return {
        "name": view.name,
        "windowType": None,
        "windowSize": None,
        "windowTopic": None,
        "windowRetention": None,
        "readQueries": empty,
        "writeQueries": empty,
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
        "queryOffsetSummaries": empty,
        "sourceConstraints": list(view.sources),
        "clusterStatistics": empty,
        "clusterErrorStats": empty,
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
    """The plan in the requested format, with the query's sources, sinks and columns."""
    sources: list[str] = list(info.sources) if info else []
    sinks: list[str] = [info.sink] if info and info.sink else []
    columns_json: list[Json] = []
    kind = "PERSISTENT"
    match bound:
        case BoundCreateAs(target=target, query=query):
            sources, sinks, columns_json = [query.source.name], [target.name], fields(target.schema)
        case BoundCreateSource(target=target):
            sinks, columns_json = [target.name], fields(target.schema)
        case BoundSelect(kind=select, relation=relation, columns=columns):
            sources, kind = [relation.name], select.value
            columns_json = [field(Column(column.name, column.type)) for column in columns]
        case BoundRead(columns=selected, tables=tables):
            sources, kind = [table.name for table in tables], "PULL"
            columns_json = [field(column) for column in selected]
        case _:
            pass
    return {
        "id": info.id if info else "",
        "statementText": info.statement if info else text,
        "windowType": None,
        "fields": columns_json,
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
