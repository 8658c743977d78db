"""Functions of numbers. Whole numbers wrap around as Java's do."""

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

# From here on every DOUBLE is a whole number.
WHOLE = "4503599627370496"


CARRY = "A DECIMAL that would need one more digit than its type has is NULL: CAST it to a wider one before."


def wrap32(text: str) -> str:
    """DuckDB: a BIGINT as the INTEGER that 32-bit arithmetic would have given."""
    return f"CAST((({text} + 2147483648) & 4294967295) - 2147483648 AS INTEGER)"


def wrap64(text: str) -> str:
    """DuckDB: a HUGEINT as the BIGINT that 64-bit arithmetic would have given."""
    return (
        f"CAST((({text} + 9223372036854775808::HUGEINT) & 18446744073709551615::HUGEINT)"
        " - 9223372036854775808::HUGEINT AS BIGINT)"
    )


def _same(spark: str, duckdb: str, type_: Scalar) -> ScalarForm:
    return ScalarForm(parameters=(type_,), returns=type_, spark=spark, duckdb=duckdb)


def _step(name: str) -> tuple[ScalarForm, ...]:
    """FLOOR and CEIL: the type stays."""
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
            f"CASE WHEN abs({{0}}) < {WHOLE} THEN CAST({name}({{0}}) AS DOUBLE) ELSE {{0}} END",
            f"CASE WHEN abs({{0}}) < {WHOLE} THEN CAST(CAST({name}({{0}}) AS BIGINT) AS DOUBLE) ELSE {{0}} END",
            DOUBLE,
        ),
    )


FUNCTIONS = (
    ScalarFunction(
        name="ABS",
        doc="The number without its sign.",
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
        doc=f"The least whole number that is not less. {CARRY}",
        forms=_step("ceil"),
        examples=(Example(call="CEIL(CAST(1.2 AS DOUBLE))", gives="CAST(2 AS DOUBLE)"),),
    ),
    ScalarFunction(
        name="FLOOR",
        doc=f"The greatest whole number that is not greater. {CARRY}",
        forms=_step("floor"),
        examples=(Example(call="FLOOR(CAST(-1.2 AS DOUBLE))", gives="CAST(-2 AS DOUBLE)"),),
    ),
    ScalarFunction(
        name="SIGN",
        doc="-1, 0 or 1, as the number is negative, zero or positive.",
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
        doc="The square root; NaN of a negative number.",
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
