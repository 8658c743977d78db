"""Functions of STRING and BYTES. Positions and lengths count Unicode characters, from 1."""

from holdfast.runtime.expressions.physical import Dialect, string_literal
from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction
from holdfast.types import Scalar

CATEGORY = "STRING"
STRING, BYTES, INTEGER = Scalar.STRING, Scalar.BYTES, Scalar.INTEGER

_CHARACTER = string_literal("(?s).", Dialect.SPARK)

# What Java's String.trim takes away.
BLANKS = "".join(map(chr, range(0x21)))


def trimmed(text: str, dialect: Dialect) -> str:
    blanks = string_literal(BLANKS, dialect)
    return f"trim(BOTH {blanks} FROM {text})" if dialect is Dialect.SPARK else f"trim({text}, {blanks})"


def _start(arguments: Arguments, length: str) -> str:
    """A negative position counts from the end; one outside the text is moved to its edge; NULL stays NULL."""
    constant = arguments.constants[1]
    if isinstance(constant, int) and constant >= 0:
        return str(max(constant, 1))
    text, position = arguments.texts[:2]
    size = f"{length}({text})"
    return (
        f"CASE WHEN {position} > 0 THEN {position} WHEN {position} = 0 OR {size} + {position} < 0 THEN 1"
        f" WHEN {position} IS NULL THEN NULL ELSE {size} + {position} + 1 END"
    )


def _count(arguments: Arguments) -> str:
    constant, text = arguments.constants[2], arguments.texts[2]
    return str(max(constant, 0)) if isinstance(constant, int) else f"CASE WHEN {text} < 0 THEN 0 ELSE {text} END"


def _substring(arguments: Arguments) -> str:
    parts = [
        arguments.texts[0],
        _start(arguments, "length"),
        *([_count(arguments)] if len(arguments.texts) > 2 else []),
    ]
    return f"substring({', '.join(parts)})"


def _duckdb_subbytes(arguments: Arguments) -> str:
    """DuckDB cuts no BLOBs, but their hexadecimal text."""
    start = f"2 * ({_start(arguments, 'octet_length')})::BIGINT - 1"
    count = f", 2 * ({_count(arguments)})::BIGINT" if len(arguments.texts) > 2 else ""
    return f"unhex(substring(hex({arguments.texts[0]}), {start}{count}))"


# All places where {1} occurs in {0}, in order, overlapping ones too.
_SPARK_PLACES = (
    "filter(sequence(1, greatest(length({0}) - length({1}) + 1, 1)), i -> substring({0}, i, length({1})) = {1})"
)
_DUCK_PLACES = (
    "list_filter(range(1, greatest(length({0}) - length({1}) + 2, 2)), lambda i: substring({0}, i, length({1})) = {1})"
)
# What is found backward ends at the place where the search begins, or before it.
_ENDS = "p + length({1}) <= length({0}) + {2} + 2"


def _spark_nth(occurrence: str) -> str:
    forward = f"get(filter({_SPARK_PLACES}, p -> p >= {{2}}), {occurrence} - 1)"
    backward = f"get(reverse(filter({_SPARK_PLACES}, p -> {_ENDS})), {occurrence} - 1)"
    return _nth(forward, backward)


def _duck_nth(occurrence: str) -> str:
    # A negative number would count from the end.
    place = f"CASE WHEN {occurrence} > 0 THEN {occurrence} END"
    forward = f"list_extract(list_filter({_DUCK_PLACES}, lambda p: p >= {{2}}), {place})"
    backward = f"list_extract(list_reverse(list_filter({_DUCK_PLACES}, lambda p: {_ENDS})), {place})"
    return f"CAST({_nth(forward, backward)} AS INTEGER)"


def _nth(forward: str, backward: str) -> str:
    found = f"CASE WHEN {{2}} > 0 THEN {forward} WHEN {{2}} < 0 THEN {backward} END"
    return f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL THEN 0 WHEN {{2}} IS NULL THEN NULL ELSE COALESCE({found}, 0) END"


def _spark_replace(a: Arguments) -> str:
    """As in Java, nothing is found before every character and at the end."""
    subject, wanted, new = a.texts
    characters = f"transform(regexp_extract_all({subject}, {_CHARACTER}, 0), c_ -> concat(c_, {new}))"
    between = f"concat({new}, array_join({characters}, ''))"
    return f"CASE WHEN {wanted} = '' THEN {between} ELSE replace({subject}, {wanted}, {new}) END"


def _duckdb_replace(a: Arguments) -> str:
    subject, wanted, new = a.texts
    characters = f"list_transform(string_split({subject}, ''), lambda c: c || {new})"
    between = f"CASE WHEN {subject} = '' THEN {new} ELSE {new} || array_to_string({characters}, '') END"
    return f"CASE WHEN {wanted} = '' THEN {between} ELSE replace({subject}, {wanted}, {new}) END"


FUNCTIONS = (
    ScalarFunction(
        name="UCASE",
        doc="The text in upper case.",
        forms=(ScalarForm(parameters=(STRING,), returns=STRING, spark="upper({0})", duckdb=None),),
        examples=(Example(call="UCASE('hello')", gives="'HELLO'"),),
    ),
    ScalarFunction(
        name="LCASE",
        doc="The text in lower case.",
        forms=(ScalarForm(parameters=(STRING,), returns=STRING, spark="lower({0})", duckdb=None),),
        examples=(Example(call="LCASE('Hello')", gives="'hello'"),),
    ),
    ScalarFunction(
        name="LEN",
        doc="How many characters a text has, or how many bytes.",
        forms=(
            ScalarForm(
                parameters=(STRING,), returns=INTEGER, spark="length({0})", duckdb="CAST(length({0}) AS INTEGER)"
            ),
            ScalarForm(
                parameters=(BYTES,), returns=INTEGER, spark="length({0})", duckdb="CAST(octet_length({0}) AS INTEGER)"
            ),
        ),
        examples=(Example(call="LEN('hello')", gives="5"),),
    ),
    ScalarFunction(
        name="TRIM",
        doc="The text without blanks and control characters at both ends.",
        forms=(
            ScalarForm(
                parameters=(STRING,),
                returns=STRING,
                spark=lambda a: trimmed(a.texts[0], Dialect.SPARK),
                duckdb=lambda a: trimmed(a.texts[0], Dialect.DUCKDB),
            ),
        ),
        examples=(Example(call="TRIM('  a b ')", gives="'a b'"),),
    ),
    ScalarFunction(
        name="SUBSTRING",
        doc="The part of a text or of bytes that begins at a position, to the end or of a length. Positions count "
        "from 1; negative ones from the end.",
        forms=(
            ScalarForm(parameters=(STRING, INTEGER), returns=STRING, spark=_substring, duckdb=_substring),
            ScalarForm(parameters=(STRING, INTEGER, INTEGER), returns=STRING, spark=_substring, duckdb=_substring),
            ScalarForm(parameters=(BYTES, INTEGER), returns=BYTES, spark=_substring, duckdb=_duckdb_subbytes),
            ScalarForm(parameters=(BYTES, INTEGER, INTEGER), returns=BYTES, spark=_substring, duckdb=_duckdb_subbytes),
        ),
        examples=(
            Example(call="SUBSTRING('stream', 2, 3)", gives="'tre'"),
            Example(call="SUBSTRING('stream', -3)", gives="'eam'"),
        ),
    ),
    ScalarFunction(
        name="CONCAT",
        doc="The texts or bytes one after another; NULLs are left out.",
        forms=(
            ScalarForm(
                parameters=(STRING,),
                returns=STRING,
                variadic=True,
                spark="concat_ws('', {all})",
                duckdb="concat({all})",
            ),
            ScalarForm(
                parameters=(BYTES,),
                returns=BYTES,
                variadic=True,
                spark=lambda a: f"concat({', '.join(f'COALESCE({t}, X{chr(39) * 2})' for t in a.texts)})",
                duckdb=lambda a: "(" + " || ".join(f"COALESCE({t}, ''::BLOB)" for t in a.texts) + ")",
            ),
        ),
        examples=(Example(call="CONCAT('a', NULL, 'b')", gives="'ab'"),),
    ),
    ScalarFunction(
        name="REPLACE",
        arguments=("text", "wanted", "new"),
        doc="The text with every occurrence of the wanted text replaced by the new one; an empty text occurs before "
        "every character and at the end.",
        forms=(
            ScalarForm(
                parameters=(STRING, STRING, STRING), returns=STRING, spark=_spark_replace, duckdb=_duckdb_replace
            ),
        ),
        examples=(
            Example(call="REPLACE('banana', 'an', 'o')", gives="'booa'"),
            Example(call="REPLACE('ab', '', '-')", gives="'-a-b-'"),
        ),
    ),
    ScalarFunction(
        name="INSTR",
        doc="Where the second text occurs in the first, 0 when it does not; from a position on (a negative one "
        "counts from the end and looks backward), and which occurrence.",
        forms=(
            ScalarForm(
                parameters=(STRING, STRING),
                returns=INTEGER,
                spark="COALESCE(instr({0}, {1}), 0)",
                duckdb="CAST(COALESCE(instr({0}, {1}), 0) AS INTEGER)",
            ),
            ScalarForm(
                parameters=(STRING, STRING, INTEGER), returns=INTEGER, spark=_spark_nth("1"), duckdb=_duck_nth("1")
            ),
            ScalarForm(
                parameters=(STRING, STRING, INTEGER, INTEGER),
                returns=INTEGER,
                spark=_spark_nth("{3}"),
                duckdb=_duck_nth("{3}"),
            ),
        ),
        examples=(
            Example(call="INSTR('corporate floor', 'or')", gives="2"),
            Example(call="INSTR('corporate floor', 'or', -4)", gives="5"),
        ),
    ),
)
