"""Rows that a step of a query skips.

They stay in the relation until the end of the query's SQL, as undecodable records do: `bad` has the reason, so that
the tick counts them without a second pass.
"""

from collections.abc import Iterable
from dataclasses import replace
from enum import IntEnum

from holdfast.runtime import physical_columns as col
from holdfast.runtime.spark.relation import StreamRelation


class Skip(IntEnum):
    """Why a row is skipped. The numbers are values of `bad`, after those of the decoder."""

    NO_GROUP = 3
    NO_NEW_KEY = 4
    NO_JOIN_KEY = 5
    NO_TIMESTAMP = 6

    @property
    def reason(self) -> str:
        return REASONS[self]


REASONS = {
    Skip.NO_GROUP: "the row has no value, or NULL in its GROUP BY key",
    Skip.NO_NEW_KEY: "the new key of the row is NULL",
    Skip.NO_JOIN_KEY: "the row has no value, or NULL in its join key",
    Skip.NO_TIMESTAMP: "the timestamp column is NULL, negative, or does not match its format",
}


def skip_unless(source: StreamRelation, unless: str, skip: Skip) -> StreamRelation:
    """The rows of a stream; those for which `unless` is false are skipped."""
    chosen = marked([*source.keys, *source.values, *source.rest], unless, skip)
    return replace(source, sql=f"SELECT {chosen} FROM ({source.sql})")


def marked(names: Iterable[str], unless: str, skip: Skip) -> str:
    """The columns `names` of a SELECT, with `bad` set to `skip` in rows for which `unless` is false."""
    bad = f"IF(bad = 0 AND NOT ({unless}), {skip}, bad) AS bad"
    return ", ".join(bad if name == col.BAD else name for name in names)
