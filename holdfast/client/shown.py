"""Values and tables as text."""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from wcwidth import wcswidth, wcwidth

from holdfast.client.values import plain
from holdfast.types import SqlType, is_number

TOMBSTONE = "<TOMBSTONE>"


def shown(value: object) -> str:
    """A value in one line."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return printable(value)
        case float() | int():
            return str(value)
        case Decimal():
            return format(value, "f")
    told = plain(value)
    return told if isinstance(told, str) else printable(json.dumps(told, ensure_ascii=False, default=as_number))


def as_number(value: object) -> Any:
    return float(value) if isinstance(value, Decimal) else str(value)


def printable(text: str) -> str:
    """The text in one line: what would move the cursor or colour the terminal is written as its escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == " " else escape(c) for c in text)


def escape(character: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character, character.encode("unicode_escape").decode())


def is_right(type_: SqlType) -> bool:
    """Numbers stand at the right of their column."""
    return is_number(type_)


def width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return len(text) if text.isascii() else max(wcswidth(text), 0)


def padded(text: str, columns: int, *, right: bool) -> str:
    space = " " * (columns - width(text))
    return space + text if right else text + space


def shortened(text: str, columns: int) -> str:
    """The text in at most so many columns; an ellipsis says that there is more."""
    if width(text) <= columns:
        return text
    kept, taken = [], 0
    for character in text:
        taken += max(wcwidth(character), 0)
        if taken > columns - 1:
            break
        kept.append(character)
    return "".join(kept) + "…"


def aligned(names: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[bool]) -> Iterator[str]:
    """A table as lines of text."""
    cells = [list(names), *([shown(value) for value in row] for row in rows)]
    widths = [max(width(row[i]) for row in cells) for i in range(len(names))]
    for number, row in enumerate(cells):
        parts = [padded(cell, w, right=r) for cell, w, r in zip(row, widths, right, strict=True)]
        yield " | ".join(parts).rstrip()
        if number == 0:
            yield "-+-".join("-" * w for w in widths)
