"""Parses statements one at a time, so that those before a syntax error can still run."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lark import Lark, Token, UnexpectedToken

from holdfast.errors import Position, SyntaxProblem
from holdfast.runtime.expressions.lexer import RESERVED, Lines, SqlLexer
from holdfast.runtime.expressions.parse import read_grammar, syntax_problem
from holdfast.runtime.expressions.transform import custom_types, position_of
from holdfast.sql.syntax.explain_format import explain_format, format_at_end
from holdfast.sql.syntax.hints import advice
from holdfast.sql.syntax.statements import ExplainQuery, ExplainStatement, Refused, Select, Statement
from holdfast.sql.syntax.transform import StatementTransformer
from holdfast.types import SqlType

_GRAMMAR = Path(__file__).with_name("grammar.lark")
_START = "statement_start"
_END = "SEMICOLON"
# Words that indicate a missing expression.
_EXPRESSION_ENDS = frozenset({"FROM", "WHERE", "GROUP", "HAVING", "LIMIT", "AS", "ON", "AND", "OR", "THEN", "END"})

_OF_CONNECT = (("CONNECTORS",), ("SOURCE", "CONNECTORS"), ("SINK", "CONNECTORS"), ("CONNECTOR", "PLUGINS"))
# Statements of ksqlDB, Materialize and later releases, by their leading words; the longest match is reported.
_REFUSED = (
    ("ALTER", "SYSTEM"),
    ("CREATE", "SINK"),
    ("CREATE", "SINK", "CONNECTOR"),
    ("CREATE", "SOURCE"),
    ("CREATE", "SOURCE", "CONNECTOR"),
    ("DESCRIBE", "CONNECTOR"),
    ("DROP", "CONNECTOR"),
    ("DROP", "SINK"),
    ("DROP", "SOURCE"),
    *((list_, *what) for list_ in ("LIST", "SHOW") for what in _OF_CONNECT),
)
_MAX_WORDS = max(len(words) for words in _REFUSED)


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A statement, its text (without the `;`) and the position of its text."""

    statement: Statement
    text: str
    position: Position = field(compare=False)


@cache
def _lark() -> Lark:
    return Lark(
        read_grammar(_GRAMMAR),
        parser="lalr",
        lexer=SqlLexer,
        start=_START,
        transformer=StatementTransformer(),
        maybe_placeholders=False,
    )


@cache
def terminal_words() -> dict[str, str]:
    """The terminals of the grammar as users write them."""
    values = {terminal.name: str(terminal.pattern.value) for terminal in _lark().terminals}
    return {name: text if text[0].isalpha() else f'"{text}"' for name, text in values.items()}


def statement_parser(text: str) -> Any:
    """Lark's interactive parser for one statement."""
    return _lark().parse_interactive(text, start=_START)


Types = Mapping[str, SqlType]
NO_TYPES: Types = MappingProxyType({})


def parse(text: str, types: Types = NO_TYPES) -> list[ParsedStatement]:
    """All statements of a text; raises its first syntax error."""
    return list(statements(text, lambda: types))


def statements(text: str, types: Callable[[], Types] = lambda: NO_TYPES) -> Iterator[ParsedStatement]:
    """The statements of a text in order, each parsed only when it is reached; the last `;` is optional.

    A syntax error is raised when its statement is reached, so that the statements before it can run. `types` returns
    the types that CREATE TYPE has named; it is called before each statement.
    """
    return iter(_Reader(text, types))


class _Reader:
    """One pass of the lexer over a text; the parser restarts after each `;`."""

    def __init__(self, text: str, types: Callable[[], Types]) -> None:
        self._text, self._types = text, types
        self._lines = Lines(text)
        self._parser = parser = statement_parser(text)
        self._state = parser.parser_state
        self._start = list(self._state.state_stack)
        self._tokens: Iterator[Token] = parser.lexer_thread.lex(self._state)
        self._ahead: deque[Token] = deque()

    def __iter__(self) -> Iterator[ParsedStatement]:
        # The lexer asks the parser which keywords it can use, so the parser restarts before the next token is read.
        while (token := self._restart()) is not None:
            if token.type != _END:
                yield self._with_types(token)

    def _with_types(self, first: Token) -> ParsedStatement:
        # Not in `__iter__`: a generator shares the context of its caller, which would see the types.
        known = custom_types.set(self._types())
        try:
            return self._statement(first)
        finally:
            custom_types.reset(known)

    def _restart(self) -> Token | None:
        self._state.state_stack[:], self._state.value_stack[:] = self._start, []
        return self._next()

    def _next(self) -> Token | None:
        return self._ahead.popleft() if self._ahead else next(self._tokens, None)

    def _statement(self, first: Token) -> ParsedStatement:
        read: list[Token] = []
        token: Token | None = first
        option: list[Token] = []
        tail = format_at_end(self._text, first.end_pos or 0) if first.type == "EXPLAIN" else None
        try:
            while token is not None and token.type != _END and token.start_pos != tail:
                read.append(token)
                self._parser.feed_token(token)
                token = self._next()
            if token is not None and token.start_pos == tail:
                option = [token, *self._rest()]
            end = token if token is not None and not option else Token(_END, "")
            self._parser.feed_token(end)
            statement = self._parser.feed_eof(end)
            if isinstance(statement, ExplainStatement | ExplainQuery):
                statement = self._explained(statement, read, option)
            return self._parsed(statement, [*read, *option])
        except UnexpectedToken as problem:
            refused = self._refused(read, token)
            if refused is not None:
                return refused
            if token is None or option:
                problem.token = token or Token("$END", "")
            raise _problem(self._text, problem, read[:-1]) from None

    def _rest(self) -> Iterator[Token]:
        """The tokens up to the end of the statement, which are not parsed."""
        while (token := self._next()) is not None and token.type != _END:
            yield token

    def _explained(
        self, explain: ExplainStatement | ExplainQuery, read: list[Token], option: list[Token]
    ) -> ExplainStatement | ExplainQuery:
        """An EXPLAIN with the format at its end and the text of the statement that it explains."""
        if option:
            word, name = option
            if explain.format is not None:
                raise SyntaxProblem("EXPLAIN has two formats", hint="Leave one out.", position=_position(word))
            explain = replace(explain, format=explain_format(str(name), _position(name)))
        if isinstance(explain, ExplainStatement) and explain.statement.position is not None:
            explain = replace(explain, text=self._text[explain.statement.position.offset : read[-1].end_pos])
        return explain

    def _refused(self, read: list[Token], last: Token | None) -> ParsedStatement | None:
        """A statement that is known by its leading words but not supported, up to its end."""
        if last is not None and last.type == _END:
            self._ahead.append(last)
        while not self._ahead or (self._ahead[-1].type != _END and len(read) + len(self._ahead) < _MAX_WORDS):
            token = next(self._tokens, None)
            if token is None:
                break
            self._ahead.append(token)
        words = tuple(str(token).upper() for token in (*read, *self._ahead))
        matches = [known for known in _REFUSED if words[: len(known)] == known and len(read) <= len(known) + 1]
        if not matches:
            return None
        read.extend(self._rest())
        return self._parsed(Refused(" ".join(sorted(matches, key=len)[-1]), _position(read[0])), read)

    def _parsed(self, statement: Any, read: list[Token]) -> ParsedStatement:
        start, end = read[0].start_pos or 0, read[-1].end_pos
        return ParsedStatement(statement, self._text[start:end], self._lines.position(start))


def _problem(text: str, problem: UnexpectedToken, before: list[Token]) -> SyntaxProblem:
    """The syntax error with a hint: the nearest keyword for a misspelt one, quotes for a reserved word."""
    error = syntax_problem(text, problem, terminal_words())
    if instead := advice(text, before, problem.token):
        return SyntaxProblem(error.message, hint=instead, position=error.position)
    accepted = problem.accepts or problem.expected
    word = str(problem.token)
    keywords = sorted(terminal_words()[name] for name in accepted if terminal_words().get(name, "").isupper())
    close = get_close_matches(word.upper(), [keyword for keyword in keywords if keyword.isalpha()], n=1, cutoff=0.75)
    if close and word:
        return SyntaxProblem(error.message, hint=f"Did you mean {close[0]}?", position=error.position)
    if "IDENT" in accepted and word.upper() in RESERVED and problem.token.type not in _EXPRESSION_ENDS:
        hint = f"{word.upper()} is a reserved word; as a name, write it in back-quotes: `{word.upper()}`."
        return SyntaxProblem(error.message, hint=hint, position=error.position)
    return error


def parse_select(text: str) -> Select:
    """Parse a text that is a single SELECT."""
    parsed = parse(text)
    if len(parsed) != 1 or not isinstance(parsed[0].statement, Select):
        position = parsed[1].position if len(parsed) > 1 else Position(1, 1, 0)
        raise SyntaxProblem("expected one SELECT", position=position)
    return parsed[0].statement


def _position(token: Token) -> Position:
    position = position_of(token)
    assert position is not None
    return position
