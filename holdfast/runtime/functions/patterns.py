"""Patterns of dates and times (those of java.time) as Spark takes them.

Spark formats and parses in UTC, the zone of its session. A pattern that is none, or has a letter that Spark does not
know, gives NULL; new statements are refused constants with such letters.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from zoneinfo import available_timezones

from holdfast.runtime.functions.declaration import Arguments, Constant, Refusal
from holdfast.runtime.functions.sparksql import attempt_moment, attempt_text, let, text

DATE_LETTERS = "GuyDMLdQqYwWEecF"
TIME_LETTERS = "aBhKkHmsSAnNVvzOXxZ"
ZONE_LETTERS = "VvzOXxZ"
HOUR_LETTERS = "HkKhAN"

# Of weeks, of parts of a day, of padding; narrow texts, which are ambiguous.
_UNKNOWN = re.compile(r"[YWwecAnNBp]+|(?:G{5,}|M{5,}|L{5,}|E{5,}|Q{5,}|q{5,})")
_UNKNOWN_IN_TEXTS = re.compile(rf"{_UNKNOWN.pattern}|[FQq]+")
UNKNOWN_LETTERS = "It cannot have Y, W, w, e, c, A, n, N, B or p, nor five of G, M, L, E, Q or q in a row."
UNKNOWN_IN_TEXTS = (
    "It cannot have Y, W, w, e, c, A, n, N, B, p, F, Q or q, nor five of G, M, L or E in a row, and E only when it is "
    "a constant."
)

_QUOTED = text("'[^']*'")
_YEAR = text(r"u(?=(?:[^']*+'[^']*+')*+[^']*+$)")
_OFFSET = re.compile(r"(UTC|GMT|UT)?([+-]\d{1,2}(:?\d{2}(:?\d{2})?)?)?|Z")


def _bare(pattern: str) -> Iterator[str]:
    """The characters outside of quotes."""
    return (c for part in pattern.split("'")[::2] for c in part)


def formatting_refusal(constants: Sequence[Constant]) -> Refusal | None:
    """Why nothing could be formatted with a constant pattern, the second argument."""
    return _refusal(constants[1], _UNKNOWN)


def parsing_refusal(constants: Sequence[Constant]) -> Refusal | None:
    """Why nothing could be parsed with a constant pattern, the second argument."""
    return _refusal(constants[1], _UNKNOWN_IN_TEXTS)


def _refusal(pattern: Constant, unknown: re.Pattern[str]) -> Refusal | None:
    bare = " ".join(pattern.split("'")[::2]) if isinstance(pattern, str) else ""
    found = unknown.search(bare)
    if found is None:
        return None
    hint = "The year of a date is yyyy." if "Y" in found.group() else "DESCRIBE FUNCTION tells which letters it knows."
    return Refusal(1, f"the pattern cannot have {found.group()}", hint)


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


def _outside(pattern: str, change: Callable[[str], str]) -> str:
    """A pattern with a change to what is outside of quotes."""
    return "'".join(part if i % 2 else change(part) for i, part in enumerate(pattern.split("'")))


def spark_pattern(arguments: Arguments, index: int) -> str:
    """Spark has no letter for the year but y, which it reads as java.time reads u."""
    constant = arguments.constants[index]
    if isinstance(constant, str):
        return text(_outside(constant, lambda part: part.replace("u", "y")))
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
    moment = _moment(arguments, pattern)
    if zone is None:
        return attempt_moment(moment)
    named = has_letters(arguments, pattern, ZONE_LETTERS)
    local = f"to_utc_timestamp({moment}, {arguments.texts[zone]})"
    if isinstance(named, str):
        return attempt_moment(f"CASE WHEN {named} THEN {moment} ELSE {local} END")
    return attempt_moment(moment if named else local)


_DAYS_OF_WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DAY = re.compile("E{1,4}")


def _moment(arguments: Arguments, pattern: int) -> str:
    constant = arguments.constants[pattern]
    if isinstance(constant, str) and "E" in _bare(constant):
        return _moment_with_day(arguments, pattern, constant)
    return f"to_timestamp_ltz({arguments.texts[0]}, {spark_pattern(arguments, pattern)})"


def _moment_with_day(arguments: Arguments, pattern: int, constant: str) -> str:
    """Spark parses no days of the week: their names are taken out, and compared with the day that was parsed."""
    full = "EEEE" in "".join(_bare(constant))
    names = "|".join(day if full else day[:3] for day in _DAYS_OF_WEEK)
    name = text(f"(?i)(?<![a-z])(?:{names})(?![a-z])")
    rest = text(_outside(constant, lambda part: _DAY.sub("", part.replace("u", "y"))))
    said = f"lower(regexp_extract({arguments.texts[0]}, {name}, 0))"
    parsed_day = f"lower(date_format(at_, {text('EEEE' if full else 'EEE')}))"
    # The day of a text with a zone need not be the day in UTC.
    right = f"{said} <> ''" if has_letters(arguments, pattern, ZONE_LETTERS) else f"{said} = {parsed_day}"
    moment = f"to_timestamp_ltz(regexp_replace({arguments.texts[0]}, {name}, ''), {rest})"
    return let(f"({moment})", lambda at: f"CASE WHEN {right} THEN {at} END", "at_")


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
