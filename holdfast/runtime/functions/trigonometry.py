"""Functions of DOUBLE; other numbers widen to it."""

from holdfast.runtime.functions.declaration import Example, ScalarForm, ScalarFunction, Template
from holdfast.types import Scalar

CATEGORY = "MATHEMATICAL"
DOUBLE = Scalar.DOUBLE

_NAN, _INFINITY = "double('NaN')", "double('Infinity')"


def _java(method: str, value: str) -> str:
    """What Java's Math gives; Spark's own is StrictMath, which differs in the last digit, and NULL at infinities."""
    return f"CASE WHEN {value} IS NOT NULL THEN CAST(reflect('java.lang.Math', '{method}', {value}) AS DOUBLE) END"


def _of(
    name: str, doc: str, call: str, gives: str, spark: Template | None = None, duckdb: Template | None = None
) -> ScalarFunction:
    form = ScalarForm(parameters=(DOUBLE,), returns=DOUBLE, spark=spark or f"{name.lower()}({{0}})", duckdb=duckdb)
    return ScalarFunction(
        name=name,
        arguments=("number",),
        doc=doc,
        forms=(form,),
        examples=(Example(call=call, gives=f"CAST({gives} AS DOUBLE)"),),
    )


FUNCTIONS = (
    _of("SIN", "The sine of an angle in radians.", "SIN(0)", "0"),
    _of("COS", "The cosine of an angle in radians.", "COS(0)", "1"),
    _of("TAN", "The tangent of an angle in radians.", "TAN(0)", "0"),
    _of(
        "COT",
        "The cotangent of an angle in radians.",
        "ROUND(COT(1), 6)",
        "0.642093",
        f"CASE WHEN {{0}} = 0 THEN {_INFINITY} ELSE cos({{0}}) / sin({{0}}) END",
    ),
    _of("ASIN", "The angle in radians with that sine; NaN outside of -1 and 1.", "ASIN(0)", "0"),
    _of("ACOS", "The angle in radians with that cosine; NaN outside of -1 and 1.", "ACOS(1)", "0"),
    _of("ATAN", "The angle in radians with that tangent.", "ATAN(0)", "0"),
    ScalarFunction(
        name="ATAN2",
        arguments=("y", "x"),
        doc="The angle in radians between the x axis and the point (x, y).",
        forms=(ScalarForm(parameters=(DOUBLE, DOUBLE), returns=DOUBLE, spark="atan2({0}, {1})", duckdb=None),),
        examples=(Example(call="ROUND(ATAN2(1, 1), 6)", gives="CAST(0.785398 AS DOUBLE)"),),
    ),
    _of("SINH", "The hyperbolic sine.", "SINH(0)", "0"),
    _of("COSH", "The hyperbolic cosine.", "COSH(0)", "1"),
    _of("TANH", "The hyperbolic tangent.", "TANH(0)", "0"),
    _of("DEGREES", "An angle in radians, in degrees.", "DEGREES(PI())", "180"),
    _of("RADIANS", "An angle in degrees, in radians.", "ROUND(RADIANS(180), 6)", "3.141593"),
    _of("CBRT", "The cube root.", "CBRT(27)", "3"),
    _of("EXP", "e to the power of a number.", "EXP(0)", "1", _java("exp", "{0}")),
    _of("LN", "The natural logarithm; -Infinity of zero, NaN of negative numbers.", "LN(1)", "0", _java("log", "{0}")),
    ScalarFunction(
        name="LOG",
        arguments=("base", "number"),
        doc="The logarithm to a base, or the natural one; -Infinity of zero, NaN of negative numbers and to bases that "
        "are not positive or are 1.",
        forms=(
            ScalarForm(parameters=(DOUBLE,), returns=DOUBLE, spark=_java("log", "{0}"), duckdb=None),
            ScalarForm(
                parameters=(DOUBLE, DOUBLE),
                returns=DOUBLE,
                spark=f"CASE WHEN {{1}} IS NULL THEN NULL WHEN {{0}} <= 0 OR {{0}} = 1 THEN {_NAN}"
                f" ELSE {_java('log', '{1}')} / {_java('log', '{0}')} END",
                duckdb=None,
            ),
        ),
        examples=(Example(call="LOG(2, 8)", gives="CAST(3 AS DOUBLE)"), Example(call="LOG(1)", gives="0E0")),
    ),
    ScalarFunction(
        name="POWER",
        arguments=("base", "exponent"),
        doc="A number to the power of another.",
        forms=(ScalarForm(parameters=(DOUBLE, DOUBLE), returns=DOUBLE, spark="pow({0}, {1})", duckdb=None),),
        examples=(Example(call="POWER(2, 10)", gives="CAST(1024 AS DOUBLE)"),),
    ),
    ScalarFunction(
        name="PI",
        doc="The number pi.",
        forms=(ScalarForm(parameters=(), returns=DOUBLE, spark="pi()", duckdb="pi()"),),
        examples=(Example(call="ROUND(PI(), 5)", gives="CAST(3.14159 AS DOUBLE)"),),
    ),
    ScalarFunction(
        name="RANDOM",
        doc="A new random number from 0 on, less than 1.",
        # Spark's rand() is seeded when a query is planned, and a plan runs many times.
        forms=(
            ScalarForm(
                parameters=(), returns=DOUBLE, spark="CAST(reflect('java.lang.Math', 'random') AS DOUBLE)", duckdb=None
            ),
        ),
        examples=(Example(call="RANDOM() >= 0", gives="true"),),
    ),
)
