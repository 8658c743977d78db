"""The decoding of a key or of a value, in the levels of the decoder's query."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.runtime.serdes.texts import literal
from holdfast.types import Column


@dataclass(frozen=True, slots=True)
class Failure:
    """A condition under which a record cannot be decoded, and the Spark SQL of what its reader is told then."""

    when: str
    why: str


@dataclass(frozen=True, slots=True)
class Side:
    """`parsed` is computed once per record; `texts` are over it; `typed` are over the texts.

    `failed` says when the record cannot be decoded, over all of these; `misspelled` is the condition that it has a
    name in a spelling not known. Neither counts where `absent`: the record has no key or no value then.
    """

    absent: str
    parsed: tuple[tuple[str, str], ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    typed: tuple[str, ...] = ()
    failed: tuple["Failure", ...] = ()
    misspelled: str | None = None


def nulls(raw: str, count: int) -> Side:
    """Columns that are not read."""
    return Side(f"{raw} IS NULL", typed=("NULL",) * count)


def not_decoded(texts: Sequence[str], columns: Sequence[Column], prefix: str) -> list[Failure]:
    """Per column, that it has a text but no value."""
    return [
        Failure(f"({text} IS NOT NULL AND {prefix}{i} IS NULL)", unreadable(column))
        for i, (text, column) in enumerate(zip(texts, columns, strict=True))
    ]


def unreadable(column: Column) -> str:
    return literal(f'column "{column.name}" cannot be read as {column.type}')
