"""Numeric functions. Integers wrap around on overflow, as in Java."""

from holdfast.runtime.expressions.java import wrap32, wrap64
from holdfast.runtime.expressions.physical import duckdb_type, spark_type
from holdfast.runtime.functions.declaration import (
    Example,
    ScalarForm,
    ScalarFunction,
    first,
)
from holdfast.runtime.functions.parameters import DECIMAL
from holdfast.types import Scalar

CATEGORY = "MATHEMATICAL"
INTEGER, BIGINT, DOUBLE = Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE

# From this magnitude up, every DOUBLE is an integer.
INTEGRAL_FROM = "4503599627370496"


CARRY = "NULL if the result needs one more digit than the DECIMAL type has; CAST the argument to a wider type first."


def _same(spark: str, duckdb: str, type_: Scalar) -> ScalarForm:
    return ScalarForm(parameters=(type_,), returns=type_, spark=spark, duckdb=duckdb)


def _floor_or_ceil(name: str) -> tuple[ScalarForm, ...]:
    """The forms of FLOOR and CEIL, which return the type of their argument."""
    return (
        _same("{0}", "{0}", INTEGER),
        _same("{0}", "{0}", BIGINT),
        ScalarForm(
            parameters=(DECIMAL,),
            returns=first,
            spark=lambda a: f"CAST({name}({a.texts[0]}) AS {spark_type(a.returns)})",
            duckdb=lambda a: f"TRY_CAST({name}({a.texts[0]}) AS {duckdb_type(a.returns)})",
        ),
        _same(
            f"CASE WHEN abs({{0}}) < {INTEGRAL_FROM} THEN CAST({name}({{0}}) AS DOUBLE) ELSE {{0}} END",
            f"CASE WHEN abs({{0}}) < {INTEGRAL_FROM} THEN CAST(CAST({name}({{0}}) AS BIGINT) AS DOUBLE) ELSE {{0}} END",
            DOUBLE,
        ),
    )


FUNCTIONS = (
    ScalarFunction(
        name="ABS",
        doc="Returns the absolute value.",
        forms=(
            _same("abs({0})", wrap32("abs({0}::BIGINT)"), INTEGER),
            _same("abs({0})", wrap64("abs({0}::HUGEINT)"), BIGINT),
            ScalarForm(parameters=(DECIMAL,), returns=first, spark="abs({0})", duckdb="abs({0})"),
            _same("abs({0})", "abs({0})", DOUBLE),
        ),
        examples=(Example(call="ABS(-5)", gives="5"),),
    ),
    ScalarFunction(
        name="CEIL",
        doc=f"Rounds up to the nearest integer. {CARRY}",
        forms=_floor_or_ceil("ceil"),
        examples=(Example(call="CEIL(CAST(1.2 AS DOUBLE))", gives="CAST(2 AS DOUBLE)"),),
    ),
    ScalarFunction(
        name="FLOOR",
        doc=f"Rounds down to the nearest integer. {CARRY}",
        forms=_floor_or_ceil("floor"),
        examples=(Example(call="FLOOR(CAST(-1.2 AS DOUBLE))", gives="CAST(-2 AS DOUBLE)"),),
    ),
    ScalarFunction(
        name="SIGN",
        doc="Returns -1, 0 or 1 for a negative number, zero or a positive number.",
        forms=tuple(
            ScalarForm(parameters=(type_,), returns=INTEGER, spark=text, duckdb=text)
            for type_, text in (
                (INTEGER, "CASE WHEN {0} > 0 THEN 1 WHEN {0} < 0 THEN -1 WHEN {0} = 0 THEN 0 END"),
                (BIGINT, "CASE WHEN {0} > 0 THEN 1 WHEN {0} < 0 THEN -1 WHEN {0} = 0 THEN 0 END"),
                (
                    DOUBLE,
                    "CASE WHEN isnan({0}) OR {0} = 0 THEN 0 WHEN {0} > 0 THEN 1 WHEN {0} < 0 THEN -1 END",
                ),
            )
        ),
        examples=(Example(call="SIGN(-7)", gives="-1"),),
    ),
    ScalarFunction(
        name="SQRT",
        doc="Returns the square root. NaN for a negative number.",
        forms=(
            ScalarForm(
                parameters=(DOUBLE,),
                returns=DOUBLE,
                spark="sqrt({0})",
                duckdb="CASE WHEN {0} < 0 THEN 'NaN'::DOUBLE ELSE sqrt({0}) END",
            ),
        ),
        examples=(Example(call="SQRT(9)", gives="CAST(3 AS DOUBLE)"),),
    ),
)
