"""Regular expressions, in Java's syntax. An invalid pattern gives NULL."""

from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction
from holdfast.runtime.functions.spark_sql import attempt_text, let
from holdfast.types import Array, Scalar

CATEGORY = "REGULAR EXPRESSION"
STRING, INTEGER = Scalar.STRING, Scalar.INTEGER


def _extract(arguments: Arguments) -> str:
    pattern, subject, *group = arguments.texts
    found = f"regexp_extract({subject}, {pattern}, {group[0] if group else '0'})"
    return attempt_text(f"CASE WHEN {subject} RLIKE {pattern} THEN {found} END")


def _extract_all(arguments: Arguments) -> str:
    """Matching an empty string with an empty alternative first checks that the pattern is valid and has the group."""
    pattern, subject, *groups = arguments.texts
    group = groups[0] if groups else "0"
    valid = attempt_text(f"regexp_extract('', concat('|', {pattern}), {group})")
    return f"CASE WHEN {valid} IS NOT NULL THEN regexp_extract_all({subject}, {pattern}, {group}) END"


def split_pattern(subject: str, pattern: str) -> str:
    """The parts, including empty ones; if the pattern can match '', without empty parts at the end, as in Java."""
    last = "array_max(transform(parts_, (part_, i_) -> CASE WHEN part_ <> '' THEN i_ + 1 ELSE 0 END))"
    cut = let(f"split({subject}, {pattern}, -1)", lambda parts: f"slice({parts}, 1, {last})", "parts_")
    return (
        f"CASE WHEN {subject} IS NULL THEN NULL WHEN '' NOT RLIKE {pattern} "
        f"THEN split({subject}, {pattern}, -1) WHEN {subject} = '' THEN array('') ELSE {cut} END"
    )


def _split(arguments: Arguments) -> str:
    subject, pattern = arguments.texts
    valid = attempt_text(f"regexp_replace('', {pattern}, '')")
    return f"CASE WHEN {valid} IS NOT NULL THEN {split_pattern(subject, pattern)} END"


FUNCTIONS = (
    ScalarFunction(
        name="REGEXP_EXTRACT",
        arguments=("pattern", "text", "group"),
        doc="Returns the first match of a regular expression, or a capture group of it. NULL if nothing matches; a "
        "group that does not take part in the match is an empty string.",
        forms=tuple(
            ScalarForm(parameters=(STRING, STRING, *more), returns=STRING, spark=_extract, duckdb=None)
            for more in ((), (INTEGER,))
        ),
        examples=(
            Example(call="REGEXP_EXTRACT('[a-z]+[0-9]', 'x-ab7-c8')", gives="'ab7'"),
            Example(call="REGEXP_EXTRACT('(.*) (.*)', 'hello there', 2)", gives="'there'"),
        ),
    ),
    ScalarFunction(
        name="REGEXP_EXTRACT_ALL",
        arguments=("pattern", "text", "group"),
        doc="Returns all matches of a regular expression, or a capture group of each.",
        forms=tuple(
            ScalarForm(parameters=(STRING, STRING, *more), returns=Array(STRING), spark=_extract_all, duckdb=None)
            for more in ((), (INTEGER,))
        ),
        examples=(Example(call="REGEXP_EXTRACT_ALL('a.', 'ab ac ad')", gives="ARRAY['ab', 'ac', 'ad']"),),
    ),
    ScalarFunction(
        name="REGEXP_REPLACE",
        arguments=("text", "pattern", "replacement"),
        doc="Replaces every match of a regular expression. `$1` in the replacement is the first capture group.",
        forms=(
            ScalarForm(
                parameters=(STRING, STRING, STRING),
                returns=STRING,
                spark=lambda a: attempt_text(f"regexp_replace({', '.join(a.texts)})"),
                duckdb=None,
            ),
        ),
        examples=(Example(call="REGEXP_REPLACE('foobar', 'o+', 'a')", gives="'fabar'"),),
    ),
    ScalarFunction(
        name="REGEXP_SPLIT_TO_ARRAY",
        arguments=("text", "pattern"),
        doc="Splits a string at the matches of a regular expression.",
        forms=(ScalarForm(parameters=(STRING, STRING), returns=Array(STRING), spark=_split, duckdb=None),),
        examples=(
            Example(call="REGEXP_SPLIT_TO_ARRAY('a1b22c', '[0-9]+')", gives="ARRAY['a', 'b', 'c']"),
            Example(call="REGEXP_SPLIT_TO_ARRAY('abc', '')", gives="ARRAY['a', 'b', 'c']"),
        ),
    ),
)
