"""Hints for syntax errors where the intended meaning can be guessed."""

import re
from collections.abc import Sequence

from lark import Token

_AT_TIME_ZONE = re.compile(r"AT\s+TIME\s+ZONE\b", re.IGNORECASE)
_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
_CHANGES_OF_COLUMNS = ("DROP", "ALTER", "MODIFY", "RENAME")


def advice(text: str, read: Sequence[Token], token: Token) -> str | None:
    """A hint for a token that cannot follow the tokens in `read`; None if there is none."""
    first = read[0].type if read else ""
    at = token.start_pos or 0
    if _AT_TIME_ZONE.match(text, at):
        return "Functions take a time zone: CONVERT_TZ(ts, 'UTC', 'Europe/Paris'), for instance, or FORMAT_TIMESTAMP."
    if first == "ALTER" and len(read) == 3 and token.upper() in _CHANGES_OF_COLUMNS and read[1].type != "INDEX":
        return f"Columns can only be added: ALTER {read[1].upper()} {read[2]} ADD COLUMN name type."
    if first == "PRINT" and len(read) == 2 and token in ("-", "."):
        name = _TOPIC.match(text, read[1].start_pos or 0)
        return f"Write the name of the topic in quotes: PRINT '{name[0]}'." if name else None
    return None
