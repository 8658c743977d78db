"""Functions that split and join strings and bytes."""

from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction
from holdfast.runtime.functions.spark_sql import latin, let, literal_pattern, text, unlatin
from holdfast.types import Array, Map, Scalar

CATEGORY = "STRING"
STRING, BYTES = Scalar.STRING, Scalar.BYTES

_CHARACTER = text("(?s).")


def split_literal(subject: str, delimiter: str) -> str:
    """The parts of a string between delimiters; an empty delimiter splits it into characters."""
    characters = f"CASE WHEN {subject} = '' THEN array('') ELSE regexp_extract_all({subject}, {_CHARACTER}, 0) END"
    parts = f"split({subject}, {literal_pattern(delimiter)}, -1)"
    return (
        f"CASE WHEN {subject} IS NULL OR {delimiter} IS NULL THEN NULL"
        f" WHEN {delimiter} = '' THEN {characters} ELSE {parts} END"
    )


def _split(arguments: Arguments) -> str:
    return let(arguments.texts[0], lambda subject: split_literal(subject, arguments.texts[1]))


def _split_bytes(arguments: Arguments) -> str:
    subject, delimiter = map(latin, arguments.texts)
    parts = let(subject, lambda value: let(delimiter, lambda mark: split_literal(value, mark), "mark_"))
    return f"transform({parts}, part_ -> {unlatin('part_')})"


def _split_to_map(arguments: Arguments) -> str:
    subject, entry, pair = arguments.texts
    entries = f"filter(split({subject}, {literal_pattern(entry)}, -1), e_ -> contains(e_, {pair}))"
    both = let(f"split(e_, {literal_pattern(pair)}, -1)", lambda parts: f"struct({parts}[0], {parts}[1])", "kv_")
    return (
        f"CASE WHEN {entry} <> '' AND {pair} <> '' AND {entry} <> {pair}"
        f" THEN map_from_entries(transform({entries}, e_ -> {both})) END"
    )


def _join_bytes(arguments: Arguments) -> str:
    separator, *parts = arguments.texts
    if not parts:
        return f"CASE WHEN {separator} IS NOT NULL THEN X'' END"
    present = f"filter(array({', '.join(parts)}), x_ -> x_ IS NOT NULL)"
    joined = (
        f"aggregate({present}, CAST(NULL AS BINARY), (all_, x_) -> CASE WHEN all_ IS NULL THEN x_"
        f" ELSE concat(all_, {separator}, x_) END, all_ -> COALESCE(all_, X''))"
    )
    return f"CASE WHEN {separator} IS NOT NULL THEN {joined} END"


FUNCTIONS = (
    ScalarFunction(
        name="CONCAT_WS",
        arguments=("separator", "part"),
        doc="Concatenates strings or BYTES values with a separator between them. NULL values are ignored; a NULL "
        "separator returns NULL.",
        forms=(
            ScalarForm(
                parameters=(STRING, STRING),
                returns=STRING,
                variadic=True,
                optional=True,
                spark="concat_ws({all})",
                duckdb=lambda a: f"concat_ws({', '.join((*a.texts, 'NULL'))})",
            ),
            ScalarForm(
                parameters=(BYTES, BYTES),
                returns=BYTES,
                variadic=True,
                optional=True,
                spark=_join_bytes,
                duckdb=None,
            ),
        ),
        examples=(Example(call="CONCAT_WS(', ', 'a', NULL, 'b')", gives="'a, b'"),),
    ),
    ScalarFunction(
        name="SPLIT",
        arguments=("value", "delimiter"),
        doc="Splits a string or BYTES value at a delimiter. An empty delimiter splits it into single characters or "
        "bytes.",
        forms=(
            ScalarForm(parameters=(STRING, STRING), returns=Array(STRING), spark=_split, duckdb=None),
            ScalarForm(parameters=(BYTES, BYTES), returns=Array(BYTES), spark=_split_bytes, duckdb=None),
        ),
        examples=(
            Example(call="SPLIT('a.b..c', '.')", gives="ARRAY['a', 'b', '', 'c']"),
            Example(call="SPLIT('', '.')", gives="ARRAY['']"),
        ),
    ),
    ScalarFunction(
        name="SPLIT_TO_MAP",
        arguments=("text", "entry delimiter", "value delimiter"),
        doc="Splits a string into the entries of a map. If a key occurs more than once, the last entry is used; "
        "entries without the value delimiter are ignored. NULL if a delimiter is empty or both are the same.",
        forms=(
            ScalarForm(
                parameters=(STRING, STRING, STRING), returns=Map(STRING, STRING), spark=_split_to_map, duckdb=None
            ),
        ),
        examples=(Example(call="SPLIT_TO_MAP('a:1;b:2;a:3', ';', ':')", gives="MAP('a' := '3', 'b' := '2')"),),
    ),
)
