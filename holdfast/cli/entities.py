"""Prints the entities that a server answers statements with."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from holdfast.cli.printing import complaints, one_line, pairs, put, table
from holdfast.client import Entity


def print_entity(console: Console, entity: Entity) -> None:
    for warning in entity.get("warnings", ()):
        complaints().print(Text(f"NOTICE: {warning['message']}"))
    match entity["@type"]:
        case "currentStatus":
            status = entity["commandStatus"]
            query = f" Query {status['queryId']} runs." if status.get("queryId") else ""
            console.print(Text(f"{status['message']}{query}"))
        case "streams" | "tables" as kind:
            names = ("Name", "Topic", "Key format", "Value format")
            rows = [[each[key] for key in ("name", "topic", "keyFormat", "valueFormat")] for each in entity[kind]]
            print_list(console, names, rows, kind)
        case "queries":
            print_queries(console, entity["queries"])
        case "kafka_topics":
            print_list(console, ["Topic"], [[each["name"]] for each in entity["topics"]], "topics")
        case "function_names":
            rows = [[each["name"], each["type"]] for each in entity["functions"]]
            print_list(console, ("Function", "Kind"), rows, "functions")
        case "properties":
            rows = [[each["name"], each["value"]] for each in entity["properties"]]
            print_list(console, ("Property", "Value"), rows, "properties")
        case "sourceDescription":
            print_source(console, entity["sourceDescription"])
        case "source_descriptions":
            for described in entity["sourceDescriptions"]:
                print_source(console, described)
        case "queryDescription":
            console.print(Text(entity["queryDescription"]["executionPlan"]), soft_wrap=True)
        case _:
            console.print(Text(json.dumps(entity, indent=2, ensure_ascii=False)), soft_wrap=True)


def print_list(console: Console, names: Sequence[str], rows: Sequence[Sequence[object]], plural: str) -> None:
    if rows:
        put(console, table(names, rows))
    else:
        console.print(Text(f"There are no {plural}.", style="dim"))


def print_queries(console: Console, queries: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        [query["id"], state_of(query), ", ".join(query["sinks"]), one_line(query["queryString"])] for query in queries
    ]
    print_list(console, ("Query", "State", "Writes", "Statement"), rows, "queries")
    for query in queries:
        if query.get("reason"):
            console.print(Text(f"{query['id']}: {query['reason']}"))


def state_of(query: Mapping[str, Any]) -> str:
    done = query.get("done", 1)
    return f"{query['state']} {done:.0%}" if query["state"] == "BUILDING" else str(query["state"])


def print_source(console: Console, described: Mapping[str, Any]) -> None:
    head = {
        "Name": described["name"],
        "Kind": described["type"],
        "Topic": described["topic"],
        "Key format": described["keyFormat"],
        "Value format": described["valueFormat"],
    }
    if described["timestamp"]:
        head["Timestamp"] = described["timestamp"]
    put(console, pairs(head))
    console.print()
    rows = [[field["name"], type_of(field["schema"]), field.get("type", "")] for field in described["fields"]]
    put(console, table(("Column", "Type", "Role"), rows))
    for title, key in (("Written by", "writeQueries"), ("Read by", "readQueries")):
        for query in described[key]:
            console.print(Text(f"\n{title} {query['id']} ({state_of(query)}): {one_line(query['queryString'])}"))
    if described["extended"] and described["statement"]:
        console.print(Text(f"\n{described['statement']}"))


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
