"""The format of an EXPLAIN: `EXPLAIN AS SVG …`, or at the end of the statement, `EXPLAIN … AS SVG`.

At the end `AS SVG` could be read as an alias of the last relation, so it is found in the text, before the grammar sees
it. A relation that is really to be called so is written in quotes.
"""

import re

from holdfast.errors import Position, SyntaxProblem, nearest
from holdfast.sql.statements import ExplainFormat

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


def explain_format(word: str, position: Position | None) -> ExplainFormat:
    """The format that a word means."""
    try:
        return ExplainFormat(word.upper())
    except ValueError:
        hint = nearest(word, list(ExplainFormat), plural="formats")
        raise SyntaxProblem(f'EXPLAIN has no format "{word}"', hint=hint, position=position) from None


def format_at_end(text: str, start: int) -> int | None:
    """Where the format at the end of an EXPLAIN begins, if it has one; `start` is after the word EXPLAIN."""
    last: list[re.Match[str]] = []
    for token in TOKEN.finditer(text, start):
        if token.lastgroup == "end":
            break
        if token.lastgroup not in ("comment", "space"):
            last = [*last[-2:], token]
    if len(last) < 3:
        return None
    _, word, name = last
    told = word.group().upper() in WORDS and name.group().upper() in list(ExplainFormat)
    return word.start() if told else None
