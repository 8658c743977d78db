"""Splits a script into statements. The server parses them; here it only matters where one ends and how it begins."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.errors import Position

TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<quoted>'(?:[^']|'')*(?:'|\Z)|"(?:[^"]|"")*(?:"|\Z)|`(?:[^`]|``)*(?:`|\Z))
      | (?P<end>;)
      | (?P<space>\s+)
      | (?P<word>\w+)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
RETURN_ROWS = frozenset({"SELECT", "SUBSCRIBE", "PRINT", "WITH"})


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    """One statement of a script, without surrounding comments and its `;`."""

    text: str
    start: int
    first: str
    ended: bool

    @property
    def returns_rows(self) -> bool:
        return self.first in RETURN_ROWS


def split_statements(script: str) -> Iterator[ScriptStatement]:
    """The statements of a script, in order."""
    start, stop, first = -1, -1, ""
    for token in TOKEN.finditer(script):
        match token.lastgroup:
            case "end":
                if start >= 0:
                    yield ScriptStatement(script[start:stop], start, first, ended=True)
                start, first = -1, ""
            case "comment" | "space":
                continue
            case _:
                if start < 0:
                    start, first = token.start(), token.group().upper()
                stop = token.end()
    if start >= 0:
        yield ScriptStatement(script[start:stop], start, first, ended=False)


def script_position(script: str, start: int, position: Position) -> Position:
    """Convert a position in the statement that begins at `start` to a position in the script."""
    offset = min(start + position.offset, len(script))
    line_start = script.rfind("\n", 0, offset) + 1
    return Position(script.count("\n", 0, offset) + 1, offset - line_start + 1, offset)
