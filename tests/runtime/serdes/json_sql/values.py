"""Typed values of parsed JSON at any depth, and the conditions under which a value is invalid.

Lambda variables are numbered by depth, so that lambdas can nest. A lambda over a one-element array binds a long
expression to a name.
"""

from collections.abc import Callable, Iterable

from holdfast.runtime.expressions.casts import struct
from holdfast.runtime.expressions.physical import Dialect, field_name
from holdfast.runtime.serdes.scalar_text import decimal_sql, fitted_sql, is_wide, literal, moment_sql
from holdfast.types import Array, Decimal, Map, Scalar, SqlType, Struct

from .names import spellings
from .parse import field_sql

Leaf = Callable[[str, SqlType], str | None]
"""A condition on a leaf, the scalar values of a type; None where it is never true."""

_CONVERTED_TO_DOUBLE = '^(-?[0-9]+[.][0-9]+(E-?[0-9]+)?|"-?Infinity")$'


def typed_sql(value: str, type_: SqlType, seen: frozenset[str], depth: int = 0) -> str:
    """The typed value; NULL where a scalar cannot be read as its type."""
    name = f"x{depth}"
    match type_:
        case Array(element):
            inner = typed_sql(name, element, seen, depth + 1)
            return value if inner == name else f"transform({value}, {name} -> {inner})"
        case Map(_, item):
            # A parsed map may have duplicate keys; map_from_arrays keeps the last entry of each.
            inner = typed_sql(f"map_values({value})", Array(item), seen, depth)
            return f"map_from_arrays(map_keys({value}), {inner})"
        case Struct(fields) if _is_name(value):
            parts = [
                (field_name(i), typed_sql(field_sql(value, names), field.type, seen, depth))
                for i, (names, field) in enumerate(zip(_spelled(type_, seen), fields, strict=True))
            ]
            return f"IF({value} IS NULL, NULL, {struct(parts, Dialect.SPARK)})"
        case Struct():
            return f"transform(array({value}), {name} -> {typed_sql(name, type_, seen, depth + 1)})[0]"
        case _:
            return scalar_sql(value, type_)


def scalar_sql(text: str, type_: Scalar | Decimal) -> str:
    match type_:
        case Scalar.BOOLEAN | Scalar.STRING:
            return text
        case Scalar.INTEGER:
            return _integer(text, "INT", 31)
        case Scalar.BIGINT:
            return _integer(text, "BIGINT", 63)
        case Scalar.DOUBLE:
            return f"CAST({text} AS DOUBLE)"
        case Scalar.BYTES:
            return f"try_to_binary({text}, 'base64')"
        case Scalar.DATE | Scalar.TIME | Scalar.TIMESTAMP:
            return moment_sql(_integer(text, "BIGINT", 63), type_)
        case Decimal():
            return decimal_sql(text, type_) if is_wide(type_) else fitted_sql(text, type_)


def _integer(text: str, spark: str, bits: int) -> str:
    """An integer in range. Spark writes fractional numbers from ten million on with an exponent, which CAST rejects."""
    number = f"CAST({text} AS DECIMAL(38,9))"
    cut = f"IF({number} > -{2**bits + 1} AND {number} < {2**bits}, CAST({number} AS {spark}), NULL)"
    return f"coalesce(CAST({text} AS {spark}), {cut})"


# ---- conditions


def failed(value: str, type_: SqlType) -> str | None:
    """The condition that a leaf is not NULL but cannot be read as its type."""
    if type_ in (Scalar.BOOLEAN, Scalar.STRING):
        return None
    assert isinstance(type_, Scalar | Decimal)
    return f"({value} IS NOT NULL AND {scalar_sql(value, type_)} IS NULL)"


def inexact(value: str, type_: SqlType) -> str | None:
    """The condition that Spark may have converted a leaf to double and lost digits that its type can hold."""
    if type_ is Scalar.STRING or (isinstance(type_, Decimal) and is_wide(type_)):
        return f"coalesce({value} RLIKE {literal(_CONVERTED_TO_DOUBLE)}, false)"
    return None


def anywhere(value: str, type_: SqlType, leaf: Leaf, seen: frozenset[str], depth: int = 0) -> str | None:
    """The condition that `leaf` holds for some leaf of a value."""
    name = f"x{depth}"
    match type_:
        case Array(element):
            inner = anywhere(name, element, leaf, seen, depth + 1)
            return inner and f"coalesce(exists({value}, {name} -> {inner}), false)"
        case Map(_, item):
            return anywhere(f"map_values({value})", Array(item), leaf, seen, depth)
        case Struct(fields) if _is_name(value):
            conditions = (
                anywhere(field_sql(value, names), field.type, leaf, seen, depth)
                for names, field in zip(_spelled(type_, seen), fields, strict=True)
            )
            return either(conditions)
        case Struct():
            inner = anywhere(name, type_, leaf, seen, depth + 1)
            return inner and f"exists(array({value}), {name} -> {inner})"
        case _:
            return leaf(value, type_)


def either(conditions: Iterable[str | None]) -> str | None:
    possible = [condition for condition in conditions if condition]
    return f"({' OR '.join(possible)})" if possible else None


def _spelled(type_: Struct, seen: frozenset[str]) -> list[list[str]]:
    return spellings([field.name for field in type_.fields], seen)


def _is_name(value: str) -> bool:
    return value.isidentifier()
