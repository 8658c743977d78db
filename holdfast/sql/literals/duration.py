"""Durations written as text: `'1h'`, `'90 minutes'`, `'1 day 06:30:00'`."""

import re

UNITS_MS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 86_400_000),
}
_TEXT_UNITS = [(name, UNITS_MS[name]) for name in ("day", "hour", "minute", "second", "millisecond")]
EXAMPLES = "Write it as '1h', '90 minutes' or '1 day 6 hours'."

_CLOCK = r"(?P<h>\d{1,9}):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d)(?:\.(?P<ms>\d{1,3}))?)?"
_PART = re.compile(rf"\s*(?:{_CLOCK}|(?P<number>\d{{1,18}}(?:\.\d+)?)\s*(?P<unit>[a-zA-Z]+))\s*")


def duration_ms(text: str) -> int | None:
    """The milliseconds of a duration, or None if the text is not one. A leading minus applies to all parts."""
    text = text.strip()
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    total, at = 0.0, 0
    while at < len(text) or at == 0:
        part = _PART.match(text, at)
        if part is None or (part["unit"] and part["unit"].lower() not in UNITS_MS):
            return None
        if part["unit"]:
            total += float(part["number"]) * UNITS_MS[part["unit"].lower()]
        else:
            seconds = int(part["h"]) * 3_600 + int(part["m"]) * 60 + int(part["s"] or 0)
            total += seconds * 1_000 + int((part["ms"] or "0").ljust(3, "0"))
        at = part.end()
    return sign * round(total)


def duration_text(ms: int) -> str:
    """A positive duration as `duration_ms` reads it: `1 day 6 hours`."""
    parts = []
    for name, unit in _TEXT_UNITS:
        number, ms = divmod(ms, unit)
        if number:
            parts.append(f"{number} {name}{'' if number == 1 else 's'}")
    return " ".join(parts)


def span_text(ms: int) -> str:
    """A positive duration as the clauses of WINDOW read it, one number and one unit: `90 SECONDS`."""
    name, unit = next((name, unit) for name, unit in _TEXT_UNITS if ms % unit == 0)
    return f"{ms // unit} {name.upper()}{'' if ms == unit else 'S'}"
