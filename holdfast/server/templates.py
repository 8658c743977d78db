"""Statements that differ in their constants only, told apart from others without being parsed.

A text is cut into a template and its constants. What a statement of a template means is learnt once, by parsing one;
another one of the template has the same words in the same places, and so the same meaning but for its constants.
"""

import re
from dataclasses import dataclass

from holdfast.serving.lookup import Key

LONGEST = 2_000
"""Characters of a text that is cut; a longer one is parsed."""

# Comments, and what a variable or another dialect could mean, are left to the parser. A number of up to nine digits
# is always an INTEGER; one that is part of a name or of another number is no constant of its own.
_PIECE = re.compile(
    r"""(?P<text>'[^']*(?:''[^']*)*')
      | (?P<name>"[^"]*(?:""[^"]*)*"|`[^`]*(?:``[^`]*)*`)
      | (?P<number>(?<![\w.@$])[0-9]{1,9}(?![\w.@$]))
      | (?P<other>--|/\*|[$?'"`])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Cut:
    """A text with `?` for its constants, which follow, with where each began."""

    template: str
    constants: tuple[str | int, ...]
    offsets: tuple[int, ...]


def cut(text: str) -> Cut | None:
    """The template of a text; None for one that only a parser should read."""
    if len(text) > LONGEST:
        return None
    parts: list[str] = []
    constants: list[str | int] = []
    offsets: list[int] = []
    at = 0
    for piece in _PIECE.finditer(text):
        kind = piece.lastgroup
        if kind == "name":
            continue
        if kind == "other":
            return None
        parts += [text[at : piece.start()], "?s" if kind == "text" else "?n"]
        at = piece.end()
        written = piece.group()
        constants.append(written[1:-1].replace("''", "'") if kind == "text" else int(written))
        offsets.append(piece.start())
    return Cut("".join([*parts, text[at:]]), tuple(constants), tuple(offsets))


@dataclass(frozen=True, slots=True)
class Places:
    """Which constants of a template are the key, in its order; the others belong to the meaning."""

    key: tuple[int, ...]
    others: tuple[int, ...]

    def key_of(self, found: Cut) -> Key:
        return tuple(found.constants[i] for i in self.key)

    def rest_of(self, found: Cut) -> tuple[str | int, ...]:
        return tuple(found.constants[i] for i in self.others)


def places_of(found: Cut, key_offsets: tuple[int, ...], key: Key) -> Places | None:
    """Where the constants at some offsets are; None when the cutter and the parser did not see the same."""
    by_offset = {offset: i for i, offset in enumerate(found.offsets)}
    places = tuple(by_offset.get(offset, -1) for offset in key_offsets)
    if -1 in places or tuple(found.constants[i] for i in places) != key:
        return None
    return Places(places, tuple(i for i in range(len(found.constants)) if i not in places))
