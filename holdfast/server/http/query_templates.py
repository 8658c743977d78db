"""Recognises statements that differ only in their constants, without parsing them.

A text is split into a template and its constants. Only one statement per template is parsed: the others have the same
tokens in the same order, so they differ only in their constants.
"""

import re
from dataclasses import dataclass

from holdfast.serving.pull.key_lookup import Key

MAX_TEXT = 2_000
"""Characters; a longer text is always parsed."""

# Comments, variables and other dialects are left to the parser. A number of up to nine digits is always an INTEGER;
# a number inside a name or another number is not a constant.
_TOKEN = re.compile(
    r"""(?P<text>'[^']*(?:''[^']*)*')
      | (?P<name>"[^"]*(?:""[^"]*)*"|`[^`]*(?:``[^`]*)*`)
      | (?P<number>(?<![\w.@$])[0-9]{1,9}(?![\w.@$]))
      | (?P<other>--|/\*|[$?'"`])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class SplitText:
    """A text with `?` for its constants, the constants, and the offset of each."""

    template: str
    constants: tuple[str | int, ...]
    offsets: tuple[int, ...]


def split_text(text: str) -> SplitText | None:
    """Split a text; None for one that only the parser can handle."""
    if len(text) > MAX_TEXT:
        return None
    parts: list[str] = []
    constants: list[str | int] = []
    offsets: list[int] = []
    at = 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "name":
            continue
        if kind == "other":
            return None
        parts += [text[at : token.start()], "?s" if kind == "text" else "?n"]
        at = token.end()
        literal = token.group()
        constants.append(literal[1:-1].replace("''", "'") if kind == "text" else int(literal))
        offsets.append(token.start())
    return SplitText("".join([*parts, text[at:]]), tuple(constants), tuple(offsets))


@dataclass(frozen=True, slots=True)
class KeyPositions:
    """The indexes of a template's constants that form the key, in key order, and of the others."""

    key: tuple[int, ...]
    others: tuple[int, ...]

    def key_of(self, split: SplitText) -> Key:
        return tuple(split.constants[i] for i in self.key)

    def rest_of(self, split: SplitText) -> tuple[str | int, ...]:
        return tuple(split.constants[i] for i in self.others)


def key_positions(split: SplitText, key_offsets: tuple[int, ...], key: Key) -> KeyPositions | None:
    """Find the key constants by their offsets; None if the parser read other values there."""
    by_offset = {offset: i for i, offset in enumerate(split.offsets)}
    positions = tuple(by_offset.get(offset, -1) for offset in key_offsets)
    if -1 in positions or tuple(split.constants[i] for i in positions) != key:
        return None
    return KeyPositions(positions, tuple(i for i in range(len(split.constants)) if i not in positions))
