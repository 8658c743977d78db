"""STRING functions that work on characters or choose among strings."""

from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction
from holdfast.runtime.functions.spark_sql import attempt_text, let, text
from holdfast.types import Scalar

CATEGORY = "STRING"
STRING, BYTES, INTEGER = Scalar.STRING, Scalar.BYTES, Scalar.INTEGER

_WORDS = text(r"[^\s]+\s*")
_ESCAPED = text(r"(?s)(?:\\u++[0-9a-fA-F]{4})++|[^\\]+|\\.?")
_BROKEN = text(r"\\u++(?![0-9a-fA-F]{4})")
_ESCAPE = text(r"\\u+")

# A longer result is NULL: otherwise a single row could exhaust the memory.
MAX_CHARACTERS = 10_000_000


def _from_code(arguments: Arguments) -> str:
    """Half of a surrogate pair is not a character; it becomes a question mark, as in Java."""

    def body(code: str) -> str:
        character = f"decode(unhex(lpad(hex({code}), 8, '0')), 'UTF-32')"
        return (
            f"CASE WHEN {code} BETWEEN 55296 AND 57343 THEN '?' WHEN {code} BETWEEN 0 AND 1114111 THEN {character} END"
        )

    return let(arguments.texts[0], body)


def _from_escapes(arguments: Arguments) -> str:
    def body(value: str) -> str:
        character = f"decode(unhex(regexp_replace(part_, {_ESCAPE}, '')), 'UTF-16BE')"
        unescaped = f"CASE WHEN part_ LIKE {text(chr(92) * 2 + 'u%')} THEN {character} ELSE part_ END"
        joined = attempt_text(
            f"array_join(transform(regexp_extract_all({value}, {_ESCAPED}, 0), part_ -> {unescaped}), '')"
        )
        escapes = f"{value} LIKE {text(chr(92) * 2 + 'u%')} AND length({value}) >= 6 AND {value} NOT RLIKE {_BROKEN}"
        return f"CASE WHEN {escapes} THEN {joined} END"

    return let(arguments.texts[0], body)


def _initcap(arguments: Arguments) -> str:
    words = f"regexp_extract_all(lower({arguments.texts[0]}), {_WORDS}, 0)"
    return f"array_join(transform({words}, w_ -> concat(upper(substring(w_, 1, 1)), substring(w_, 2))), '')"


def _pad(name: str) -> ScalarFunction:
    side = "on the left" if name == "LPAD" else "on the right"
    function = name.lower()
    # An invalid length must itself become NULL: engines fold constants before they evaluate CASE.
    length = f"CASE WHEN {{1}} BETWEEN 0 AND {MAX_CHARACTERS} AND length({{2}}) > 0 THEN {{1}} END"
    sql = f"{function}({{0}}, {length}, {{2}})"

    def form(type_: Scalar, duckdb: str | None) -> ScalarForm:
        return ScalarForm(parameters=(type_, INTEGER, type_), returns=type_, spark=sql, duckdb=duckdb)

    return ScalarFunction(
        name=name,
        arguments=("value", "length", "padding"),
        doc=f"Pads a string or BYTES value {side} to the given length by repeating the padding; a longer value is "
        "truncated. NULL for an empty padding, and for a length that is negative or above ten million.",
        forms=(form(STRING, sql), form(BYTES, None)),
        examples=(
            Example(call=f"{name}('foo', 7, 'Bar')", gives="'BarBfoo'" if name == "LPAD" else "'fooBarB'"),
            Example(call=f"{name}('foo', 2, 'Bar')", gives="'fo'"),
        ),
    )


def _elt(a: Arguments) -> str:
    return f"elt({', '.join(a.texts)})" if len(a.texts) > 1 else "CAST(NULL AS STRING)"


def _duckdb_elt(a: Arguments) -> str:
    number, *choices = a.texts
    return f"CASE WHEN {number} > 0 THEN [{', '.join(choices)}][{number}] END" if choices else "CAST(NULL AS VARCHAR)"


def _position(a: Arguments) -> str:
    value, *choices = a.texts
    return f"COALESCE(CAST(array_position(array({', '.join(choices)}), {value}) AS INT), 0)" if choices else "0"


def _duckdb_position(a: Arguments) -> str:
    value, *choices = a.texts
    if not choices:
        return "0::INTEGER"
    found = f"COALESCE(list_position([{', '.join(choices)}], {value}), 0)"
    return f"CASE WHEN {value} IS NULL THEN 0 ELSE {found} END::INTEGER"


FUNCTIONS = (
    ScalarFunction(
        name="CHR",
        arguments=("code",),
        doc="Returns the character for a Unicode code point, which is a number or a string of escapes such as \\u004b.",
        forms=(
            ScalarForm(parameters=(INTEGER,), returns=STRING, spark=_from_code, duckdb=None),
            ScalarForm(parameters=(STRING,), returns=STRING, spark=_from_escapes, duckdb=None),
        ),
        examples=(Example(call="CHR(75)", gives="'K'"), Example(call=r"CHR('\u597d')", gives="'好'")),
    ),
    ScalarFunction(
        name="INITCAP",
        arguments=("text",),
        doc="Converts the first letter of each word to upper case and all others to lower case. Leading whitespace "
        "is removed.",
        forms=(ScalarForm(parameters=(STRING,), returns=STRING, spark=_initcap, duckdb=None),),
        examples=(Example(call="INITCAP('the Quick br0wn fOx')", gives="'The Quick Br0wn Fox'"),),
    ),
    _pad("LPAD"),
    _pad("RPAD"),
    ScalarFunction(
        name="ELT",
        arguments=("number", "text"),
        doc="Returns the string at a position in the list of arguments, starting at 1. NULL if there is no such "
        "position.",
        forms=(
            ScalarForm(
                parameters=(INTEGER, STRING),
                returns=STRING,
                variadic=True,
                optional=True,
                spark=_elt,
                duckdb=_duckdb_elt,
            ),
        ),
        examples=(Example(call="ELT(2, 'a', 'b', 'c')", gives="'b'"),),
    ),
    ScalarFunction(
        name="FIELD",
        arguments=("value", "text"),
        doc="Returns the position of a string in the list of arguments that follow it, starting at 1. Returns 0 if "
        "it is not in the list.",
        forms=(
            ScalarForm(
                parameters=(STRING, STRING),
                returns=INTEGER,
                variadic=True,
                optional=True,
                spark=_position,
                duckdb=_duckdb_position,
            ),
        ),
        examples=(Example(call="FIELD('b', 'a', 'b')", gives="2"),),
    ),
)
