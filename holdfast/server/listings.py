"""The responses to SHOW."""

from collections.abc import Iterable, Mapping, Sequence

from holdfast.catalog.objects import CatalogObject, View
from holdfast.catalog.snapshot import Catalog
from holdfast.kafka.port import Topic
from holdfast.names import TopicName
from holdfast.runtime.functions.declaration import (
    AggregateFunction,
    Function,
    ScalarFunction,
    TableFunction,
)
from holdfast.runtime.functions.registry import functions
from holdfast.runtime.functions.user import UserFunction
from holdfast.server.entities import entity
from holdfast.server.problems import Json
from holdfast.server.schema_json import type_json
from holdfast.service.ddl import HoldStatus
from holdfast.service.push import OpenPush
from holdfast.service.status import QueryInfo
from holdfast.sql.properties.session import KNOWN
from holdfast.types import SqlType

INTERNAL = ("_holdfast_", "__")
"""Prefixes of internal topics."""


FUNCTION_TYPES = {ScalarFunction: "SCALAR", AggregateFunction: "AGGREGATE", TableFunction: "TABLE"}


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
    """ksqlDB's properties, why the query is not running (`reason`) and how far its backfill has come (`done`)."""
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


def visible_topics(names: Iterable[TopicName], *, internal: bool) -> list[TopicName]:
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
    latest = {name: versions[-1] for name, versions in functions().items()} | {u.name: u.declaration() for u in users}
    found = [{"name": n, "type": function_kind(f), "category": f.category} for n, f in sorted(latest.items())]
    return entity("function_names", text, functions=found)


def function_kind(function: Function) -> str:
    return FUNCTION_TYPES[type(function)]


def listed_holds(text: str, found: Sequence[HoldStatus]) -> Json:
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


def listed_properties(text: str, session: Mapping[str, str]) -> Json:
    """Every property that SET accepts; a property that is not set has its default."""
    found = [{"name": name, "scope": "KSQL", "value": session.get(name)} for name in sorted({*KNOWN, *session})]
    unset = sorted(KNOWN.keys() - session.keys())
    return entity("properties", text, properties=found, overwrittenProperties=sorted(session), defaultProperties=unset)
