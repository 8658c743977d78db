"""Date and time patterns in java.time's syntax, translated for Spark.

Spark formats and parses in UTC, the zone of its session. A pattern that is invalid, or has a letter that Spark does not
support, gives NULL; new statements with such a letter in a constant pattern are rejected.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from zoneinfo import available_timezones

from holdfast.runtime.functions.declaration import Arguments, Constant, Refusal
from holdfast.runtime.functions.spark_sql import attempt_moment, attempt_text, let, text

DATE_LETTERS = "GuyDMLdQqYwWEecF"
TIME_LETTERS = "aBhKkHmsSAnNVvzOXxZ"
ZONE_LETTERS = "VvzOXxZ"
HOUR_LETTERS = "HkKhAN"

# Letters for weeks, parts of a day and padding; narrow text forms, which are ambiguous.
_UNSUPPORTED = re.compile(r"[YWwecAnNBp]+|(?:G{5,}|M{5,}|L{5,}|E{5,}|Q{5,}|q{5,})")
_UNSUPPORTED_IN_PARSING = re.compile(rf"{_UNSUPPORTED.pattern}|[FQq]+")
NOT_FORMATTED = (
    "The pattern letters Y, W, w, e, c, A, n, N, B and p are not supported, nor are five of G, M, L, E, Q or q in "
    "a row."
)
NOT_PARSED = (
    "The pattern letters Y, W, w, e, c, A, n, N, B, p, F, Q and q are not supported, nor are five of G, M, L "
    "or E in a row; E needs a constant pattern."
)

_QUOTED = text("'[^']*'")
_YEAR = text(r"u(?=(?:[^']*+'[^']*+')*+[^']*+$)")
_OFFSET = re.compile(r"(UTC|GMT|UT)?([+-]\d{1,2}(:?\d{2}(:?\d{2})?)?)?|Z")


def _unquoted(pattern: str) -> Iterator[str]:
    """The characters outside quotes."""
    return (c for part in pattern.split("'")[::2] for c in part)


def formatting_refusal(constants: Sequence[Constant]) -> Refusal | None:
    """Why a constant pattern, the second argument, cannot format any value."""
    return _refusal(constants[1], _UNSUPPORTED)


def parsing_refusal(constants: Sequence[Constant]) -> Refusal | None:
    """Why a constant pattern, the second argument, cannot parse any value."""
    return _refusal(constants[1], _UNSUPPORTED_IN_PARSING)


def _refusal(pattern: Constant, unsupported: re.Pattern[str]) -> Refusal | None:
    bare = " ".join(pattern.split("'")[::2]) if isinstance(pattern, str) else ""
    found = unsupported.search(bare)
    if found is None:
        return None
    hint = (
        "Write yyyy for the year of a date."
        if "Y" in found.group()
        else "DESCRIBE FUNCTION lists the unsupported letters."
    )
    return Refusal(1, f"{found.group()} is not supported in a pattern", hint)


def has_letters(arguments: Arguments, index: int, letters: str) -> bool | str:
    """Whether a pattern has one of the letters: a bool for a constant pattern, otherwise SQL that checks it."""
    constant = arguments.constants[index]
    if isinstance(constant, str):
        return any(c in letters for c in _unquoted(constant))
    return f"regexp_replace({arguments.texts[index]}, {_QUOTED}, '') RLIKE {text(f'[{letters}]')}"


def unless(condition: bool | str, sql: str) -> str:
    """NULL where the condition holds."""
    if isinstance(condition, str):
        return f"CASE WHEN NOT {condition} THEN {sql} END"
    return f"CASE WHEN FALSE THEN {sql} END" if condition else sql


def _change_unquoted(pattern: str, change: Callable[[str], str]) -> str:
    """A pattern with `change` applied to the parts outside quotes."""
    return "'".join(part if i % 2 else change(part) for i, part in enumerate(pattern.split("'")))


def spark_pattern(arguments: Arguments, index: int) -> str:
    """Replaces u by y: Spark has only y for the year, and reads it as java.time reads u."""
    constant = arguments.constants[index]
    if isinstance(constant, str):
        return text(_change_unquoted(constant, lambda part: part.replace("u", "y")))
    return f"regexp_replace({arguments.texts[index]}, {_YEAR}, 'y')"


def formatted(moment: str, arguments: Arguments, pattern: int) -> str:
    """The text of a timestamp in UTC."""
    return attempt_text(f"date_format({moment}, {spark_pattern(arguments, pattern)})")


def formatted_in(moment: str, arguments: Arguments, pattern: int, zone: int | str) -> str:
    """The text of a timestamp in a zone, which is the index of an argument or a name.

    Spark prints a zone's name only in its JSON writer, where the zone is an option and must be constant.
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
    """The first argument parsed as a timestamp; the zone applies to strings that name none."""
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
    if isinstance(constant, str) and "E" in _unquoted(constant):
        return _moment_with_day(arguments, pattern, constant)
    return f"to_timestamp_ltz({arguments.texts[0]}, {spark_pattern(arguments, pattern)})"


def _moment_with_day(arguments: Arguments, pattern: int, constant: str) -> str:
    """Spark cannot parse days of the week: removes their names, and compares them with the parsed date."""
    full = "EEEE" in "".join(_unquoted(constant))
    names = "|".join(day if full else day[:3] for day in _DAYS_OF_WEEK)
    name = text(f"(?i)(?<![a-z])(?:{names})(?![a-z])")
    rest = text(_change_unquoted(constant, lambda part: _DAY.sub("", part.replace("u", "y"))))
    day_name = f"lower(regexp_extract({arguments.texts[0]}, {name}, 0))"
    parsed_day = f"lower(date_format(at_, {text('EEEE' if full else 'EEE')}))"
    # With a zone, the day in the text may differ from the day in UTC.
    valid = f"{day_name} <> ''" if has_letters(arguments, pattern, ZONE_LETTERS) else f"{day_name} = {parsed_day}"
    moment = f"to_timestamp_ltz(regexp_replace({arguments.texts[0]}, {name}, ''), {rest})"
    return let(f"({moment})", lambda at: f"CASE WHEN {valid} THEN {at} END", "at_")


def _is_zone(name: str) -> bool:
    return name in available_timezones() or (name != "" and _OFFSET.fullmatch(name) is not None)


def milliseconds(moment: str) -> str:
    return f"unix_millis(CAST({moment} AS TIMESTAMP_LTZ))"


DAY = 86_400_000
_DAYS = 2_147_483_646
_MILLIS = (-9_223_372_022_400_000, 9_223_372_036_854_774)


def moment_of(millis: str) -> str:
    """Milliseconds since the epoch as a TIMESTAMP; NULL outside the range that the store supports."""
    least, greatest = _MILLIS
    return let(
        millis,
        lambda ms: (
            f"CAST(timestamp_millis(CASE WHEN {ms} BETWEEN {least} AND {greatest} THEN {ms} END) AS TIMESTAMP_NTZ)"
        ),
        "ms_",
    )


def date_of(days: str) -> str:
    """Days since the epoch as a DATE; NULL outside the range that the store supports."""
    return let(
        days,
        lambda d: f"date_add(DATE'1970-01-01', CAST(CASE WHEN {d} BETWEEN -{_DAYS} AND {_DAYS} THEN {d} END AS INT))",
        "days_",
    )
