"""Patterns of dates and times (those of java.time) as Spark takes them.

Spark formats and parses in UTC, the zone of its session. A pattern that is none, or has a letter that Spark does not
know (of weeks and of quarters when parsing), gives NULL.
"""

import re
from collections.abc import Iterator
from zoneinfo import available_timezones

from holdfast.runtime.functions.declaration import Arguments
from holdfast.runtime.functions.sparksql import attempt_moment, attempt_text, let, text

DATE_LETTERS = "GuyDMLdQqYwWEecF"
TIME_LETTERS = "aBhKkHmsSAnNVvzOXxZ"
ZONE_LETTERS = "VvzOXxZ"
HOUR_LETTERS = "HkKhAN"

_QUOTED = text("'[^']*'")
_YEAR = text(r"u(?=(?:[^']*'[^']*')*[^']*$)")
_OFFSET = re.compile(r"(UTC|GMT|UT)?([+-]\d{1,2}(:?\d{2}(:?\d{2})?)?)?|Z")


def _bare(pattern: str) -> Iterator[str]:
    """The characters outside of quotes."""
    return (c for part in pattern.split("'")[::2] for c in part)


def has_letters(arguments: Arguments, index: int, letters: str) -> bool | str:
    """Whether a pattern has one of the letters: known of a constant, else the SQL that finds out."""
    constant = arguments.constants[index]
    if isinstance(constant, str):
        return any(c in letters for c in _bare(constant))
    return f"regexp_replace({arguments.texts[index]}, {_QUOTED}, '') RLIKE {text(f'[{letters}]')}"


def unless(condition: bool | str, sql: str) -> str:
    """NULL where the condition holds."""
    if isinstance(condition, str):
        return f"CASE WHEN NOT {condition} THEN {sql} END"
    return f"CASE WHEN FALSE THEN {sql} END" if condition else sql


def spark_pattern(arguments: Arguments, index: int) -> str:
    """Spark has no letter for the year but y, which it reads as java.time reads u."""
    constant = arguments.constants[index]
    if isinstance(constant, str):
        parts = constant.split("'")
        return text("'".join(part if i % 2 else part.replace("u", "y") for i, part in enumerate(parts)))
    return f"regexp_replace({arguments.texts[index]}, {_YEAR}, 'y')"


def formatted(moment: str, arguments: Arguments, pattern: int) -> str:
    """The text of a timestamp in UTC."""
    return attempt_text(f"date_format({moment}, {spark_pattern(arguments, pattern)})")


def formatted_in(moment: str, arguments: Arguments, pattern: int, zone: int | str) -> str:
    """The text of a timestamp in a zone (an argument, or the name of one).

    Spark prints a zone's name only where it is an option of its JSON writer, which takes constants.
    """
    constant = arguments.constants[zone] if isinstance(zone, int) else zone
    zone_sql = arguments.texts[zone] if isinstance(zone, int) else text(zone)
    named = has_letters(arguments, pattern, ZONE_LETTERS)
    written = spark_pattern(arguments, pattern)
    if named is True and isinstance(constant, str):
        if not _is_zone(constant):
            return "CAST(NULL AS STRING)"
        options = f"map('timestampFormat', {written}, 'timeZone', {text(constant)})"
        value = f"CAST({moment} AS TIMESTAMP_LTZ)"
        return attempt_text(f"get_json_object(to_json(named_struct('t', {value}), {options}), '$.t')")
    shifted = f"from_utc_timestamp({moment}, {zone_sql})"
    return unless(named, attempt_text(f"date_format({shifted}, {written})"))


def parsed(arguments: Arguments, pattern: int, zone: int | None = None) -> str:
    """The timestamp that a text (the first argument) stands for; the zone is for texts that name none."""
    moment = f"to_timestamp_ltz({arguments.texts[0]}, {spark_pattern(arguments, pattern)})"
    if zone is None:
        return attempt_moment(moment)
    named = has_letters(arguments, pattern, ZONE_LETTERS)
    local = f"to_utc_timestamp({moment}, {arguments.texts[zone]})"
    if isinstance(named, str):
        return attempt_moment(f"CASE WHEN {named} THEN {moment} ELSE {local} END")
    return attempt_moment(moment if named else local)


def _is_zone(name: str) -> bool:
    return name in available_timezones() or (name != "" and _OFFSET.fullmatch(name) is not None)


def milliseconds(moment: str) -> str:
    return f"unix_millis(CAST({moment} AS TIMESTAMP_LTZ))"


DAY = 86_400_000
_DAYS = 2_147_483_646
_MILLIS = (-9_223_372_022_400_000, 9_223_372_036_854_774)


def moment_of(millis: str) -> str:
    """The TIMESTAMP so many milliseconds after the epoch, NULL outside of what the store can hold."""
    least, greatest = _MILLIS
    return let(
        millis,
        lambda ms: (
            f"CAST(timestamp_millis(CASE WHEN {ms} BETWEEN {least} AND {greatest} THEN {ms} END) AS TIMESTAMP_NTZ)"
        ),
        "ms_",
    )


def date_of(days: str) -> str:
    """The DATE so many days after the epoch, likewise."""
    return let(
        days,
        lambda d: f"date_add(DATE'1970-01-01', CAST(CASE WHEN {d} BETWEEN -{_DAYS} AND {_DAYS} THEN {d} END AS INT))",
        "days_",
    )
