"""JSON records to typed columns."""

from collections.abc import Sequence
from itertools import chain

from holdfast.runtime.serdes.json import values
from holdfast.runtime.serdes.json.names import (
    field_names,
    found_at_the_top,
    found_inside,
    has_unknown,
    spellings,
)
from holdfast.runtime.serdes.json.parsing import (
    CORRUPT,
    UNWRAPPED,
    field_sql,
    parse_sql,
    text_sql,
    with_fractions_as_texts,
)
from holdfast.runtime.serdes.side import Failure, Side, not_decoded, unreadable
from holdfast.runtime.serdes.texts import literal
from holdfast.types import Column, Scalar, is_scalar

NULL = "X'6E756C6C'"


def side(columns: Sequence[Column], raw: str, *, unwrapped: bool, prefix: str, seen: frozenset[str]) -> Side:
    """The decoding of JSON keys or values."""
    absent = f"({raw} IS NULL OR {raw} = {NULL})"
    if not columns:
        return Side(absent)
    for column in columns:
        values.check(column)
    parsed, names = f"{prefix}j", [f"{prefix}t{i}" for i in range(len(columns))]
    spelled = [[UNWRAPPED]] if unwrapped else spellings([c.name for c in columns], seen)
    text = text_sql(raw, unwrapped=unwrapped)
    found = [
        _exact_sql(field_sql(parsed, own), text, own, column, seen)
        for own, column in zip(spelled, columns, strict=True)
    ]
    return Side(
        absent=absent,
        parsed=((parsed, parse_sql(text, spelled, columns, seen)),),
        texts=tuple(zip(names, found, strict=True)),
        typed=tuple(values.typed_sql(name, c.type, seen) for name, c in zip(names, columns, strict=True)),
        failed=(
            Failure(_corrupt(raw, parsed), _why(raw, text, spelled, columns, seen, unwrapped=unwrapped)),
            *_no_values(names, columns, prefix, seen),
        ),
        misspelled=_misspelled(raw, names, columns, spelled, seen, unwrapped=unwrapped),
    )


def names_sql(columns: Sequence[Column], raw: str, view: str, *, unwrapped: bool) -> list[str]:
    """The SELECTs of the names in a view's records that spell a column or a field."""
    found = [None if unwrapped else found_at_the_top(raw, columns), found_inside(raw, columns)]
    return [f"SELECT DISTINCT explode({names}) AS name FROM {view}" for names in found if names]


def _exact_sql(field: str, text: str, names: Sequence[str], column: Column, seen: frozenset[str]) -> str:
    """A column's texts; parsed once more where numbers must be as they are written, which is seldom."""
    inexact = values.anywhere(field, column.type, values.inexact, seen)
    if inexact is None:
        return field
    exact = parse_sql(with_fractions_as_texts(text), [names], [column], seen)
    again = f"transform(array({exact}), p -> {field_sql('p', names)})[0]"
    return f"IF({inexact}, {again}, {field})"


def _corrupt(raw: str, parsed: str) -> str:
    unreadable = f"octet_length({raw}) = 0 OR NOT is_valid_utf8(CAST({raw} AS STRING))"
    return f"({parsed} IS NULL OR {parsed}.{CORRUPT} IS NOT NULL OR {unreadable})"


def _why(
    raw: str,
    text: str,
    spelled: Sequence[Sequence[str]],
    columns: Sequence[Column],
    seen: frozenset[str],
    *,
    unwrapped: bool,
) -> str:
    """What a text that Spark cannot parse has; the columns are parsed one by one to find the one that it is not."""
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


def _no_values(names: Sequence[str], columns: Sequence[Column], prefix: str, seen: frozenset[str]) -> list[Failure]:
    found = []
    for name, column, scalar in zip(names, columns, not_decoded(names, columns, prefix), strict=True):
        if is_scalar(column.type):
            never = values.failed(name, column.type) is None
            found += [] if never else [scalar]
        else:
            condition = values.anywhere(name, column.type, values.failed, seen)
            found += [Failure(condition, unreadable(column))] if condition else []
    return found


def _misspelled(
    raw: str,
    names: Sequence[str],
    columns: Sequence[Column],
    spelled: Sequence[Sequence[str]],
    seen: frozenset[str],
    *,
    unwrapped: bool,
) -> str | None:
    known = {*seen, *chain(*spelled), *chain(*spellings(list(field_names(c.type for c in columns)), seen))}
    top = None if unwrapped else found_at_the_top(raw, columns)
    inside = found_inside(raw, columns)
    conditions = []
    if top:
        lacking = values.either(f"{name} IS NULL" for name in names)
        conditions.append(f"({lacking} AND {has_unknown(top, known)})")
    if inside:
        missing = values.either(values.lacks_a_field(n, c.type, seen) for n, c in zip(names, columns, strict=True))
        conditions.append(f"({missing} AND {has_unknown(inside, known)})")
    return values.either(conditions)
