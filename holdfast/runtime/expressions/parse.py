"""Parses expressions, types and schemas; the statement parser shares its machinery.

Parsers are built once and cached; the tree is built while parsing, without a second pass.
"""

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

from lark import Lark, Transformer, UnexpectedInput, UnexpectedToken

from holdfast.errors import Position, SyntaxProblem
from holdfast.runtime.expressions.lexer import Lines, SqlLexer
from holdfast.runtime.expressions.transform import ExpressionTransformer
from holdfast.runtime.expressions.tree import Expression, NamedExpression
from holdfast.types import Schema, SqlType

_GRAMMAR = Path(__file__).with_name("grammar.lark")
CACHE_SIZE = 10_000
"""Cached texts per kind: a plan's texts are parsed when it is decoded, and again by every consumer."""
_STARTS = ("expression_start", "named_start", "type_start", "schema_start")


class SqlParser:
    """A grammar with its transformer; errors are `SyntaxProblem`s in the user's terms."""

    def __init__(self, grammar: str, starts: Iterable[str], transformer: Transformer[Any, Any]) -> None:
        self._lark = Lark(
            grammar,
            parser="lalr",
            lexer=SqlLexer,
            start=list(starts),
            transformer=transformer,
            maybe_placeholders=False,
        )
        self._words: dict[str, str] = {}
        for terminal in self._lark.terminals:
            text = str(terminal.pattern.value)
            self._words[terminal.name] = text if text[0].isalpha() else f'"{text}"'

    def parse(self, text: str, start: str) -> object:
        try:
            return self._lark.parse(text, start=start)
        except UnexpectedToken as problem:
            raise syntax_problem(text, problem, self._words) from None
        except UnexpectedInput as problem:  # pragma: no cover - SqlLexer raises SyntaxProblem itself
            position = Lines(text).position(problem.pos_in_stream or 0)
            raise SyntaxProblem("cannot parse this text", position=position) from None


def read_grammar(statements: Path | None = None) -> str:
    """The text of the expression grammar, followed by a statement grammar, which may extend it."""
    expressions = _GRAMMAR.read_text(encoding="utf-8")
    return f"{expressions}\n{statements.read_text(encoding='utf-8')}" if statements else expressions


@cache
def _parser() -> SqlParser:
    return SqlParser(read_grammar(), _STARTS, ExpressionTransformer())


@lru_cache(CACHE_SIZE)
def parse_expression(text: str) -> Expression:
    return cast(Expression, _parser().parse(text, "expression_start"))


@lru_cache(CACHE_SIZE)
def parse_named(text: str) -> NamedExpression:
    """Parse `expression AS name`, the form of select expressions in plans."""
    return cast(NamedExpression, _parser().parse(text, "named_start"))


def parse_type(text: str) -> SqlType:
    return cast(SqlType, _parser().parse(text, "type_start"))


@lru_cache(CACHE_SIZE)
def parse_schema(text: str) -> Schema:
    """Parse ``"`ID` INTEGER KEY, `NAME` STRING"``; the empty text is the schema without columns."""
    return cast(Schema, _parser().parse(text, "schema_start"))


# ---- errors

# Sets of tokens that are expected together, for which a message uses one phrase.
_OPERATOR_NAMES = """
    PLUS MINUS STAR SLASH PERCENT CONCAT EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL
    AND OR IS NOT IN LIKE BETWEEN
"""
_OPERATORS = frozenset(_OPERATOR_NAMES.split())
_AFTER_OPERAND = frozenset({'"["', '"->"', '"::"', '"."', '"("'})
_OPERAND_NAMES = """
    IDENT QUOTED INTEGER DECIMAL DOUBLE STRING NULL TRUE FALSE CASE CAST ARRAY MAP STRUCT NOT PLUS MINUS LPAR EXISTS
"""
_OPERAND = frozenset(_OPERAND_NAMES.split())
_PHRASES = {
    "IDENT": "a name",
    "QUOTED": "a name",
    "STRING": "a string",
    "INTEGER": "a whole number",
    "DECIMAL": "a number",
    "DOUBLE": "a number",
    "$END": "the end of the text",
}
_MAX_EXPECTED = 8
_MAX_TOKEN = 100
"""The number of characters of a token that a message shows."""


def syntax_problem(text: str, problem: UnexpectedToken, words: Mapping[str, str]) -> SyntaxProblem:
    """An error with the position of the problem and what is expected there."""
    token = problem.token
    accepted = set(problem.accepts or problem.expected)
    hint = _expectation(accepted, words)
    if token.type == "$END":
        return SyntaxProblem("syntax error at the end of the text", hint=hint, position=_end(text))
    shown = token if len(token) <= _MAX_TOKEN else f"{token[:_MAX_TOKEN]}…"
    return SyntaxProblem(
        f'syntax error at or near "{shown}"', hint=hint, position=Lines(text).position(token.start_pos or 0)
    )


def _expectation(accepted: set[str], words: Mapping[str, str]) -> str:
    phrases = []
    if accepted >= {"INTEGER", "CASE", "CAST", "IDENT"}:
        phrases.append("an expression")
        accepted = accepted - _OPERAND
    elif accepted >= {"PLUS", "STAR", "CONCAT"}:
        phrases.append("an operator")
        accepted = {name for name in accepted - _OPERATORS if words.get(name) not in _AFTER_OPERAND} - {"STRING"}
    elif accepted >= {"IDENT", "ARRAY", "MAP", "STRUCT"}:
        phrases.append("a type")
        accepted = accepted - {"IDENT", "QUOTED", "ARRAY", "MAP", "STRUCT"}
    rest = sorted({_PHRASES.get(name) or words.get(name, name) for name in accepted}, key=_symbols_last)
    choices = rest + phrases
    if len(choices) > _MAX_EXPECTED:
        return f"Expected {', '.join([*phrases, *rest][:_MAX_EXPECTED])}, ..."
    if len(choices) > 1:
        return f"Expected {', '.join(choices[:-1])} or {choices[-1]}."
    return f"Expected {choices[0]}." if choices else ""


def _symbols_last(phrase: str) -> tuple[bool, bool, str]:
    return not phrase[0].isupper(), phrase[0] == '"', phrase


def _end(text: str) -> Position:
    return Lines(text).position(len(text.rstrip()))
