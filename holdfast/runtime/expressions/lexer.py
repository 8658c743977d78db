"""The lexer of SQL text, for all Lark grammars.

A word is a keyword only where the parser can use that keyword; elsewhere it is a name. So columns can be called KEY,
DATE or TYPE, and no grammar has to list those words.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, ClassVar

from lark import Token
from lark.lexer import Lexer, LexerState, PatternRE, PatternStr

from holdfast.errors import Position, SyntaxProblem

# ksqlDB's reserved words, except those that only begin or end a statement.
_RESERVED = """
    ALL AND AS AT BETWEEN BY CASE CAST CREATE DELETE DESCRIBE DISTINCT DROP ELSE END EXISTS FALSE FROM FULL GROUP
    HAVING IN INNER INSERT INTO IS JOIN LEFT LIKE LIMIT NOT NULL ON OR OUTER RIGHT SELECT THEN TO TRUE VALUES WHEN
    WHERE WINDOW WITH WITHIN
"""
RESERVED = frozenset(_RESERVED.split())

# These open a literal (or, before "<", a type) only before the bracket that belongs to it: `MAP` alone is a name.
OPENERS = {"ARRAY": "[", "MAP": "(", "STRUCT": "("}

OPENING_SYMBOLS = frozenset("(-+")
OPENING_WORDS = frozenset({"AT", "CASE", "CAST", "FALSE", "NOT", "NULL", "TRUE"})
"""Words that can begin an expression, besides names and constants."""

SYNONYMS = {"!=": "<>"}
NUMBERS = frozenset({"INTEGER", "DECIMAL", "DOUBLE"})
MAX_DIGITS = 4_300
"""The longest integer that Python parses."""

_BLANK = re.compile(r"(?:\s+|--[^\n]*|/\*.*?\*/)*", re.DOTALL)


class Lines:
    """Maps the offsets of a text to lines and columns."""

    __slots__ = ("_starts",)

    def __init__(self, text: str) -> None:
        self._starts = [0, *(m.end() for m in re.finditer("\n", text))] if "\n" in text else [0]

    def position(self, offset: int) -> Position:
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1, offset)


class SqlLexer(Lexer):
    """A lexer for Lark; the parser's state determines which keywords are possible next."""

    __future_interface__: ClassVar[int] = 2

    def __init__(self, lexer_conf: Any) -> None:
        self.keywords: dict[str, str] = {}
        symbols: dict[str, str] = {}
        patterns: list[tuple[int, str, str]] = []
        for terminal in lexer_conf.terminals:
            pattern = terminal.pattern
            if isinstance(pattern, PatternRE):
                patterns.append((-terminal.priority, terminal.name, pattern.to_regexp()))
            elif isinstance(pattern, PatternStr):
                table = self.keywords if pattern.value[0].isalpha() else symbols
                assert pattern.value == pattern.value.upper(), f"write {pattern.value} in upper case"
                assert pattern.value not in table, f"{pattern.value} has two names"
                table[pattern.value] = terminal.name
        for synonym, symbol in SYNONYMS.items():
            symbols[synonym] = symbols[symbol]
        self._symbols = symbols
        self._first_words = frozenset(word.partition(" ")[0] for word in self.keywords if " " in word)
        self._ignored = frozenset(lexer_conf.ignore)
        groups = [f"(?P<{name}>{regexp})" for _, name, regexp in sorted(patterns)]
        longest_first = sorted(symbols, key=len, reverse=True)
        groups.append(f"(?P<symbol_>{'|'.join(map(re.escape, longest_first))})")
        self._match = re.compile("|".join(groups)).match

    def lex(self, lexer_state: LexerState, parser_state: Any) -> Iterator[Token]:
        text = lexer_state.text.text
        assert isinstance(text, str)
        lines = Lines(text)
        states = parser_state.parse_conf.states
        offset, end = 0, len(text)
        while offset < end:
            match = self._match(text, offset)
            if match is None:
                raise unreadable(text, offset)
            kind, value, start = match.lastgroup, match.group(), offset
            offset = match.end()
            if kind in self._ignored:
                continue
            if kind == "IDENT" and (pair := self._two_words(text, value, offset, states[parser_state.state_stack[-1]])):
                kind, value, offset = pair
            elif kind == "IDENT":
                kind = self._word(value.upper(), states[parser_state.state_stack[-1]], text, offset)
            elif kind == "symbol_":
                if text.startswith("/*", start):
                    raise unreadable(text, start)
                value = SYNONYMS.get(value, value)
                kind = self._symbols[value]
            elif kind in NUMBERS and offset < end and (text[offset].isalpha() or text[offset] == "_"):
                raise digit_name(text, start)
            elif kind == "INTEGER" and offset - start > MAX_DIGITS:
                raise long_number(text, start)
            position = lines.position(start)
            assert kind is not None
            lexer_state.last_token = Token(kind, value, start, position.line, position.column, end_pos=offset)
            yield lexer_state.last_token

    def _two_words(self, text: str, first: str, end: int, usable: dict[str, object]) -> tuple[str, str, int] | None:
        """A keyword of two words (`AS OF`), where the parser can use it: its kind, its text and its end."""
        if first.upper() not in self._first_words:
            return None
        second = self._match(text, _BLANK.match(text, end).end())  # type: ignore[union-attr]
        if second is None or second.lastgroup != "IDENT":
            return None
        words = f"{first} {second.group()}"
        kind = self.keywords.get(words.upper())
        if kind is None or kind not in usable or not self._opens(text, second.end()):
            return None
        return kind, words, second.end()

    def _opens(self, text: str, end: int) -> bool:
        """Whether an expression can begin after an offset; if not, the second word is a name."""
        following = self._match(text, _BLANK.match(text, end).end())  # type: ignore[union-attr]
        if following is None or following.lastgroup == "symbol_":
            return following is not None and following.group() in OPENING_SYMBOLS
        return following.lastgroup != "IDENT" or following.group().upper() not in RESERVED - OPENING_WORDS

    def _word(self, word: str, usable: dict[str, object], text: str, end: int) -> str:
        keyword = self.keywords.get(word)
        if word in RESERVED:
            return keyword or "RESERVED"
        if keyword is None:
            return "IDENT"
        if word in OPENERS:
            opener = OPENERS[word] if "CAST" in usable else "<"
            return keyword if text.startswith(opener, _BLANK.match(text, end).end()) else "IDENT"  # type: ignore[union-attr]
        return keyword if keyword in usable or "IDENT" not in usable else "IDENT"


def unreadable(text: str, offset: int) -> SyntaxProblem:
    """The error for a character that starts no token."""
    position = Lines(text).position(offset)
    character = text[offset]
    if character == "'":
        return SyntaxProblem("unterminated string", hint="End it with a single quote.", position=position)
    if character in '`"':
        if text[offset : offset + 2] == character * 2:
            return SyntaxProblem("a name cannot be empty", position=position)
        return SyntaxProblem("unterminated quoted name", hint=f"End it with {character}.", position=position)
    if text.startswith("/*", offset):
        return SyntaxProblem("unterminated comment", hint="End it with */.", position=position)
    return SyntaxProblem(f'unexpected character "{character}"', position=position)


def digit_name(text: str, offset: int) -> SyntaxProblem:
    """The error for `1abc`."""
    word = re.compile(r"[\w.@]+").match(text, offset)
    name = word.group() if word else text[offset]
    return SyntaxProblem(
        f'a name cannot start with a digit: "{name}"',
        hint=f"Write it in back-quotes: `{name}`.",
        position=Lines(text).position(offset),
    )


def long_number(text: str, offset: int) -> SyntaxProblem:
    """The error for a number that no type can hold."""
    return SyntaxProblem(
        f"a whole number has at most {MAX_DIGITS} digits",
        hint="A DECIMAL holds 38 digits, a DOUBLE numbers up to 1.7976931348623157E308.",
        position=Lines(text).position(offset),
    )
