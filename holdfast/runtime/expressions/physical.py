"""The physical types of SQL types in Spark, DuckDB and Arrow; values are the same in all three.

TIME is an integer, the milliseconds since midnight. TIMESTAMP has no zone and is in UTC. The fields of a STRUCT are
positional (`f0`, `f1`, ...), because DuckDB folds the case of names and SQL names may differ only in case.
"""

from enum import Enum
from typing import assert_never

import pyarrow as pa

from holdfast.types import Array, Decimal, Map, Scalar, SqlType, Struct


class Dialect(Enum):
    """The engine that SQL is rendered for."""

    SPARK = "Spark"
    DUCKDB = "DuckDB"


class NotRenderable(Exception):
    """The dialect has no form proven equal to Spark's; the expression runs on Spark instead."""


_SPARK = {
    Scalar.BOOLEAN: "BOOLEAN",
    Scalar.INTEGER: "INT",
    Scalar.BIGINT: "BIGINT",
    Scalar.DOUBLE: "DOUBLE",
    Scalar.STRING: "STRING",
    Scalar.BYTES: "BINARY",
    Scalar.TIME: "INT",
    Scalar.DATE: "DATE",
    Scalar.TIMESTAMP: "TIMESTAMP_NTZ",
}

_DUCKDB = {
    Scalar.BOOLEAN: "BOOLEAN",
    Scalar.INTEGER: "INTEGER",
    Scalar.BIGINT: "BIGINT",
    Scalar.DOUBLE: "DOUBLE",
    Scalar.STRING: "VARCHAR",
    Scalar.BYTES: "BLOB",
    Scalar.TIME: "INTEGER",
    Scalar.DATE: "DATE",
    Scalar.TIMESTAMP: "TIMESTAMP",
}

_ARROW = {
    Scalar.BOOLEAN: pa.bool_(),
    Scalar.INTEGER: pa.int32(),
    Scalar.BIGINT: pa.int64(),
    Scalar.DOUBLE: pa.float64(),
    Scalar.STRING: pa.string(),
    Scalar.BYTES: pa.binary(),
    Scalar.TIME: pa.int32(),
    Scalar.DATE: pa.date32(),
    Scalar.TIMESTAMP: pa.timestamp("us"),
}


def field_name(index: int) -> str:
    """The physical name of a STRUCT's field."""
    return f"f{index}"


def physical_fields(type_: Struct) -> list[SqlType]:
    """The types of a STRUCT's physical fields: an empty STRUCT has one field that is always NULL."""
    return [field.type for field in type_.fields] or [Scalar.BOOLEAN]


def spark_type(type_: SqlType) -> str:
    match type_:
        case Scalar():
            return _SPARK[type_]
        case Decimal(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case Array(element):
            return f"ARRAY<{spark_type(element)}>"
        case Map(key, value):
            return f"MAP<{spark_type(key)},{spark_type(value)}>"
        case Struct():
            parts = (f"{field_name(i)}:{spark_type(field)}" for i, field in enumerate(physical_fields(type_)))
            return f"STRUCT<{','.join(parts)}>"
        case _:
            assert_never(type_)


def duckdb_type(type_: SqlType) -> str:
    match type_:
        case Scalar():
            return _DUCKDB[type_]
        case Decimal(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case Array(element):
            return f"{duckdb_type(element)}[]"
        case Map(key, value):
            return f"MAP({duckdb_type(key)}, {duckdb_type(value)})"
        case Struct():
            parts = (f"{field_name(i)} {duckdb_type(field)}" for i, field in enumerate(physical_fields(type_)))
            return f"STRUCT({', '.join(parts)})"
        case _:
            assert_never(type_)


def arrow_type(type_: SqlType) -> pa.DataType:
    match type_:
        case Scalar():
            return _ARROW[type_]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(element):
            return pa.list_(arrow_type(element))
        case Map(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct():
            return pa.struct([(field_name(i), arrow_type(field)) for i, field in enumerate(physical_fields(type_))])
        case _:
            assert_never(type_)


def physical_type(type_: SqlType, dialect: Dialect) -> str:
    return spark_type(type_) if dialect is Dialect.SPARK else duckdb_type(type_)


def string_literal(text: str, dialect: Dialect) -> str:
    """A string constant. Spark would substitute `${...}` inside its SQL, so `$` is escaped there."""
    if dialect is Dialect.SPARK:
        escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024").replace("\0", "\\u0000")
        return f"'{escaped}'"
    quoted = "'" + text.replace("'", "''") + "'"
    return "(" + quoted.replace("\0", "' || chr(0) || '") + ")" if "\0" in text else quoted
