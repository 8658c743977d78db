"""Formats the entities of responses as text and tables."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from holdfast.client.display import aligned
from holdfast.client.html import html_table
from holdfast.client.session import Entity


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; `plural` names its rows in the message that there are none."""

    names: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    plural: str = "rows"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names and their values."""

    pairs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Document:
    """A file, such as the picture of a plan; written unchanged."""

    text: str
    format: str


Block = str | Grid | Pairs | Document


class Entities(list[Entity]):
    """The responses to statements, one entity each."""

    def __repr__(self) -> str:
        return "\n".join(line for entity in self for block in blocks(entity) for line in block_lines(block))

    def _repr_html_(self) -> str:
        return "".join(block_html(block) for entity in self for block in blocks(entity))


def warnings(entity: Entity) -> list[str]:
    return [str(warning["message"]) for warning in entity.get("warnings") or ()]


def blocks(entity: Entity) -> Iterator[Block]:
    """The blocks of an entity, from top to bottom."""
    return BLOCKS.get(entity["@type"], _json)(entity)


# ---- one function per `@type`


def _status(entity: Entity) -> Iterator[Block]:
    status = entity["commandStatus"]
    yield f"{status['message']} Query {status['queryId']} runs." if status.get("queryId") else status["message"]


def _transaction(entity: Entity) -> Iterator[Block]:
    if entity["state"] == "OPEN":
        yield "The transaction has begun."
    else:
        yield from (change["message"] for change in entity.get("changes", ()))
        yield "The transaction has ended."


def _streams(entity: Entity) -> Iterator[Block]:
    yield _objects(entity["streams"], "streams")


def _tables(entity: Entity) -> Iterator[Block]:
    yield _objects(entity["tables"], "tables")


def _objects(found: Sequence[Mapping[str, Any]], plural: str) -> Grid:
    rows = [[each[key] for key in ("name", "topic", "keyFormat", "valueFormat")] for each in found]
    return Grid(("Name", "Topic", "Key format", "Value format"), rows, plural)


def _views(entity: Entity) -> Iterator[Block]:
    rows = [[each["name"], ", ".join(each["reads"]), each["definition"]] for each in entity["views"]]
    yield Grid(("View", "Reads", "Definition"), rows, "views")


def _materialized_views(entity: Entity) -> Iterator[Block]:
    rows = [
        [each["name"], ", ".join(each["reads"]), each["queryId"], each["definition"]]
        for each in entity["materializedViews"]
    ]
    yield Grid(("Materialized view", "Reads", "Query", "Definition"), rows, "materialized views")


def _source_description(entity: Entity) -> Iterator[Block]:
    yield from _source(entity["sourceDescription"])


def _source_descriptions(entity: Entity) -> Iterator[Block]:
    for described in entity["sourceDescriptions"]:
        yield from _source(described)


def _source(described: Mapping[str, Any]) -> Iterator[Block]:
    head = {
        "Name": described["name"],
        "Kind": described["type"],
    }
    for label, key in (("Topic", "topic"), ("Key format", "keyFormat"), ("Value format", "valueFormat")):
        if described[key]:
            head[label] = described[key]
    if described["timestamp"]:
        head["Timestamp"] = described["timestamp"]
    if described["windowType"]:
        head["Window"] = " of ".join(filter(None, (described["windowType"], described.get("windowSize"))))
    for label, key in (("Window topic", "windowTopic"), ("Retention", "windowRetention")):
        if described.get(key):
            head[label] = described[key]
    yield Pairs(head)
    rows = [[field["name"], type_of(field["schema"]), field.get("type", "")] for field in described["fields"]]
    yield Grid(("Column", "Type", "Role"), rows, "columns")
    for title, key in (("Written by", "writeQueries"), ("Read by", "readQueries")):
        for query in described[key]:
            yield f"{title} {query['id']} ({state_of(query)}): {one_line(query['queryString'])}"
    if described["extended"] and described["statement"]:
        yield str(described["statement"])


def _queries(entity: Entity) -> Iterator[Block]:
    found = entity["queries"]
    rows = [[q["id"], state_of(q), ", ".join(q["sinks"]), one_line(q["queryString"])] for q in found]
    yield Grid(("Query", "State", "Writes", "Statement"), rows, "queries")
    for query in found:
        if query.get("reason"):
            yield f"{query['id']}: {query['reason']}"


def _query_description(entity: Entity) -> Iterator[Block]:
    described = entity["queryDescription"]
    plan, format_ = str(described["executionPlan"]), str(described.get("format", "TEXT"))
    yield plan if format_ == "TEXT" else Document(plan, format_)


def _query_descriptions(entity: Entity) -> Iterator[Block]:
    for described in entity["queryDescriptions"]:
        writes = ", ".join(described["sinks"])
        yield Pairs({"Query": described["id"], "State": described["state"], "Writes": writes})
        yield str(described["statementText"])
        yield str(described["executionPlan"])


def _topics(entity: Entity) -> Iterator[Block]:
    rows = [[each["name"], *partition_counts(each["replicaInfo"])] for each in entity["topics"]]
    yield Grid(("Topic", "Partitions", "Replicas"), rows, "topics")


def _topics_extended(entity: Entity) -> Iterator[Block]:
    rows = [
        [each["name"], *partition_counts(each["replicaInfo"]), each["consumerCount"], each["consumerGroupCount"]]
        for each in entity["topics"]
    ]
    yield Grid(("Topic", "Partitions", "Replicas", "Consumers", "Groups"), rows, "topics")


def _asserted_topic(entity: Entity) -> Iterator[Block]:
    yield f"Topic {entity['topicName']} {'exists' if entity['exists'] else 'does not exist'}."


def _types(entity: Entity) -> Iterator[Block]:
    rows = [[name, type_of(schema)] for name, schema in entity["types"].items()]
    yield Grid(("Type", "Definition"), rows, "types")


def _functions(entity: Entity) -> Iterator[Block]:
    rows = [[each["name"], each["type"], each["category"]] for each in entity["functions"]]
    yield Grid(("Function", "Kind", "Category"), rows, "functions")


def _function_description(entity: Entity) -> Iterator[Block]:
    yield f"{entity['name']} ({entity['type'].lower()}): {entity['description']}"
    rows = [[_signature(entity["name"], form), form["returnType"]] for form in entity["functions"]]
    yield Grid(("Call", "Returns"), rows, "forms")
    examples = [[_example(each), each["gives"]] for each in entity["examples"]]
    if examples:
        yield Grid(("Example", "Returns"), examples, "examples")


def _properties(entity: Entity) -> Iterator[Block]:
    rows = [[each["name"], each["value"] or ""] for each in entity["properties"]]
    yield Grid(("Property", "Value"), rows, "properties")


def _variables(entity: Entity) -> Iterator[Block]:
    rows = [[each["name"], each["value"]] for each in entity["variables"]]
    yield Grid(("Variable", "Value"), rows, "variables")


def _holds(entity: Entity) -> Iterator[Block]:
    keys = ("name", "at", "lagMs", "maxLagMs", "pinnedRows", "advanced")
    rows = [[*(each[key] for key in keys), ", ".join(each["on"])] for each in entity["holds"]]
    yield Grid(("Hold", "At", "Lag ms", "Max lag ms", "Rows pinned", "Advanced", "On"), rows, "holds")
    yield from (f"{each['name']}: {each['reason']}" for each in entity["holds"] if each["reason"])


def _indexes(entity: Entity) -> Iterator[Block]:
    rows = [[each["name"], each["on"], ", ".join(each["by"]), each["state"]] for each in entity["indexes"]]
    yield Grid(("Index", "On", "By", "State"), rows, "indexes")
    yield from (f"{each['name']}: {each['reason']}" for each in entity["indexes"] if each["reason"])


def _index_description(entity: Entity) -> Iterator[Block]:
    index = entity["indexDescription"]
    yield Pairs({"Index": index["name"], "On": index["on"], "By": ", ".join(index["by"]), "State": index["state"]})
    yield Grid(("Column", "Type"), [[each["name"], each["type"]] for each in index["columns"]], "columns")


def _json(entity: Entity) -> Iterator[Block]:
    yield json.dumps(entity, indent=2, ensure_ascii=False)


BLOCKS: Mapping[str, Callable[[Entity], Iterator[Block]]] = {
    "assert_topic": _asserted_topic,
    "currentStatus": _status,
    "describe_function": _function_description,
    "function_names": _functions,
    "holds": _holds,
    "indexDescription": _index_description,
    "indexes": _indexes,
    "kafka_topics": _topics,
    "kafka_topics_extended": _topics_extended,
    "materialized_views": _materialized_views,
    "properties": _properties,
    "queries": _queries,
    "queryDescription": _query_description,
    "query_descriptions": _query_descriptions,
    "sourceDescription": _source_description,
    "source_descriptions": _source_descriptions,
    "streams": _streams,
    "tables": _tables,
    "transaction": _transaction,
    "type_list": _types,
    "variables": _variables,
    "views": _views,
}
"""The function of each `@type`; other entities are shown as JSON."""


# ---- parts of blocks


def partition_counts(replicas: Sequence[int]) -> tuple[int, int]:
    """The number of partitions, and of replicas per partition."""
    return len(replicas), max(replicas, default=0)


def _example(example: Mapping[str, Any]) -> str:
    over = example.get("over")
    return f"{example['call']} over x in {over}" if over else str(example["call"])


def _signature(name: str, form: Mapping[str, Any]) -> str:
    arguments = [f"{a['name']} {a['type']}{', ...' if a['isVariadic'] else ''}" for a in form["arguments"]]
    return f"{name}({', '.join(arguments)})"


def state_of(query: Mapping[str, Any]) -> str:
    done = query.get("done") or 0.0
    return f"{query['state']} {done:.0%}" if query["state"] == "BUILDING" else str(query["state"])


def type_of(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"type": "DECIMAL", "parameters": {"precision": precision, "scale": scale}}:
            return f"DECIMAL({precision}, {scale})"
        case {"type": "ARRAY" | "MAP" as kind, "memberSchema": member}:
            inner = type_of(member)
            return f"ARRAY<{inner}>" if kind == "ARRAY" else f"MAP<STRING, {inner}>"
        case {"type": "STRUCT", "fields": fields}:
            inside = [f"{field['name']} {type_of(field['schema'])}" for field in fields]
            return f"STRUCT<{', '.join(inside)}>"
        case _:
            return str(schema["type"])


def one_line(text: str) -> str:
    return " ".join(text.split())


# ---- text and HTML


def block_lines(block: Block) -> Iterator[str]:
    match block:
        case str():
            yield block
        case Grid(names, rows, plural):
            yield from aligned(names, rows, [False] * len(names)) if rows else [f"There are no {plural}."]
        case Pairs(pairs):
            widest = max(map(len, pairs))
            yield from (f"{name.ljust(widest)}  {value}" for name, value in pairs.items())
        case Document(text):
            yield text.rstrip("\n")


def block_html(block: Block) -> str:
    match block:
        case str():
            return f"<pre>{escape(block)}</pre>" if "\n" in block else f"<p>{escape(block)}</p>"
        case Grid(names, rows, plural):
            return html_table(names, rows) if rows else f"<p>There are no {escape(plural)}.</p>"
        case Pairs(pairs):
            return html_table(("", ""), list(pairs.items()))
        case Document(text, format_):
            return text if format_ == "SVG" else f"<pre>{escape(text)}</pre>"
