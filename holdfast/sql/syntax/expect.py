"""What can follow an incomplete text, according to the parser."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from lark import Token, UnexpectedToken

from holdfast.errors import SyntaxProblem
from holdfast.sql.syntax.parse import statement_parser, terminal_words


class Kind(Enum):
    """The kind of thing that a name refers to."""

    RELATION = auto()
    COLUMN = auto()
    EXPRESSION = auto()
    """A column or a function."""
    TYPE = auto()
    PROPERTY = auto()
    QUERY = auto()


@dataclass(frozen=True, slots=True)
class Expected:
    """The keywords that can follow, and the kind of name; None if the name would be new or no name can follow.

    `after` is the preceding word.
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
    tokens: list[Token] = []
    try:
        for token in parser.lexer_thread.lex(parser.parser_state):
            tokens.append(token)
            parser.feed_token(token)
    except (SyntaxProblem, UnexpectedToken):
        return NOTHING
    accepted = frozenset(parser.accepts())
    words = terminal_words()
    keywords = frozenset(words[name] for name in accepted - NAMES if words.get(name, "").isalpha())
    after = tokens[-1].upper() if tokens else ""
    if after == "AS" and "SELECT" not in keywords and "CASE" not in keywords:
        return Expected(after=after)  # A new name; some keywords are allowed as names.
    return Expected(keywords, _kind(accepted, keywords, tokens), after)


def _kind(accepted: frozenset[str], keywords: frozenset[str], tokens: list[Token]) -> Kind | None:
    if "IDENT" not in accepted or not tokens:
        return None
    if "CASE" in keywords:
        return Kind.EXPRESSION
    if keywords >= TYPES:
        return Kind.TYPE
    first, last = tokens[0].upper(), tokens[-1]
    if last.type in OPENING:
        if "STRING" in accepted:
            return Kind.PROPERTY
        return Kind.COLUMN if first == "INSERT" else None
    if last.upper() in ("TERMINATE", "PAUSE", "RESUME", "EXPLAIN"):
        return Kind.QUERY
    if last.upper() in OF_RELATIONS or (first == "DROP" and last.type not in NAMES):
        return Kind.RELATION
    return None
