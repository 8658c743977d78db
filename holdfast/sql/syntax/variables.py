"""Variables in statements: `${name}` is replaced by the value that DEFINE or the request has set.

Inside quotes, a value becomes part of the quoted string or name. Elsewhere it must be a single name, number or quoted
text, so that no value can change the kind of a statement. `$${name}` is a literal `${name}`. An undefined variable
inside quotes or a comment is left as it is; elsewhere it is an error.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from holdfast.errors import BindError, HoldfastError, Position, nearest
from holdfast.runtime.expressions.lexer import Lines
from holdfast.sql.syntax.parse import NO_TYPES, ParsedStatement, Types, statements

_TOKEN = re.compile(
    r"""(?P<quoted>'[^']*(?:''[^']*)*'? | "[^"]*(?:""[^"]*)*"? | `[^`]*(?:``[^`]*)*`?)
      | (?P<comment>--[^\n]* | /\*.*?(?:\*/|\Z))
      | (?P<escaped>\$\$\{)
      | \$\{(?P<name>[^}]*)\}
      | (?P<end>;)""",
    re.DOTALL | re.VERBOSE,
)
_REFERENCE = re.compile(r"\$(\$\{)|\$\{([^}]*)\}")
_SINGLE_VALUE = re.compile(
    r"""'[^']*(?:''[^']*)*' | "[^"]+(?:""[^"]*)*" | `[^`]+(?:``[^`]*)*`
      | [^\W\d]\w* | -?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Replaced:
    """A range of the new text, and the range of the old text that it replaces."""

    start: int
    end: int
    old_start: int
    old_end: int


class Script:
    """The statements of a text. Each is parsed when it is reached, with the values that variables have then."""

    def __init__(self, text: str, variables: Mapping[str, str], types: Callable[[], Types] = lambda: NO_TYPES) -> None:
        """Names in `variables` are in upper case; references ignore case. `types` is as for `statements`."""
        self._text, self._variables, self._types = text, variables, types
        self._lines: Lines | None = None
        self._replaced: list[_Replaced] = []
        self._base = 0
        self._substitution_error: HoldfastError | None = None
        self.substitutes = "${" in text

    def __iter__(self) -> Iterator[ParsedStatement]:
        if not self.substitutes:
            yield from statements(self._text, self._types)
            return
        start = 0
        while start < len(self._text):
            end = self._end_of(start)
            yield from self._statement(start, end)
            start = end

    def placed(self, error: HoldfastError) -> HoldfastError:
        """The error with its position in the original text."""
        if self.substitutes and error.position is not None and error is not self._substitution_error:
            error.position = self._origin(error.position)
        return error

    def _statement(self, start: int, end: int) -> Iterator[ParsedStatement]:
        self._base, self._replaced = start, []
        try:
            text = self._substituted(start, end)
        except HoldfastError as error:
            self._substitution_error = error
            raise
        for parsed in statements(text, self._types):
            yield replace(parsed, position=self._origin(parsed.position))

    def _end_of(self, start: int) -> int:
        for token in _TOKEN.finditer(self._text, start):
            if token.lastgroup == "end":
                return token.end()
        return len(self._text)

    def _substituted(self, start: int, end: int) -> str:
        parts: list[str] = []
        length, at = 0, start
        for token in _TOKEN.finditer(self._text, start, end):
            match token.lastgroup:
                case "comment" | "end":
                    continue
                case "quoted":
                    new = self._within_quotes(token.group())
                case "escaped":
                    new = "${"
                case _:
                    new = self._unquoted(token)
            if new == token.group():
                continue
            parts += [self._text[at : token.start()], new]
            length += token.start() - at
            self._replaced.append(_Replaced(length, length + len(new), token.start() - start, token.end() - start))
            length, at = length + len(new), token.end()
        return "".join([*parts, self._text[at:end]])

    def _within_quotes(self, text: str) -> str:
        quote = text[0]

        def value(reference: re.Match[str]) -> str:
            if reference[1]:
                return "${"
            found = self._variables.get(reference[2].upper())
            return reference[0] if found is None else found.replace(quote, quote * 2)

        return quote + _REFERENCE.sub(value, text[1:]) if "${" in text else text

    def _unquoted(self, token: re.Match[str]) -> str:
        name, position = token["name"], self._position(token.start())
        value = self._variables.get(name.upper())
        if value is None:
            raise Undefined(name, self._variables, position)
        if not _SINGLE_VALUE.fullmatch(value):
            raise BindError(
                f'the value of variable "{name}" cannot be used here: {value}',
                detail="Outside quotes, a value must be a single name, number or quoted text.",
                position=position,
            )
        # After another minus it would start a comment.
        return f" {value}" if value.startswith("-") else value

    def _origin(self, position: Position) -> Position:
        offset, shift = position.offset, 0
        for part in self._replaced:
            if offset < part.start:
                break
            if offset < part.end:
                return self._position(self._base + part.old_start)
            shift = part.old_end - part.end
        return self._position(self._base + offset + shift)

    def _position(self, offset: int) -> Position:
        self._lines = self._lines or Lines(self._text)
        return self._lines.position(offset)


class Undefined(BindError):
    """A variable that is not defined."""

    sqlstate = "42704"

    def __init__(self, name: str, known: Mapping[str, str], position: Position) -> None:
        super().__init__(
            f'variable "{name}" is not defined',
            hint=nearest(name, sorted(known), plural="variables") if known else "Define it: DEFINE name = 'value';",
            position=position,
        )
