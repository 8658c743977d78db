"""One side of a record, its key or its value: what it holds, and how it is decoded."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.runtime.plan.formats import FormatInfo, Formats, SerdeFeature, SerdeOption
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.serdes.scalar_text import literal
from holdfast.types import Column, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSide:
    """The key or the value of a topic's records; `unwrapped` when its only column is written without an object."""

    columns: Sequence[Column]
    info: FormatInfo
    prefix: str
    """`k` for keys, `c` for values; the columns of rows are the prefix and a number."""
    unwrapped: bool = False

    @property
    def raw(self) -> str:
        """The column of the raw records that holds the bytes."""
        return "key" if self.prefix == "k" else "value"

    @property
    def physical(self) -> list[str]:
        """The columns of rows, in order."""
        return [f"{self.prefix}{i}" for i in range(len(self.columns))]


def record_sides(schema: Schema, formats: Formats) -> tuple[RecordSide, RecordSide]:
    """The key and the value of a topic's records."""
    return (
        RecordSide(
            columns=schema.key, info=formats.key_format, prefix="k", unwrapped=key_is_unwrapped(schema.key, formats)
        ),
        RecordSide(columns=schema.value, info=formats.value_format, prefix="c", unwrapped=value_is_unwrapped(formats)),
    )


def key_is_unwrapped(key: Sequence[Column], formats: Formats) -> bool:
    """A key of one column is written without an object around it, unless the plan says otherwise."""
    return len(key) == 1 and SerdeFeature.WRAP_SINGLES not in (value_of(formats.key_features) or ())


def value_is_unwrapped(formats: Formats) -> bool:
    """A single value is wrapped in an object, unless the plan says otherwise; plans of ksqlDB say so in two ways."""
    unwrapped = SerdeFeature.UNWRAP_SINGLES in (value_of(formats.value_features) or ())
    return unwrapped or SerdeOption.UNWRAP_SINGLE_VALUES in (value_of(formats.options) or ())


@dataclass(frozen=True, slots=True)
class DecodeFailure:
    """The condition under which a record cannot be decoded, and the reason; both are Spark SQL."""

    when: str
    why: str


@dataclass(frozen=True, slots=True)
class DecodedSide:
    """The Spark SQL that decodes a side, in levels: `parsed` once per record, `texts` over it, `typed` over the texts.

    `failed` are the failures that it checks for, over all of these. They do not apply where `absent`: the record has no
    key or no value.
    """

    absent: str
    parsed: tuple[tuple[str, str], ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    typed: tuple[str, ...] = ()
    failed: tuple[DecodeFailure, ...] = ()


def not_decoded(texts: Sequence[str], side: RecordSide) -> list[DecodeFailure]:
    """For each column, the failure that it has a text but no typed value."""
    return [
        DecodeFailure(f"({text} IS NOT NULL AND {name} IS NULL)", unreadable(column))
        for text, name, column in zip(texts, side.physical, side.columns, strict=True)
    ]


def unreadable(column: Column) -> str:
    return literal(f'column "{column.name}" cannot be read as {column.type}')
