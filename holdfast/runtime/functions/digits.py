"""ROUND and TRUNC, to a number of decimal places; a negative number counts places left of the decimal point.

DOUBLEs are rounded through their shortest decimal text, as Java's BigDecimal.valueOf does; numbers beyond the range of
DECIMAL are returned unchanged.
"""

from collections.abc import Callable
from decimal import Decimal as Number

from holdfast.runtime.expressions.physical import NotRenderable, duckdb_type, spark_type
from holdfast.runtime.functions.declaration import (
    Arguments,
    Constant,
    Example,
    ScalarForm,
    ScalarFunction,
    Template,
    first,
)
from holdfast.runtime.functions.maths import CARRY, INTEGRAL_FROM
from holdfast.runtime.functions.parameters import DECIMAL, Chosen
from holdfast.runtime.functions.spark_sql import let
from holdfast.types import Decimal, Scalar, SqlType

CATEGORY = "MATHEMATICAL"
INTEGER, BIGINT, DOUBLE = Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE

_EXACT, _LARGE, _SMALL = Decimal(38, 18), Decimal(38, 0), Decimal(38, 38)

Rounding = Callable[[str, int], str]


def _nearest(value: str, places: int) -> str:
    """Ties round up. Negative ties are a separate case, because `round` rounds them away from zero."""
    unit, half = (f"{Number(digit).scaleb(-places - shift):f}BD" for digit, shift in ((1, 0), (5, 1)))
    return f"CASE WHEN {value} % {unit} = -{half} THEN ceil({value}, {places}) ELSE round({value}, {places}) END"


def _towards_zero(value: str, places: int) -> str:
    return f"CASE WHEN {value} < 0 THEN ceil({value}, {places}) ELSE floor({value}, {places}) END"


def _rounded(value: str, type_: Decimal, places: int, rounding: Rounding, returns: SqlType) -> str:
    if places >= type_.scale:
        return f"CAST({value} AS {spark_type(returns)})"
    if places <= type_.scale - type_.precision - 1:
        return f"CAST({value} * 0 AS {spark_type(returns)})"
    return f"CAST({rounding(value, places)} AS {spark_type(returns)})"


def _rounded_to_places(value: str, arguments: Arguments, type_: Decimal, rounding: Rounding, returns: SqlType) -> str:
    """Spark rounds only to a constant number of places; a computed number needs a case for each value."""
    if len(arguments.texts) == 1:
        return _rounded(value, type_, 0, rounding, returns)
    constant, places = arguments.constants[1], arguments.texts[1]
    if isinstance(constant, int):
        return _rounded(value, type_, constant, rounding, returns)
    least, greatest = type_.scale - type_.precision - 1, type_.scale
    inner = " ".join(
        f"WHEN {places} = {n} THEN {_rounded(value, type_, n, rounding, returns)}" for n in range(least + 1, greatest)
    )
    return (
        f"CASE WHEN {places} <= {least} THEN {_rounded(value, type_, least, rounding, returns)} {inner}"
        f" WHEN {places} >= {greatest} THEN {_rounded(value, type_, greatest, rounding, returns)} END"
    )


def _decimal(rounding: Rounding) -> Template:
    def write(a: Arguments) -> str:
        type_ = a.type(0)
        assert isinstance(type_, Decimal)
        return let(a.texts[0], lambda value: _rounded_to_places(value, a, type_, rounding, a.returns), "n_")

    return write


def _duckdb_nearest(a: Arguments) -> str:
    """Like `_nearest`, except that a cast does the rounding."""
    type_, constant = a.type(0), a.constants[1] if len(a.constants) > 1 else 0
    assert isinstance(type_, Decimal)
    if not isinstance(constant, int) or constant < 0:
        raise NotRenderable("ROUND to a computed or negative number of places")
    places = min(constant, type_.scale)
    value = a.texts[0]
    if places < type_.scale:
        unit = f"0.{'0' * (type_.scale - 1)}1"
        value = f"CASE WHEN {value} < 0 THEN {value} + {unit} ELSE {value} END"
    middle = Decimal(min(type_.precision + 1, 38), places)
    return f"TRY_CAST(TRY_CAST({value} AS {duckdb_type(middle)}) AS {duckdb_type(a.returns)})"


def _exact_types(places: Constant) -> tuple[Decimal, ...]:
    """The types in which a DOUBLE is rounded: the first that can hold it. Computed places use the default type."""
    if not isinstance(places, int) or 0 <= places <= _EXACT.scale:
        return (_EXACT,)
    return (_EXACT, _LARGE) if places < 0 else (_SMALL,)


def _rounded_as(value: str, type_: Decimal, arguments: Arguments, rounding: Rounding) -> str:
    exact = f"CAST(CAST({value} AS STRING) AS {spark_type(type_)})"
    return let(exact, lambda number: _rounded_to_places(number, arguments, type_, rounding, DOUBLE), "exact_")


def _double(rounding: Rounding) -> Template:
    def write(a: Arguments) -> str:
        def body(value: str) -> str:
            rounded = (_rounded_as(value, type_, a, rounding) for type_ in _exact_types(a.constants[1]))
            finite = f"abs({value}) < CAST('Infinity' AS DOUBLE)"
            return f"CASE WHEN {a.texts[1]} IS NOT NULL AND {finite} THEN COALESCE({', '.join(rounded)}, {value}) END"

        return let(a.texts[0], body, "n_")

    return write


def _integer_part(types: tuple[Chosen, ...]) -> SqlType:
    source = first(types)
    assert isinstance(source, Decimal)
    return Decimal(max(source.precision - source.scale, 1), 0)


def _function(
    name: str, doc: str, rounding: Rounding, duckdb: Template | None, double: ScalarForm, *examples: Example
) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        arguments=("number", "places"),
        doc=doc,
        forms=(
            ScalarForm(parameters=(INTEGER,), returns=BIGINT, spark="CAST({0} AS BIGINT)", duckdb="{0}::BIGINT"),
            ScalarForm(parameters=(BIGINT,), returns=BIGINT, spark="{0}", duckdb="{0}"),
            ScalarForm(
                parameters=(DECIMAL,), returns=_integer_part, shown="DECIMAL", spark=_decimal(rounding), duckdb=duckdb
            ),
            double,
            ScalarForm(parameters=(DECIMAL, INTEGER), returns=first, spark=_decimal(rounding), duckdb=duckdb),
            ScalarForm(parameters=(DOUBLE, INTEGER), returns=DOUBLE, spark=_double(rounding), duckdb=None),
        ),
        examples=examples,
    )


def _nearest_integer(a: Arguments) -> str:
    """Not `floor(n + 0.5)`: the addition itself rounds."""

    def body(n: str) -> str:
        up = f"CASE WHEN {n} - floor({n}) >= 0.5D THEN 1L ELSE 0L END"
        return f"CASE WHEN abs({n}) < {INTEGRAL_FROM} THEN floor({n}) + {up} ELSE CAST({n} AS BIGINT) END"

    return let(a.texts[0], body, "n_")


_DUCKDB_NEAREST_INTEGER = "(floor({0}) + CASE WHEN {0} - floor({0}) >= 0.5 THEN 1 ELSE 0 END)"


def _saturated(sql: str) -> str:
    """DuckDB: cast a DOUBLE to BIGINT as Java does."""
    return (
        "CASE WHEN isnan({0}) THEN 0 WHEN {0} >= 9223372036854775807 THEN 9223372036854775807"
        f" WHEN {{0}} <= -9223372036854775808 THEN -9223372036854775808 ELSE CAST({sql} AS BIGINT) END"
    )


FUNCTIONS = (
    _function(
        "ROUND",
        "Rounds to the given number of decimal places, 0 by default. Ties round up. "
        f"{CARRY} NaN and the infinities cannot be rounded to decimal places.",
        _nearest,
        _duckdb_nearest,
        ScalarForm(
            parameters=(DOUBLE,),
            returns=BIGINT,
            spark=_nearest_integer,
            duckdb=_saturated(_DUCKDB_NEAREST_INTEGER),
        ),
        Example(call="ROUND(1.5)", gives="CAST(2 AS DECIMAL(1, 0))"),
        Example(call="ROUND(-1.5)", gives="CAST(-1 AS DECIMAL(1, 0))"),
        Example(call="ROUND(CAST(2.345 AS DOUBLE), 2)", gives="CAST(2.35 AS DOUBLE)"),
        Example(call="ROUND(1234.5, -2)", gives="CAST(1200 AS DECIMAL(5, 1))"),
    ),
    _function(
        "TRUNC",
        "Truncates a number toward zero to the given number of decimal places, 0 by default.",
        _towards_zero,
        None,
        ScalarForm(parameters=(DOUBLE,), returns=BIGINT, spark="CAST({0} AS BIGINT)", duckdb=_saturated("trunc({0})")),
        Example(call="TRUNC(-1.9)", gives="CAST(-1 AS DECIMAL(1, 0))"),
        Example(call="TRUNC(CAST(2.349 AS DOUBLE), 2)", gives="CAST(2.34 AS DOUBLE)"),
    ),
)
