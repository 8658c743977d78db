"""Parses the JSON text of a record with Spark. Most scalars stay text and are typed later."""

from collections.abc import Sequence

from holdfast.runtime.serdes.scalar_text import is_wide, literal, wider
from holdfast.types import Array, Column, Decimal, Map, Scalar, SqlType, Struct

from .names import spellings

CORRUPT = "__holdfast_corrupt__"
UNWRAPPED = "v"
OPTIONS = f"map('columnNameOfCorruptRecord', '{CORRUPT}', 'allowSingleQuotes', 'false')"

# A match skips strings, integers and anything that is no number, and ends with a number with a fraction or exponent.
_TEXT = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_FRACTION = rf"\G((?:[^\"0-9-]++|{_TEXT}|-?[0-9]++(?![.0-9eE]))*+)(-?[0-9]++[.eE][-+.0-9eE]*+)"
_AS_TEXT = '$1"$2"'


def parse_sql(raw: str, spelled: Sequence[Sequence[str]], columns: Sequence[Column], seen: frozenset[str]) -> str:
    """The record as a struct that has a field for every spelling of each column."""
    fields = [
        f"{quoted(name)} {parsed_type(column.type, seen)}"
        for names, column in zip(spelled, columns, strict=True)
        for name in names
    ]
    schema = ", ".join([*fields, f"{quoted(CORRUPT)} STRING"])
    return f"from_json({raw}, {literal(schema)}, {OPTIONS})"


def text_sql(raw: str, *, unwrapped: bool) -> str:
    text = f"CAST({raw} AS STRING)"
    return f"concat('{{\"{UNWRAPPED}\":', {text}, '}}')" if unwrapped else text


def quote_fractions(text: str) -> str:
    """Quote the numbers with a fraction or exponent: Spark converts unquoted ones to double, even when read as text."""
    return f"regexp_replace({text}, {literal(_FRACTION)}, {literal(_AS_TEXT)})"


def parsed_type(type_: SqlType, seen: frozenset[str]) -> str:
    """The Spark type that a value is parsed as."""
    match type_:
        case Array(element):
            return f"ARRAY<{parsed_type(element, seen)}>"
        case Map(_, value):
            return f"MAP<STRING,{parsed_type(value, seen)}>"
        case Struct(fields):
            spelled = spellings([field.name for field in fields], seen)
            parts = (
                f"{quoted(name)}:{parsed_type(field.type, seen)}"
                for names, field in zip(spelled, fields, strict=True)
                for name in names
            )
            return f"STRUCT<{','.join(parts)}>"
        case Scalar.BOOLEAN:
            return "BOOLEAN"
        case Decimal() if not is_wide(type_):
            return wider(type_)
        case _:
            return "STRING"


def field_sql(struct: str, names: Sequence[str]) -> str:
    fields = [f"{struct}.{quoted(name)}" for name in names]
    return fields[0] if len(fields) == 1 else f"coalesce({', '.join(fields)})"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
