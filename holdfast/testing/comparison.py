"""Compares actual with expected records, and describes the first difference."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from holdfast.runtime.plan import json_text
from holdfast.runtime.plan.json_text import JsonValue
from holdfast.testing.case import CaseRecord, Header, Window
from holdfast.testing.wire import Undecodable, Wire, WireRecord
from holdfast.types import Array, Map, Scalar, SqlType, Struct
from holdfast.types import Decimal as DecimalType

TOLERANCE = 0.000001
"""Tolerance when comparing DOUBLEs."""
MAX_CHARACTERS = 300


def difference(expected: Sequence[CaseRecord], actual: Sequence[WireRecord], wire: Wire) -> str | None:
    """The first difference from the expected records of a topic, as text; None if there is none."""
    for number, (wanted, found) in enumerate(zip(expected, actual, strict=False), start=1):
        problem = record_difference(wanted, found, wire)
        if problem is not None:
            return f"record {number}: {problem}"
    if len(expected) != len(actual):
        more = f"; the next is {_record_text(actual[len(expected)], wire)}" if len(actual) > len(expected) else ""
        return f"expected {len(expected)} records, got {len(actual)}{more}"
    return None


def record_difference(expected: CaseRecord, actual: WireRecord, wire: Wire) -> str | None:
    try:
        (key, window), value = wire.key(actual.key), wire.value(actual.value)
    except Undecodable as problem:
        return str(problem)
    if not same(expected.key, key, wire.key_type):
        return f"key: expected {to_text(expected.key)}, got {to_text(key)}"
    if expected.window != window:
        return f"window: expected {_window_text(expected.window)}, got {_window_text(window)}"
    if not same(expected.value, value, wire.value_type):
        return f"value: expected {to_text(expected.value)}, got {to_text(value)}"
    if expected.timestamp is not None and expected.timestamp != actual.timestamp:
        return f"timestamp: expected {expected.timestamp}, got {actual.timestamp}"
    if _pairs(expected.headers) != actual.headers:
        return f"headers: expected {_headers_text(_pairs(expected.headers))}, got {_headers_text(actual.headers)}"
    return None


def same(expected: JsonValue, actual: JsonValue, type_: SqlType | None = None) -> bool:
    """Whether a value equals the expected one; the type decides how numbers are compared."""
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
    """The same number of fields with equal values. ksqlDB's tests may write names in lower case.

    As in ksqlDB's tests, a missing field is NULL.
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
        integral = wanted == wanted.to_integral_value() and found == found.to_integral_value()
        return wanted == found and (integral or wanted.as_tuple().exponent == found.as_tuple().exponent)
    if type_ in (Scalar.DOUBLE, None):
        return abs(float(wanted) - float(found)) <= TOLERANCE
    return wanted == found


# ---- text


def to_text(value: JsonValue) -> str:
    text = json_text.write(value).decode()
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"


def _window_text(window: Window | None) -> str:
    return "none" if window is None else f"{'session' if window.session else 'time'} {window.start}..{window.end}"


def _pairs(headers: Sequence[Header]) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((header.key, header.value) for header in headers)


def _headers_text(headers: Sequence[tuple[str, object]]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in headers) or "none"


def _record_text(record: WireRecord, wire: Wire) -> str:
    try:
        (key, window), value = wire.key(record.key), wire.value(record.value)
    except Undecodable as problem:
        return str(problem)
    windowed = "" if window is None else f" ({_window_text(window)})"
    return f"{to_text(key)}{windowed}: {to_text(value)} at {record.timestamp}"
