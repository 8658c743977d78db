"""Functions of STRING that look at characters or choose among texts."""

from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction
from holdfast.runtime.functions.sparksql import attempt_text, let, text
from holdfast.types import Scalar

CATEGORY = "STRING"
STRING, BYTES, INTEGER = Scalar.STRING, Scalar.BYTES, Scalar.INTEGER

_WORDS = text(r"[^\s]+\s*")
_ESCAPED = text(r"(?s)(?:\\u++[0-9a-fA-F]{4})++|[^\\]+|\\.?")
_BROKEN = text(r"\\u++(?![0-9a-fA-F]{4})")
_ESCAPE = text(r"\\u+")

# A longer result is NULL: one row could take all memory there is.
MOST_CHARACTERS = 10_000_000


def _from_code(arguments: Arguments) -> str:
    """Half of a surrogate pair is no character: it is written as the question mark that Java writes."""

    def body(code: str) -> str:
        character = f"decode(unhex(lpad(hex({code}), 8, '0')), 'UTF-32')"
        return (
            f"CASE WHEN {code} BETWEEN 55296 AND 57343 THEN '?' WHEN {code} BETWEEN 0 AND 1114111 THEN {character} END"
        )

    return let(arguments.texts[0], body)


def _from_escapes(arguments: Arguments) -> str:
    def body(value: str) -> str:
        character = f"decode(unhex(regexp_replace(piece_, {_ESCAPE}, '')), 'UTF-16BE')"
        piece = f"CASE WHEN piece_ LIKE {text(chr(92) * 2 + 'u%')} THEN {character} ELSE piece_ END"
        joined = attempt_text(
            f"array_join(transform(regexp_extract_all({value}, {_ESCAPED}, 0), piece_ -> {piece}), '')"
        )
        escapes = f"{value} LIKE {text(chr(92) * 2 + 'u%')} AND length({value}) >= 6 AND {value} NOT RLIKE {_BROKEN}"
        return f"CASE WHEN {escapes} THEN {joined} END"

    return let(arguments.texts[0], body)


def _initcap(arguments: Arguments) -> str:
    words = f"regexp_extract_all(lower({arguments.texts[0]}), {_WORDS}, 0)"
    return f"array_join(transform({words}, w_ -> concat(upper(substring(w_, 1, 1)), substring(w_, 2))), '')"


def _pad(name: str) -> ScalarFunction:
    side = "before" if name == "LPAD" else "after"
    function = name.lower()
    # The length itself is NULL where it is wrong: engines compute constants beforehand, whatever CASE says.
    right = f"CASE WHEN {{1}} BETWEEN 0 AND {MOST_CHARACTERS} AND length({{2}}) > 0 THEN {{1}} END"
    sql = f"{function}({{0}}, {right}, {{2}})"

    def form(type_: Scalar, duckdb: str | None) -> ScalarForm:
        return ScalarForm(parameters=(type_, INTEGER, type_), returns=type_, spark=sql, duckdb=duckdb)

    return ScalarFunction(
        name=name,
        arguments=("value", "length", "padding"),
        doc=f"A text or bytes of the given length: cut off, or with the padding repeated {side} it. NULL for a "
        "negative length, for one above ten million and for an empty padding.",
        forms=(form(STRING, sql), form(BYTES, None)),
        examples=(
            Example(call=f"{name}('foo', 7, 'Bar')", gives="'BarBfoo'" if name == "LPAD" else "'fooBarB'"),
            Example(call=f"{name}('foo', 2, 'Bar')", gives="'fo'"),
        ),
    )


def _chosen(a: Arguments) -> str:
    return f"elt({', '.join(a.texts)})" if len(a.texts) > 1 else "CAST(NULL AS STRING)"


def _duckdb_chosen(a: Arguments) -> str:
    number, *choices = a.texts
    return f"CASE WHEN {number} > 0 THEN [{', '.join(choices)}][{number}] END" if choices else "CAST(NULL AS VARCHAR)"


def _place(a: Arguments) -> str:
    wanted, *choices = a.texts
    return f"COALESCE(CAST(array_position(array({', '.join(choices)}), {wanted}) AS INT), 0)" if choices else "0"


def _duckdb_place(a: Arguments) -> str:
    wanted, *choices = a.texts
    if not choices:
        return "0::INTEGER"
    found = f"COALESCE(list_position([{', '.join(choices)}], {wanted}), 0)"
    return f"CASE WHEN {wanted} IS NULL THEN 0 ELSE {found} END::INTEGER"


FUNCTIONS = (
    ScalarFunction(
        name="CHR",
        arguments=("code",),
        doc="The character with a Unicode code point, given as a number or as a text of escapes such as \\u004b.",
        forms=(
            ScalarForm(parameters=(INTEGER,), returns=STRING, spark=_from_code, duckdb=None),
            ScalarForm(parameters=(STRING,), returns=STRING, spark=_from_escapes, duckdb=None),
        ),
        examples=(Example(call="CHR(75)", gives="'K'"), Example(call=r"CHR('\u597d')", gives="'好'")),
    ),
    ScalarFunction(
        name="INITCAP",
        arguments=("text",),
        doc="The text with the first letter of each word in upper case and the others in lower case; blanks before the "
        "first word are left out.",
        forms=(ScalarForm(parameters=(STRING,), returns=STRING, spark=_initcap, duckdb=None),),
        examples=(Example(call="INITCAP('the Quick br0wn fOx')", gives="'The Quick Br0wn Fox'"),),
    ),
    _pad("LPAD"),
    _pad("RPAD"),
    ScalarFunction(
        name="ELT",
        arguments=("number", "text"),
        doc="The text with that number, counted from 1; NULL when there is none.",
        forms=(
            ScalarForm(
                parameters=(INTEGER, STRING),
                returns=STRING,
                variadic=True,
                optional=True,
                spark=_chosen,
                duckdb=_duckdb_chosen,
            ),
        ),
        examples=(Example(call="ELT(2, 'a', 'b', 'c')", gives="'b'"),),
    ),
    ScalarFunction(
        name="FIELD",
        arguments=("wanted", "text"),
        doc="The number of the first text that equals the wanted one, counted from 1; 0 when none does.",
        forms=(
            ScalarForm(
                parameters=(STRING, STRING),
                returns=INTEGER,
                variadic=True,
                optional=True,
                spark=_place,
                duckdb=_duckdb_place,
            ),
        ),
        examples=(Example(call="FIELD('b', 'a', 'b')", gives="2"),),
    ),
)
