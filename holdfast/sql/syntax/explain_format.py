"""The format of an EXPLAIN: `EXPLAIN AS SVG …`, or at the end of the statement, `EXPLAIN … AS SVG`.

At the end, `AS SVG` could also be an alias of the last relation, so it is recognized in the text before parsing. An
alias of that name must be quoted.
"""

import re
from enum import StrEnum

from holdfast.errors import Position, SyntaxProblem, nearest

WORDS = ("AS", "FORMAT")
TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`)
      | (?P<end>;)
      | (?P<space>\s+)
      | (?P<word>\w+)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


class ExplainFormat(StrEnum):
    """How a plan is shown."""

    TEXT = "TEXT"
    JSON = "JSON"
    DOT = "DOT"
    SVG = "SVG"


def explain_format(word: str, position: Position | None) -> ExplainFormat:
    """The format of that name."""
    try:
        return ExplainFormat(word.upper())
    except ValueError:
        hint = nearest(word, list(ExplainFormat), plural="formats")
        raise SyntaxProblem(f'EXPLAIN has no format "{word}"', hint=hint, position=position) from None


def format_at_end(text: str, start: int) -> int | None:
    """The offset of the format at the end of an EXPLAIN; None without one. `start` is the end of the word EXPLAIN."""
    last: list[re.Match[str]] = []
    for token in TOKEN.finditer(text, start):
        if token.lastgroup == "end":
            break
        if token.lastgroup not in ("comment", "space"):
            last = [*last[-2:], token]
    if len(last) < 3:
        return None
    _, word, name = last
    is_format = word.group().upper() in WORDS and name.group().upper() in list(ExplainFormat)
    return word.start() if is_format else None
