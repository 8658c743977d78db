"""Arithmetic, comparison and LIKE in both dialects."""

from holdfast.runtime.expressions.coercion import MAX_PRECISION
from holdfast.runtime.expressions.comparable import comparable
from holdfast.runtime.expressions.java import wrap32, wrap64
from holdfast.runtime.expressions.physical import Dialect, NotRenderable, physical_type, string_literal
from holdfast.runtime.expressions.tree import Operator
from holdfast.types import Array, Decimal, Map, Scalar, SqlType, Struct


def arithmetic(operator: Operator, type_: SqlType, left: str, right: str, dialect: Dialect) -> str:
    """Both operands already have `type_`. Integers wrap; division by zero is NULL."""
    if type_ is Scalar.STRING:
        return f"concat({left}, {right})" if dialect is Dialect.SPARK else f"({left} || {right})"
    symbol = operator.value
    if dialect is Dialect.SPARK:
        if operator is Operator.DIVIDE and type_ in (Scalar.INTEGER, Scalar.BIGINT):
            return f"CAST({left} div {right} AS {physical_type(type_, dialect)})"
        return f"({left} {symbol} {right})"
    divides = operator in (Operator.DIVIDE, Operator.MODULUS)
    if type_ is Scalar.DOUBLE:
        return f"(CASE WHEN {right} <> 0 THEN {left} {symbol} {right} END)" if divides else f"({left} {symbol} {right})"
    wide, wrap = ("BIGINT", wrap32) if type_ is Scalar.INTEGER else ("HUGEINT", wrap64)
    if operator is Operator.DIVIDE:
        symbol = "//"
    wrapped = wrap(f"({left}::{wide} {symbol} {right}::{wide})")
    return f"(CASE WHEN {right} <> 0 THEN {wrapped} END)" if divides else wrapped


def decimal_arithmetic(
    operator: Operator, left: tuple[str, Decimal], right: tuple[str, Decimal], result: Decimal, dialect: Dialect
) -> str:
    """Operands keep their own precision, because both engines derive the result's from it."""
    (a, left_type), (b, right_type) = left, right
    text = f"({a} {operator.value} {b})"
    if dialect is Dialect.SPARK:
        return f"CAST({text} AS {physical_type(result, dialect)})"
    if operator in (Operator.DIVIDE, Operator.MODULUS):
        raise NotRenderable(f"{operator.value} of DECIMALs")
    digits = (
        left_type.precision + right_type.precision + 1
        if operator is Operator.MULTIPLY
        else max(left_type.precision - left_type.scale, right_type.precision - right_type.scale) + result.scale + 1
    )
    if digits > MAX_PRECISION:
        raise NotRenderable(f"{operator.value} of DECIMALs with {digits} digits")
    # DuckDB computes in the width of the wider operand and raises beyond it.
    widened = f"CAST({a} AS DECIMAL({digits},{left_type.scale}))"
    return f"CAST(({widened} {operator.value} {b}) AS {physical_type(result, dialect)})"


def negate(type_: SqlType, text: str, dialect: Dialect) -> str:
    if dialect is Dialect.SPARK or type_ is Scalar.DOUBLE or isinstance(type_, Decimal):
        return f"(- {text})"
    return wrap32(f"(- {text}::BIGINT)") if type_ is Scalar.INTEGER else wrap64(f"(- {text}::HUGEINT)")


def comparison(operator: Operator, type_: SqlType, left: str, right: str, dialect: Dialect) -> str:
    """Both operands already have `type_`; NULL when one is NULL, except for IS [NOT] DISTINCT FROM."""
    if dialect is Dialect.SPARK:
        left, right = comparable(left, type_), comparable(right, type_)
        if operator is Operator.IS_DISTINCT:
            return f"(NOT ({left} <=> {right}))"
        if operator is Operator.IS_NOT_DISTINCT:
            return f"({left} <=> {right})"
    elif isinstance(type_, (Map, Struct, Array)):
        raise NotRenderable(f"comparison of {type_}")
    return f"({left} {operator.value} {right})"


# ---- LIKE

_ESCAPE = "\\"


def like(operand: str, pattern: str, dialect: Dialect) -> str:
    """LIKE with a computed pattern: % and _ are wildcards, and cannot be escaped."""
    if dialect is Dialect.SPARK:
        backslash, doubled = string_literal(_ESCAPE, dialect), string_literal(_ESCAPE * 2, dialect)
        return f"({operand} LIKE replace({pattern}, {backslash}, {doubled}))"
    return f"({operand} LIKE {pattern})"


def like_constant(operand: str, pattern: str, escape: str | None, dialect: Dialect) -> str:
    """LIKE with a constant pattern, rewritten so that its escape character is a backslash in both engines."""
    literal = string_literal(_backslash_pattern(pattern, escape), dialect)
    if dialect is Dialect.SPARK:
        return f"({operand} LIKE {literal})"
    return f"({operand} LIKE {literal} ESCAPE {string_literal(_ESCAPE, dialect)})"


def _backslash_pattern(pattern: str, escape: str | None) -> str:
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            character = next(characters, character)
            parts.append(_ESCAPE + character if character in "%_\\" else character)
        else:
            parts.append(_ESCAPE * 2 if character == _ESCAPE else character)
    return "".join(parts)
