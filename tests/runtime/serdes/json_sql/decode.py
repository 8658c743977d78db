"""JSON records to typed columns as Spark SQL, `from_json` and casts: the reference of the native function."""

from collections.abc import Sequence

from holdfast.runtime.serdes.scalar_text import literal
from holdfast.runtime.serdes.side import DecodedSide, DecodeFailure, RecordSide, not_decoded, unreadable
from holdfast.types import Column, Scalar, is_scalar

from . import values
from .names import spellings
from .parse import CORRUPT, UNWRAPPED, field_sql, parse_sql, quote_fractions, text_sql

NULL = "X'6E756C6C'"


def decode_json(side: RecordSide, seen: frozenset[str]) -> DecodedSide:
    """The decoding of JSON keys or values; `seen` are the names in the records."""
    columns, raw, prefix, unwrapped = side.columns, side.raw, side.prefix, side.unwrapped
    absent = f"({raw} IS NULL OR {raw} = {NULL})"
    if not columns:
        return DecodedSide(absent)
    parsed, names = f"{prefix}j", [f"{prefix}t{i}" for i in range(len(columns))]
    spelled = [[UNWRAPPED]] if unwrapped else spellings([c.name for c in columns], seen)
    text = text_sql(raw, unwrapped=unwrapped)
    found = [
        _exact_sql(field_sql(parsed, fields), text, fields, column, seen)
        for fields, column in zip(spelled, columns, strict=True)
    ]
    return DecodedSide(
        absent=absent,
        parsed=((parsed, parse_sql(text, spelled, columns, seen)),),
        texts=tuple(zip(names, found, strict=True)),
        typed=tuple(values.typed_sql(name, c.type, seen) for name, c in zip(names, columns, strict=True)),
        failed=(
            DecodeFailure(_corrupt(raw, parsed), _reason(raw, text, spelled, columns, seen, unwrapped=unwrapped)),
            *_invalid_values(names, side, seen),
        ),
    )


def _exact_sql(field: str, text: str, names: Sequence[str], column: Column, seen: frozenset[str]) -> str:
    """A column's texts; parsed again where a number must stay as it was written, which is rare."""
    inexact = values.anywhere(field, column.type, values.inexact, seen)
    if inexact is None:
        return field
    exact = parse_sql(quote_fractions(text), [names], [column], seen)
    again = f"transform(array({exact}), p -> {field_sql('p', names)})[0]"
    return f"IF({inexact}, {again}, {field})"


def _corrupt(raw: str, parsed: str) -> str:
    unreadable = f"octet_length({raw}) = 0 OR NOT is_valid_utf8(CAST({raw} AS STRING))"
    return f"({parsed} IS NULL OR {parsed}.{CORRUPT} IS NOT NULL OR {unreadable})"


def _reason(
    raw: str,
    text: str,
    spelled: Sequence[Sequence[str]],
    columns: Sequence[Column],
    seen: frozenset[str],
    *,
    unwrapped: bool,
) -> str:
    """Why Spark cannot parse a record. The columns are parsed one by one to find the one that fails."""
    whens = [
        (f"octet_length({raw}) = 0", literal(f"the {raw} is empty")),
        (f"NOT is_valid_utf8(CAST({raw} AS STRING))", literal(f"the {raw} is not UTF-8")),
        (f"json_object_keys({text}) IS NULL", literal(f"the {raw} is not {'JSON' if unwrapped else 'a JSON object'}")),
    ]
    for names, column in zip(spelled, columns, strict=True):
        if not isinstance(column.type, Scalar) or column.type is Scalar.BOOLEAN:
            alone = f"{parse_sql(text, [names], [column], seen)}.{CORRUPT} IS NOT NULL"
            whens.append((alone, unreadable(column)))
    cases = " ".join(f"WHEN {when} THEN {why}" for when, why in whens)
    return f"CASE {cases} ELSE {literal(f'the {raw} is not JSON')} END"


def _invalid_values(names: Sequence[str], side: RecordSide, seen: frozenset[str]) -> list[DecodeFailure]:
    found = []
    for name, column, scalar in zip(names, side.columns, not_decoded(names, side), strict=True):
        if is_scalar(column.type):
            never = values.failed(name, column.type) is None
            found += [] if never else [scalar]
        else:
            condition = values.anywhere(name, column.type, values.failed, seen)
            found += [DecodeFailure(condition, unreadable(column))] if condition else []
    return found
