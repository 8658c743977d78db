"""Formats the entities of responses as text and tables."""

import json
from collections.abc import Iterator, Mapping, Sequence
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
    match entity["@type"]:
        case "currentStatus":
            status = entity["commandStatus"]
            yield f"{status['message']} Query {status['queryId']} runs." if status.get("queryId") else status["message"]
        case "views":
            rows = [[each["name"], ", ".join(each["reads"]), each["definition"]] for each in entity["views"]]
            yield Grid(("View", "Reads", "Definition"), rows, "views")
        case "materialized_views":
            rows = [
                [each["name"], ", ".join(each["reads"]), each["queryId"], each["definition"]]
                for each in entity["materializedViews"]
            ]
            yield Grid(("Materialized view", "Reads", "Query", "Definition"), rows, "materialized views")
        case "transaction":
            if entity["state"] == "OPEN":
                yield "The transaction has begun."
            else:
                yield from (change["message"] for change in entity.get("changes", ()))
                yield "The transaction has ended."
        case "streams" | "tables" as kind:
            rows = [[each[key] for key in ("name", "topic", "keyFormat", "valueFormat")] for each in entity[kind]]
            yield Grid(("Name", "Topic", "Key format", "Value format"), rows, kind)
        case "queries":
            yield from queries(entity["queries"])
        case "kafka_topics":
            rows = [[each["name"], *partition_counts(each["replicaInfo"])] for each in entity["topics"]]
            yield Grid(("Topic", "Partitions", "Replicas"), rows, "topics")
        case "kafka_topics_extended":
            rows = [
                [
                    each["name"],
                    *partition_counts(each["replicaInfo"]),
                    each["consumerCount"],
                    each["consumerGroupCount"],
                ]
                for each in entity["topics"]
            ]
            yield Grid(("Topic", "Partitions", "Replicas", "Consumers", "Groups"), rows, "topics")
        case "assert_topic":
            yield f"Topic {entity['topicName']} {'exists' if entity['exists'] else 'does not exist'}."
        case "type_list":
            yield Grid(
                ("Type", "Definition"), [[name, type_of(schema)] for name, schema in entity["types"].items()], "types"
            )
        case "query_descriptions":
            for described in entity["queryDescriptions"]:
                writes = ", ".join(described["sinks"])
                yield Pairs({"Query": described["id"], "State": described["state"], "Writes": writes})
                yield str(described["statementText"])
                yield str(described["executionPlan"])
        case "function_names":
            rows = [[each["name"], each["type"], each["category"]] for each in entity["functions"]]
            yield Grid(("Function", "Kind", "Category"), rows, "functions")
        case "describe_function":
            yield f"{entity['name']} ({entity['type'].lower()}): {entity['description']}"
            rows = [[_signature(entity["name"], form), form["returnType"]] for form in entity["functions"]]
            yield Grid(("Call", "Returns"), rows, "forms")
            examples = [[_example(each), each["gives"]] for each in entity["examples"]]
            if examples:
                yield Grid(("Example", "Returns"), examples, "examples")
        case "properties":
            rows = [[each["name"], each["value"] or ""] for each in entity["properties"]]
            yield Grid(("Property", "Value"), rows, "properties")
        case "holds":
            keys = ("name", "at", "lagMs", "maxLagMs", "pinnedRows", "advanced")
            rows = [[*(each[key] for key in keys), ", ".join(each["on"])] for each in entity["holds"]]
            yield Grid(("Hold", "At", "Lag ms", "Max lag ms", "Rows pinned", "Advanced", "On"), rows, "holds")
            yield from (f"{each['name']}: {each['reason']}" for each in entity["holds"] if each["reason"])
        case "indexes":
            rows = [[each["name"], each["on"], ", ".join(each["by"]), each["state"]] for each in entity["indexes"]]
            yield Grid(("Index", "On", "By", "State"), rows, "indexes")
            yield from (f"{each['name']}: {each['reason']}" for each in entity["indexes"] if each["reason"])
        case "indexDescription":
            index = entity["indexDescription"]
            head = {"Index": index["name"], "On": index["on"], "By": ", ".join(index["by"]), "State": index["state"]}
            yield Pairs(head)
            yield Grid(("Column", "Type"), [[each["name"], each["type"]] for each in index["columns"]], "columns")
        case "variables":
            rows = [[each["name"], each["value"]] for each in entity["variables"]]
            yield Grid(("Variable", "Value"), rows, "variables")
        case "sourceDescription":
            yield from source(entity["sourceDescription"])
        case "source_descriptions":
            for described in entity["sourceDescriptions"]:
                yield from source(described)
        case "queryDescription":
            described = entity["queryDescription"]
            plan, format_ = str(described["executionPlan"]), str(described.get("format", "TEXT"))
            yield plan if format_ == "TEXT" else Document(plan, format_)
        case _:
            yield json.dumps(entity, indent=2, ensure_ascii=False)


def partition_counts(replicas: Sequence[int]) -> tuple[int, int]:
    """The number of partitions, and of replicas per partition."""
    return len(replicas), max(replicas, default=0)


def _example(example: Mapping[str, Any]) -> str:
    over = example.get("over")
    return f"{example['call']} over x in {over}" if over else str(example["call"])


def _signature(name: str, form: Mapping[str, Any]) -> str:
    arguments = [f"{a['name']} {a['type']}{', ...' if a['isVariadic'] else ''}" for a in form["arguments"]]
    return f"{name}({', '.join(arguments)})"


def queries(found: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    rows = [[q["id"], state_of(q), ", ".join(q["sinks"]), one_line(q["queryString"])] for q in found]
    yield Grid(("Query", "State", "Writes", "Statement"), rows, "queries")
    for query in found:
        if query.get("reason"):
            yield f"{query['id']}: {query['reason']}"


def state_of(query: Mapping[str, Any]) -> str:
    done = query.get("done") or 0.0
    return f"{query['state']} {done:.0%}" if query["state"] == "BUILDING" else str(query["state"])


def source(described: Mapping[str, Any]) -> Iterator[Block]:
    head = {
        "Name": described["name"],
        "Kind": described["type"],
    }
    for label, key in (("Topic", "topic"), ("Key format", "keyFormat"), ("Value format", "valueFormat")):
        if described[key]:
            head[label] = described[key]
    if described["timestamp"]:
        head["Timestamp"] = described["timestamp"]
    yield Pairs(head)
    rows = [[field["name"], type_of(field["schema"]), field.get("type", "")] for field in described["fields"]]
    yield Grid(("Column", "Type", "Role"), rows, "columns")
    for title, key in (("Written by", "writeQueries"), ("Read by", "readQueries")):
        for query in described[key]:
            yield f"{title} {query['id']} ({state_of(query)}): {one_line(query['queryString'])}"
    if described["extended"] and described["statement"]:
        yield str(described["statement"])


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
