"""Formatting and parsing of dates and times."""

from collections.abc import Callable

from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction, Template
from holdfast.runtime.functions.patterns import (
    DATE_LETTERS,
    DAY,
    HOUR_LETTERS,
    NOT_FORMATTED,
    NOT_PARSED,
    TIME_LETTERS,
    date_of,
    formatted,
    formatted_in,
    formatting_refusal,
    has_letters,
    milliseconds,
    moment_of,
    parsed,
    parsing_refusal,
    unless,
)
from holdfast.runtime.functions.spark_sql import let
from holdfast.types import Scalar

CATEGORY = "DATE / TIME"
STRING, INTEGER, BIGINT = Scalar.STRING, Scalar.INTEGER, Scalar.BIGINT
DATE, TIME, TIMESTAMP = Scalar.DATE, Scalar.TIME, Scalar.TIMESTAMP

_PATTERN = "The pattern has the syntax of Java's DateTimeFormatter. NULL if the pattern or the value is invalid."
_INVALID_DAY = "A day past the end of the month is invalid."


def _format_date(date: Callable[[str], str]) -> Template:
    def write(a: Arguments) -> str:
        return unless(has_letters(a, 1, TIME_LETTERS), formatted(date(a.texts[0]), a, 1))

    return write


def _format_time(a: Arguments) -> str:
    moment = f"timestamp_millis(CAST({a.texts[0]} AS BIGINT))"
    return unless(has_letters(a, 1, DATE_LETTERS), formatted(moment, a, 1))


def _format_moment(moment: Callable[[str], str], zone: str) -> Template:
    def write(a: Arguments) -> str:
        return formatted_in(moment(a.texts[0]), a, 1, 2 if len(a.texts) > 2 else zone)

    return write


def _parse_date(days: bool) -> Template:
    """NULL unless the parsed timestamp is midnight."""

    def write(a: Arguments) -> str:
        def body(millis: str) -> str:
            number = f"CAST({millis} div {DAY} AS INT)"
            return f"CASE WHEN {millis} % {DAY} = 0 THEN {number if days else date_of(number)} END"

        return let(f"unix_millis({parsed(a, 1)})", body, "at_")

    return write


def _parse_time(a: Arguments) -> str:
    hours = has_letters(a, 1, HOUR_LETTERS)
    no_hours = f"NOT ({hours})" if isinstance(hours, str) else not hours
    time = f"CAST(pmod(unix_millis({parsed(a, 1)}), {DAY}) AS INT)"
    return unless(
        no_hours if isinstance(no_hours, bool) else f"({no_hours})", unless(has_letters(a, 1, DATE_LETTERS), time)
    )


def _parse_moment(result: Callable[[str], str]) -> Template:
    def write(a: Arguments) -> str:
        return result(parsed(a, 1, 2 if len(a.texts) > 2 else None))

    return write


def _identity(sql: str) -> str:
    return sql


def _function(
    name: str, doc: str, source: Scalar, returns: Scalar, template: Template, *examples: Example, zoned: bool = False
) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        arguments=("value", "pattern", "zone"),
        doc=f"{doc} {_PATTERN} {f'{NOT_PARSED} {_INVALID_DAY}' if source is STRING else NOT_FORMATTED}",
        check=parsing_refusal if source is STRING else formatting_refusal,
        forms=tuple(
            ScalarForm(parameters=(source, STRING, *zone), returns=returns, spark=template, duckdb=None)
            for zone in (((), (STRING,)) if zoned else ((),))
        ),
        examples=examples,
    )


FUNCTIONS = (
    _function(
        "FORMAT_DATE",
        "Formats a DATE as a string.",
        DATE,
        STRING,
        _format_date(_identity),
        Example(call="FORMAT_DATE(DATE '2022-01-31', 'dd MMM yyyy')", gives="'31 Jan 2022'"),
    ),
    _function(
        "FORMAT_TIME",
        "Formats a TIME as a string.",
        TIME,
        STRING,
        _format_time,
        Example(call="FORMAT_TIME(TIME '13:05:09', 'hh:mm a')", gives="'01:05 PM'"),
    ),
    _function(
        "FORMAT_TIMESTAMP",
        "Formats a TIMESTAMP as a string, in GMT or another time zone. If the pattern shows a zone's name, "
        "pattern and zone must be constants.",
        TIMESTAMP,
        STRING,
        _format_moment(_identity, "GMT"),
        Example(
            call="FORMAT_TIMESTAMP(TIMESTAMP '2018-05-11T21:58:33', 'yyyy-MM-dd HH:mm:ss zzz', 'America/Los_Angeles')",
            gives="'2018-05-11 14:58:33 PDT'",
        ),
        zoned=True,
    ),
    _function(
        "TIMESTAMPTOSTRING",
        "Formats milliseconds since the epoch as a string, in UTC or another time zone. If the pattern shows a "
        "zone's name, pattern and zone must be constants.",
        BIGINT,
        STRING,
        _format_moment(moment_of, "UTC"),
        Example(call="TIMESTAMPTOSTRING(1526075913000, 'yyyy-MM-dd HH:mm')", gives="'2018-05-11 21:58'"),
        zoned=True,
    ),
    _function(
        "DATETOSTRING",
        "Formats days since the epoch as a string.",
        INTEGER,
        STRING,
        _format_date(date_of),
        Example(call="DATETOSTRING(18993, 'yyyy-MM-dd')", gives="'2022-01-01'"),
    ),
    _function(
        "PARSE_DATE",
        "Parses a string as a DATE.",
        STRING,
        DATE,
        _parse_date(days=False),
        Example(call="PARSE_DATE('01-Jan-2022', 'dd-MMM-yyyy')", gives="DATE '2022-01-01'"),
    ),
    _function(
        "PARSE_TIME",
        "Parses a string as a TIME.",
        STRING,
        TIME,
        _parse_time,
        Example(call="PARSE_TIME('01:00:00 PM', 'hh:mm:ss a')", gives="TIME '13:00:00'"),
    ),
    _function(
        "PARSE_TIMESTAMP",
        "Parses a string as a TIMESTAMP. A string that names no time zone is in UTC, or in the given zone.",
        STRING,
        TIMESTAMP,
        _parse_moment(lambda sql: f"CAST({sql} AS TIMESTAMP_NTZ)"),
        Example(
            call="PARSE_TIMESTAMP('2018-05-11 14:58', 'yyyy-MM-dd HH:mm', 'America/Los_Angeles')",
            gives="TIMESTAMP '2018-05-11T21:58:00'",
        ),
        zoned=True,
    ),
    _function(
        "STRINGTOTIMESTAMP",
        "Parses a string as milliseconds since the epoch. A string that names no time zone is in UTC, or in "
        "the given zone.",
        STRING,
        BIGINT,
        _parse_moment(milliseconds),
        Example(call="STRINGTOTIMESTAMP('2018-05-11T21:58:33Z', 'yyyy-MM-dd''T''HH:mm:ssX')", gives="1526075913000"),
        zoned=True,
    ),
    _function(
        "STRINGTODATE",
        "Parses a string as days since the epoch.",
        STRING,
        INTEGER,
        _parse_date(days=True),
        Example(call="STRINGTODATE('2022-01-01', 'yyyy-MM-dd')", gives="18993"),
    ),
)
