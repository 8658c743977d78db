"""Lossless JSON: numbers keep their scale, and constructs that JSON leaves undefined are rejected."""

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from holdfast.errors import PlanError

JsonValue: TypeAlias = "str | int | Decimal | bool | list[JsonValue] | dict[str, JsonValue] | None"


def read(document: bytes) -> JsonValue:
    """The value of a JSON document in UTF-8. Numbers with a point or exponent become `Decimal`.

    Rejects what parsers interpret differently: repeated names, NaN and infinity, unpaired surrogates.
    """
    try:
        text = document.decode()
        value: JsonValue = json.loads(
            text, parse_float=Decimal, parse_constant=_refuse_constant, object_pairs_hook=_object
        )
        if "\\u" in text:
            write(value)
    except UnicodeDecodeError as error:
        raise PlanError("plan is not valid UTF-8", detail=f"The byte at offset {error.start} is invalid.") from None
    except UnicodeEncodeError:
        raise PlanError("plan is not valid Unicode", detail="It contains an unpaired surrogate.") from None
    except json.JSONDecodeError as error:
        where = f"{error.msg}, at line {error.lineno}, column {error.colno}."
        raise PlanError("plan is not valid JSON", detail=where) from None
    except (ValueError, InvalidOperation):
        # Python limits the digits of an integer, and decimal the size of an exponent.
        raise PlanError("plan is not valid JSON", detail="It contains a number that is out of range.") from None
    return value


def write(value: JsonValue) -> bytes:
    """The JSON document of a value, without spaces; the inverse of `read`."""
    return "".join(_parts(value)).encode()


def indented(value: JsonValue) -> str:
    """The same document for people: one property or element per line."""
    return "".join(_indented(value, "\n"))


def describe(value: JsonValue) -> str:
    """The kind of a value, for an error message."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return "a number"


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise PlanError("plan is not valid JSON", detail=f'An object has the property "{repeated}" twice.')
    return found


def _refuse_constant(name: str) -> JsonValue:
    raise PlanError("plan is not valid JSON", detail=f"{name} is not a JSON number.")


def _parts(value: JsonValue) -> Iterator[str]:
    match value:
        case dict():
            separator = "{"
            for name, member in value.items():
                yield f"{separator}{json.dumps(name, ensure_ascii=False)}:"
                yield from _parts(member)
                separator = ","
            yield "}" if value else "{}"
        case list():
            separator = "["
            for element in value:
                yield separator
                yield from _parts(element)
                separator = ","
            yield "]" if value else "[]"
        case Decimal():
            yield _number(value)
        case _:
            yield json.dumps(value, ensure_ascii=False)


def _indented(value: JsonValue, line: str) -> Iterator[str]:
    match value:
        case dict() if value:
            names = (f"{json.dumps(name, ensure_ascii=False)}: " for name in value)
            yield from _block("{}", zip(names, value.values(), strict=True), line)
        case list() if value:
            yield from _block("[]", (("", element) for element in value), line)
        case _:
            yield from _parts(value)


def _block(brackets: str, members: Iterable[tuple[str, JsonValue]], line: str) -> Iterator[str]:
    separator = brackets[0]
    for name, member in members:
        yield f"{separator}{line}  {name}"
        yield from _indented(member, f"{line}  ")
        separator = ","
    yield f"{line}{brackets[1]}"


def _number(value: Decimal) -> str:
    # str() turns 0.000000000 into 0E-9: the same number and scale, but hard to read. For more digits it is the safe
    # form: written out, 1E-999999999 takes a gigabyte.
    exponent = value.as_tuple().exponent
    return format(value, "f") if isinstance(exponent, int) and -20 < exponent <= 0 else str(value)
