"""Cuts a script into statements. The server reads them; this only has to know where one ends and whether it asks."""

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
QUESTIONS = frozenset({"SELECT", "SUBSCRIBE", "PRINT", "WITH"})


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a script, without comments around it and without its `;`."""

    text: str
    start: int
    first: str
    ended: bool

    @property
    def asks(self) -> bool:
        """True when it is answered with rows."""
        return self.first in QUESTIONS


def pieces(script: str) -> Iterator[Piece]:
    """The statements of a script, in order."""
    start, stop, first = -1, -1, ""
    for token in TOKEN.finditer(script):
        match token.lastgroup:
            case "end":
                if start >= 0:
                    yield Piece(script[start:stop], start, first, ended=True)
                start, first = -1, ""
            case "comment" | "space":
                continue
            case _:
                if start < 0:
                    start, first = token.start(), token.group().upper()
                stop = token.end()
    if start >= 0:
        yield Piece(script[start:stop], start, first, ended=False)


def place_in(script: str, start: int, position: Position) -> Position:
    """Where a place in a statement is in the script that the statement starts in at `start`."""
    offset = min(start + position.offset, len(script))
    line_start = script.rfind("\n", 0, offset) + 1
    return Position(script.count("\n", 0, offset) + 1, offset - line_start + 1, offset)
