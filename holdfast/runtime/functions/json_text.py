"""JSON text in Spark SQL.

Spark parses numbers as DOUBLEs, formats them in its own way, and does not distinguish null from a missing name. So
numbers and nulls are turned into strings with a mark in front, and strings get another mark; the marks are code points
that no valid text contains. After Spark has parsed the JSON, `value_text` and `restored` remove them.
"""

from holdfast.runtime.expressions.casts import cast
from holdfast.runtime.expressions.physical import Dialect, field_name
from holdfast.runtime.functions.spark_sql import let, text
from holdfast.types import Array, Decimal, Map, Scalar, SqlType, Struct

_STRING, _BARE, _EDGE = "\ufdd0", "\ufdd1", "\ufdd2"

# Possessive, so that Java's matcher does not recurse for every character.
_CHARACTERS = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
_ANY_STRING = text(f'"({_CHARACTERS})"')
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![-+.0-9eE])"
_STRING_OR_BARE = text(rf'("{_CHARACTERS}")|({_NUMBER}|null)')
_MARKED_BARE = text(f"{_EDGE}([^{_EDGE}]*){_EDGE}")
_QUOTED_BARE = text(f'"{_BARE}([^"]*)"')
_SINGLE_QUOTE = text("'")
# What Spark may format differently or drop.
_NEEDS_MARKS = text(r"null|[0-9][.eE]")


def marked(json: str) -> str:
    return bare_marked(f"regexp_replace({json}, {_ANY_STRING}, {text(f'{chr(34)}{_STRING}$1{chr(34)}')})")


def bare_marked(json: str) -> str:
    """Marks numbers and nulls only; names stay unchanged."""
    edged = f"regexp_replace({json}, {_STRING_OR_BARE}, {text(f'$1{_EDGE}$2{_EDGE}')})"
    bare = f"replace({edged}, {text(_EDGE * 2)}, '')"
    return f"regexp_replace({bare}, {_MARKED_BARE}, {text(f'{chr(34)}{_BARE}$1{chr(34)}')})"


def marked_if_needed(json: str) -> str:
    return f"CASE WHEN {json} RLIKE {_NEEDS_MARKS} THEN {bare_marked(json)} ELSE {json} END"


def single_quoted(json: str) -> str:
    """Whether there are single quotes outside strings, which Spark would also accept as string delimiters."""
    outside = f"regexp_replace({json}, {_ANY_STRING}, '')"
    return f"(contains({json}, {_SINGLE_QUOTE}) AND contains({outside}, {_SINGLE_QUOTE}))"


def strict(json: str) -> str:
    """The text, or NULL if it is invalid JSON that Spark would accept."""
    return f"CASE WHEN NOT {single_quoted(json)} THEN {json} END"


def restored(json: str) -> str:
    """The JSON without the marks."""
    return f"replace(regexp_replace({json}, {_QUOTED_BARE}, {text('$1')}), {text(_STRING)}, '')"


def _has_mark(value: str, *marks: str) -> str:
    return f"substring({value}, 1, 1) IN ({', '.join(map(text, marks))})"


def value_text(value: str) -> str:
    """A value that Spark extracted: a string without its quotes, anything else as JSON."""
    return f"CASE WHEN {_has_mark(value, _STRING, _BARE)} THEN substring({value}, 2) ELSE {restored(value)} END"


def value_json(value: str) -> str:
    """A value that Spark extracted, as JSON."""
    string = json_string(f"substring({value}, 2)")
    return (
        f"CASE WHEN {_has_mark(value, _STRING)} THEN {string} WHEN {_has_mark(value, _BARE)} THEN substring({value}, 2)"
        f" ELSE {restored(value)} END"
    )


def json_string(sql: str) -> str:
    """A non-NULL STRING, quoted and escaped."""
    return let(f"to_json(named_struct('v', {sql}))", lambda t: f"substring({t}, 6, length({t}) - 6)", "json_")


def json_of(sql: str, type_: SqlType, depth: int = 0) -> str:
    """A value of any type as JSON: dates and times as strings, BYTES in base64, names of structs and maps sorted."""
    return f"COALESCE({_json(sql, type_, depth)}, 'null')"


def _json(sql: str, type_: SqlType, depth: int) -> str:
    name = f"j{depth}_"
    match type_:
        case Scalar.BOOLEAN | Scalar.INTEGER | Scalar.BIGINT | Decimal():
            return cast(sql, type_, Scalar.STRING, Dialect.SPARK)
        case Scalar.DOUBLE:
            return f"substring(to_json(array({sql})), 2, length(to_json(array({sql}))) - 2)"
        case Scalar.STRING:
            return f"CASE WHEN {sql} IS NOT NULL THEN {json_string(sql)} END"
        case Scalar.BYTES:
            return f"concat('\"', replace(base64({sql}), {text(chr(13) + chr(10))}, ''), '\"')"
        case Scalar.DATE | Scalar.TIME | Scalar.TIMESTAMP:
            return f"concat('\"', {cast(sql, type_, Scalar.STRING, Dialect.SPARK)}, '\"')"
        case Array(element):
            return f"concat('[', array_join(transform({sql}, {name} -> {json_of(name, element, depth + 1)}), ','), ']')"
        case Map(key, value):
            keys = f"array_sort(map_keys({sql}))"
            key_json = json_string(cast(name, key, Scalar.STRING, Dialect.SPARK))
            entry = f"concat({key_json}, ':', {json_of(f'{sql}[{name}]', value, depth + 1)})"
            return f"concat('{{', array_join(transform({keys}, {name} -> {entry}), ','), '}}')"
        case Struct(fields):
            parts = []
            for index, field in sorted(enumerate(fields), key=lambda pair: pair[1].name):
                member = json_of(f"({sql}).{field_name(index)}", field.type, depth + 1)
                parts.append(f"{json_string(text(field.name))}, ':', {member}")
            inside = ", ',', ".join(parts) or "''"
            return f"CASE WHEN {sql} IS NOT NULL THEN concat('{{', {inside}, '}}') END"
        case _:
            raise AssertionError(type_)
