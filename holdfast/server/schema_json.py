"""Columns and types as JSON, in ksqlDB's form."""

from holdfast.server.problems import Json
from holdfast.types import Array, Column, Decimal, Map, Role, Scalar, Schema, SqlType, Struct


def fields(schema: Schema) -> list[Json]:
    return [field(column) for column in schema.columns]


def field(column: Column) -> Json:
    described: Json = {"name": column.name, "schema": type_json(column.type)}
    match column.role:
        case Role.KEY:
            described["type"] = "KEY"
        case Role.HEADERS:
            described["type"] = "HEADER"
        case Role.VALUE:
            pass
    return described


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
