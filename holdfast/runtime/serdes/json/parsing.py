"""The text of a record, parsed by Spark: leaves are texts, which are typed later."""

from collections.abc import Sequence

from holdfast.runtime.serdes.json.names import spellings
from holdfast.runtime.serdes.texts import is_wide, literal, wider
from holdfast.types import Array, Column, Decimal, Map, Scalar, SqlType, Struct

CORRUPT = "__holdfast_corrupt__"
UNWRAPPED = "v"
OPTIONS = f"map('columnNameOfCorruptRecord', '{CORRUPT}', 'allowSingleQuotes', 'false')"

# From the end of one match to the next: no numbers, texts, or whole numbers; then one with a fraction or an exponent.
_TEXT = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_FRACTION = rf"\G((?:[^\"0-9-]++|{_TEXT}|-?[0-9]++(?![.0-9eE]))*+)(-?[0-9]++[.eE][-+.0-9eE]*+)"
_AS_TEXT = '$1"$2"'


def parse_sql(raw: str, spelled: Sequence[Sequence[str]], columns: Sequence[Column], seen: frozenset[str]) -> str:
    """The struct of a record's texts, under every spelling of each column."""
    fields = [
        f"{quoted(name)} {leaves(column.type, seen)}"
        for names, column in zip(spelled, columns, strict=True)
        for name in names
    ]
    schema = ", ".join([*fields, f"{quoted(CORRUPT)} STRING"])
    return f"from_json({raw}, {literal(schema)}, {OPTIONS})"


def text_sql(raw: str, *, unwrapped: bool) -> str:
    text = f"CAST({raw} AS STRING)"
    return f"concat('{{\"{UNWRAPPED}\":', {text}, '}}')" if unwrapped else text


def with_fractions_as_texts(text: str) -> str:
    """Numbers with a fraction as texts. Spark's own text of one has gone through a double."""
    return f"regexp_replace({text}, {literal(_FRACTION)}, {literal(_AS_TEXT)})"


def leaves(type_: SqlType, seen: frozenset[str]) -> str:
    """The Spark type that a value is parsed as."""
    match type_:
        case Array(element):
            return f"ARRAY<{leaves(element, seen)}>"
        case Map(_, value):
            return f"MAP<STRING,{leaves(value, seen)}>"
        case Struct(fields):
            spelled = spellings([field.name for field in fields], seen)
            parts = (
                f"{quoted(name)}:{leaves(field.type, seen)}"
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
