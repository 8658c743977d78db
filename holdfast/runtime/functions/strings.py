"""STRING and BYTES functions. Positions and lengths count Unicode characters, from 1."""

from holdfast.runtime.expressions.java import trimmed
from holdfast.runtime.expressions.physical import Dialect, string_literal
from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction
from holdfast.types import Scalar

CATEGORY = "STRING"
STRING, BYTES, INTEGER = Scalar.STRING, Scalar.BYTES, Scalar.INTEGER

_CHARACTER = string_literal("(?s).", Dialect.SPARK)


def _start(arguments: Arguments, length: str) -> str:
    """A negative position counts from the end; one outside the text moves to its edge; NULL stays NULL."""
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
    """DuckDB has no substring of BLOBs, so this takes one of the hexadecimal text."""
    start = f"2 * ({_start(arguments, 'octet_length')})::BIGINT - 1"
    count = f", 2 * ({_count(arguments)})::BIGINT" if len(arguments.texts) > 2 else ""
    return f"unhex(substring(hex({arguments.texts[0]}), {start}{count}))"


# All positions of {1} in {0}, in order, including overlapping ones.
_SPARK_POSITIONS = (
    "filter(sequence(1, greatest(length({0}) - length({1}) + 1, 1)), i -> substring({0}, i, length({1})) = {1})"
)
_DUCKDB_POSITIONS = (
    "list_filter(range(1, greatest(length({0}) - length({1}) + 2, 2)), lambda i: substring({0}, i, length({1})) = {1})"
)
# A backward match ends at the position where the search begins, or before it.
_ENDS = "p + length({1}) <= length({0}) + {2} + 2"


def _spark_nth(occurrence: str) -> str:
    forward = f"get(filter({_SPARK_POSITIONS}, p -> p >= {{2}}), {occurrence} - 1)"
    backward = f"get(reverse(filter({_SPARK_POSITIONS}, p -> {_ENDS})), {occurrence} - 1)"
    return _nth(forward, backward)


def _duckdb_nth(occurrence: str) -> str:
    # `list_extract` counts negative indexes from the end.
    index = f"CASE WHEN {occurrence} > 0 THEN {occurrence} END"
    forward = f"list_extract(list_filter({_DUCKDB_POSITIONS}, lambda p: p >= {{2}}), {index})"
    backward = f"list_extract(list_reverse(list_filter({_DUCKDB_POSITIONS}, lambda p: {_ENDS})), {index})"
    return f"CAST({_nth(forward, backward)} AS INTEGER)"


def _nth(forward: str, backward: str) -> str:
    found = f"CASE WHEN {{2}} > 0 THEN {forward} WHEN {{2}} < 0 THEN {backward} END"
    return f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL THEN 0 WHEN {{2}} IS NULL THEN NULL ELSE COALESCE({found}, 0) END"


def _spark_replace(a: Arguments) -> str:
    """As in Java, an empty string matches before every character and at the end."""
    subject, old, new = a.texts
    characters = f"transform(regexp_extract_all({subject}, {_CHARACTER}, 0), c_ -> concat(c_, {new}))"
    between = f"concat({new}, array_join({characters}, ''))"
    return f"CASE WHEN {old} = '' THEN {between} ELSE replace({subject}, {old}, {new}) END"


def _duckdb_replace(a: Arguments) -> str:
    subject, old, new = a.texts
    characters = f"list_transform(string_split({subject}, ''), lambda c: c || {new})"
    between = f"CASE WHEN {subject} = '' THEN {new} ELSE {new} || array_to_string({characters}, '') END"
    return f"CASE WHEN {old} = '' THEN {between} ELSE replace({subject}, {old}, {new}) END"


FUNCTIONS = (
    ScalarFunction(
        name="UCASE",
        doc="Converts a string to upper case.",
        forms=(ScalarForm(parameters=(STRING,), returns=STRING, spark="upper({0})", duckdb=None),),
        examples=(Example(call="UCASE('hello')", gives="'HELLO'"),),
    ),
    ScalarFunction(
        name="LCASE",
        doc="Converts a string to lower case.",
        forms=(ScalarForm(parameters=(STRING,), returns=STRING, spark="lower({0})", duckdb=None),),
        examples=(Example(call="LCASE('Hello')", gives="'hello'"),),
    ),
    ScalarFunction(
        name="LEN",
        doc="Returns the number of characters in a string, or the number of bytes in a BYTES value.",
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
        doc="Removes whitespace and control characters from both ends of a string.",
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
        doc="Returns the part of a string or BYTES value that starts at a position and has the given length, or "
        "runs to the end. Positions start at 1; a negative position counts from the end.",
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
        doc="Concatenates strings or BYTES values. NULL arguments are ignored.",
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
        arguments=("text", "old", "new"),
        doc="Replaces every occurrence of a substring. An empty substring matches before every character and at "
        "the end.",
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
        doc="Returns the position of a substring, or 0 if it does not occur. The search starts at the given "
        "position (a negative one counts from the end and searches backward) and returns the given occurrence.",
        forms=(
            ScalarForm(
                parameters=(STRING, STRING),
                returns=INTEGER,
                spark="COALESCE(instr({0}, {1}), 0)",
                duckdb="CAST(COALESCE(instr({0}, {1}), 0) AS INTEGER)",
            ),
            ScalarForm(
                parameters=(STRING, STRING, INTEGER), returns=INTEGER, spark=_spark_nth("1"), duckdb=_duckdb_nth("1")
            ),
            ScalarForm(
                parameters=(STRING, STRING, INTEGER, INTEGER),
                returns=INTEGER,
                spark=_spark_nth("{3}"),
                duckdb=_duckdb_nth("{3}"),
            ),
        ),
        examples=(
            Example(call="INSTR('corporate floor', 'or')", gives="2"),
            Example(call="INSTR('corporate floor', 'or', -4)", gives="5"),
        ),
    ),
)
