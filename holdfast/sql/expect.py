"""What can stand at the end of a text that is still being written: the parser itself is asked."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from lark import Token, UnexpectedToken

from holdfast.errors import SyntaxProblem
from holdfast.sql.parse import statement_parser, terminal_words


class Kind(Enum):
    """What a name would be the name of."""

    RELATION = auto()
    COLUMN = auto()
    EXPRESSION = auto()
    """A column or a function."""
    TYPE = auto()
    PROPERTY = auto()
    QUERY = auto()


@dataclass(frozen=True, slots=True)
class Expected:
    """The keywords that can follow, and what a name there would be; None when it would be a new one, or there is none.

    `after` is the word before.
    """

    keywords: frozenset[str] = frozenset()
    kind: Kind | None = None
    after: str = ""


NOTHING = Expected()
TYPES = frozenset({"ARRAY", "MAP", "STRUCT"})
NAMES = frozenset({"IDENT", "QUOTED"})
OPENING = frozenset({"LPAR", "COMMA"})
OF_RELATIONS = frozenset({"FROM", "JOIN", "INTO", "DESCRIBE"})


def expected_after(text: str) -> Expected:
    """What can follow the text of one statement, whose last word is complete."""
    parser: Any = statement_parser(text)
    read: list[Token] = []
    try:
        for token in parser.lexer_thread.lex(parser.parser_state):
            read.append(token)
            parser.feed_token(token)
    except (SyntaxProblem, UnexpectedToken):
        return NOTHING
    accepted = frozenset(parser.accepts())
    words = terminal_words()
    keywords = frozenset(words[name] for name in accepted - NAMES if words.get(name, "").isalpha())
    after = read[-1].upper() if read else ""
    if after == "AS" and "SELECT" not in keywords and "CASE" not in keywords:
        return Expected(after=after)  # a name of the user's own, for which some keywords may serve
    return Expected(keywords, _kind(accepted, keywords, read), after)


def _kind(accepted: frozenset[str], keywords: frozenset[str], read: list[Token]) -> Kind | None:
    if "IDENT" not in accepted or not read:
        return None
    if "CASE" in keywords:
        return Kind.EXPRESSION
    if keywords >= TYPES:
        return Kind.TYPE
    first, last = read[0].upper(), read[-1]
    if last.type in OPENING:
        if "STRING" in accepted:
            return Kind.PROPERTY
        return Kind.COLUMN if first == "INSERT" else None
    if last.upper() in ("TERMINATE", "PAUSE", "RESUME", "EXPLAIN"):
        return Kind.QUERY
    if last.upper() in OF_RELATIONS or (first == "DROP" and last.type not in NAMES):
        return Kind.RELATION
    return None
