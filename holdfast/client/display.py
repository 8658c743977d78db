"""Values and tables as text."""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from wcwidth import wcswidth, wcwidth

from holdfast.client.values import plain
from holdfast.types import SqlType, is_number

TOMBSTONE = "<TOMBSTONE>"


def format_value(value: object) -> str:
    """A value on one line."""
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
    converted = plain(value)
    return (
        converted
        if isinstance(converted, str)
        else printable(json.dumps(converted, ensure_ascii=False, default=as_number))
    )


def as_number(value: object) -> Any:
    return float(value) if isinstance(value, Decimal) else str(value)


def printable(text: str) -> str:
    """The text on one line, with control characters escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == " " else escape(c) for c in text)


def escape(character: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character, character.encode("unicode_escape").decode())


def is_right_aligned(type_: SqlType) -> bool:
    """Whether values of a type are right-aligned: numbers are."""
    return is_number(type_)


def width(text: str) -> int:
    """The number of terminal columns that a text takes."""
    return len(text) if text.isascii() else max(wcswidth(text), 0)


def padded(text: str, columns: int, *, right: bool) -> str:
    space = " " * (columns - width(text))
    return space + text if right else text + space


def shortened(text: str, columns: int) -> str:
    """The text in at most `columns` columns; an ellipsis marks the cut."""
    if width(text) <= columns:
        return text
    head, used = [], 0
    for character in text:
        used += max(wcwidth(character), 0)
        if used > columns - 1:
            break
        head.append(character)
    return "".join(head) + "…"


def aligned(names: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[bool]) -> Iterator[str]:
    """A table as lines of text."""
    cells = [list(names), *([format_value(value) for value in row] for row in rows)]
    widths = [max(width(row[i]) for row in cells) for i in range(len(names))]
    for number, row in enumerate(cells):
        parts = [padded(cell, w, right=r) for cell, w, r in zip(row, widths, right, strict=True)]
        yield " | ".join(parts).rstrip()
        if number == 0:
            yield "-+-".join("-" * w for w in widths)
