"""The decoding of a key or of a value, in the levels of the decoder's query."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Side:
    """`parsed` is computed once per record; `texts` are over it; `typed` are over the texts.

    `failed` are conditions over all of these under which the record cannot be decoded; `misspelled` is the condition
    that it has a name in a spelling not known. Neither counts where `absent`: the record has no key or no value then.
    """

    absent: str
    parsed: tuple[tuple[str, str], ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    typed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    misspelled: str | None = None


def nulls(raw: str, count: int) -> Side:
    """Columns that are not read."""
    return Side(f"{raw} IS NULL", typed=("NULL",) * count)


def not_decoded(texts: Sequence[str], prefix: str) -> list[str]:
    """Per column, that it has a text but no value."""
    return [f"({text} IS NOT NULL AND {prefix}{i} IS NULL)" for i, text in enumerate(texts)]
