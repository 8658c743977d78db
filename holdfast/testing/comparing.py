"""Compares what came with what was expected, and says the first difference in words."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from holdfast.runtime.plan import jsontext
from holdfast.runtime.plan.jsontext import JsonValue
from holdfast.testing.case import CaseRecord, Header, Window
from holdfast.testing.topics import Written
from holdfast.testing.wire import Undecodable, Wire
from holdfast.types import Array, Map, Scalar, SqlType, Struct
from holdfast.types import Decimal as DecimalType

MARGIN = 0.000001
"""How far apart two DOUBLEs may be."""
SHOWN = 300


def difference(expected: Sequence[CaseRecord], actual: Sequence[Written], wire: Wire) -> str | None:
    """How the records of a topic are not those expected, in their order; None when they are."""
    for number, (wanted, found) in enumerate(zip(expected, actual, strict=False), start=1):
        told = record_difference(wanted, found, wire)
        if told is not None:
            return f"record {number}: {told}"
    if len(expected) != len(actual):
        more = f"; the next is {_shown_record(actual[len(expected)], wire)}" if len(actual) > len(expected) else ""
        return f"{len(expected)} records expected, {len(actual)} came{more}"
    return None


def record_difference(expected: CaseRecord, actual: Written, wire: Wire) -> str | None:
    try:
        (key, window), value = wire.key(actual.key), wire.value(actual.value)
    except Undecodable as problem:
        return str(problem)
    if not same(expected.key, key, wire.key_type):
        return f"key {shown(expected.key)} expected, {shown(key)} came"
    if expected.window != window:
        return f"window {_shown_window(expected.window)} expected, {_shown_window(window)} came"
    if not same(expected.value, value, wire.value_type):
        return f"value {shown(expected.value)} expected, {shown(value)} came"
    if expected.timestamp is not None and expected.timestamp != actual.timestamp:
        return f"timestamp {expected.timestamp} expected, {actual.timestamp} came"
    came = tuple(Header(header["key"], header["value"]) for header in actual.headers or ())
    if expected.headers != came:
        return f"headers {_shown_headers(expected.headers)} expected, {_shown_headers(came)} came"
    return None


def same(expected: JsonValue, actual: JsonValue, type_: SqlType | None = None) -> bool:
    """Whether a value is the expected one; the type says how numbers are compared."""
    match expected:
        case None:
            return actual is None
        case bool():
            return actual is expected
        case dict():
            return isinstance(actual, dict) and _same_fields(expected, actual, type_)
        case list():
            element = type_.element if isinstance(type_, Array) else None
            return (
                isinstance(actual, list)
                and len(actual) == len(expected)
                and all(same(e, a, element) for e, a in zip(expected, actual, strict=True))
            )
        case str():
            return _same_text(expected, actual)
        case _:
            return _same_number(expected, actual, type_)


def _same_fields(expected: dict[str, JsonValue], actual: dict[str, JsonValue], type_: SqlType | None) -> bool:
    """The same number of fields, each under its own name or, as ksqlDB's tests may write it, in lower case.

    As there, a field that is not there at all is NULL.
    """
    if len(expected) != len(actual):
        return False
    types: dict[str, SqlType] = {field.name: field.type for field in type_.fields} if isinstance(type_, Struct) else {}
    for name, wanted in expected.items():
        found = name if name in actual else name.upper()
        inner = type_.value if isinstance(type_, Map) else types.get(found)
        if not same(wanted, actual.get(found), inner):
            return False
    return True


def _same_text(expected: str, actual: JsonValue) -> bool:
    if isinstance(actual, Decimal):
        try:
            return Decimal(expected).as_tuple() == actual.as_tuple()
        except InvalidOperation:
            return False
    return isinstance(actual, str) and actual == expected


def _same_number(expected: int | Decimal, actual: JsonValue, type_: SqlType | None) -> bool:
    if isinstance(actual, bool) or not isinstance(actual, int | Decimal):
        return False
    wanted, found = Decimal(expected), Decimal(actual)
    if isinstance(type_, DecimalType):
        whole = wanted == wanted.to_integral_value() and found == found.to_integral_value()
        return wanted == found and (whole or wanted.as_tuple().exponent == found.as_tuple().exponent)
    if type_ in (Scalar.DOUBLE, None):
        return abs(float(wanted) - float(found)) <= MARGIN
    return wanted == found


# ---- in words


def shown(value: JsonValue) -> str:
    text = jsontext.write(value).decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _shown_window(window: Window | None) -> str:
    return "none" if window is None else f"{'session' if window.session else 'time'} {window.start}..{window.end}"


def _shown_headers(headers: Sequence[Header]) -> str:
    return ", ".join(f"{header.key}={header.value!r}" for header in headers) or "none"


def _shown_record(record: Written, wire: Wire) -> str:
    try:
        (key, window), value = wire.key(record.key), wire.value(record.value)
    except Undecodable as problem:
        return str(problem)
    windowed = "" if window is None else f" ({_shown_window(window)})"
    return f"{shown(key)}{windowed}: {shown(value)} at {record.timestamp}"
