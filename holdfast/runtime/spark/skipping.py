"""Rows that a step of a query has no place for.

They ride along to the end of the query's SQL, as records that cannot be decoded do: `bad` has the reason, and they are
counted there without a second pass.
"""

from collections.abc import Iterable
from dataclasses import replace
from enum import IntEnum

from holdfast.runtime.spark.relation import StreamRelation


class Skip(IntEnum):
    """Why a row is skipped. The numbers are values of `bad`, behind those of the decoder."""

    NO_GROUP = 3
    NO_NEW_KEY = 4
    NO_JOIN_KEY = 5
    NO_TIMESTAMP = 6

    @property
    def reason(self) -> str:
        return REASONS[self]


REASONS = {
    Skip.NO_GROUP: "the row has no value, or NULL in the key that it is grouped by",
    Skip.NO_NEW_KEY: "the row has NULL for its new key",
    Skip.NO_JOIN_KEY: "the row has no value, or NULL in the key that it is joined by",
    Skip.NO_TIMESTAMP: "the timestamp column is NULL, negative, or no time in its format",
}


def skipping(source: StreamRelation, unless: str, skip: Skip) -> StreamRelation:
    """The rows of a stream; those for which `unless` is false are skipped."""
    chosen = marked([*source.keys, *source.values, *source.rest], unless, skip)
    return replace(source, sql=f"SELECT {chosen} FROM ({source.sql})")


def marked(names: Iterable[str], unless: str, skip: Skip) -> str:
    """Columns of a SELECT over rows that have these, `bad` among them."""
    bad = f"IF(bad = 0 AND NOT ({unless}), {skip}, bad) AS bad"
    return ", ".join(bad if name == "bad" else name for name in names)
