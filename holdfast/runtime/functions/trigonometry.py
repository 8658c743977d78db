"""DOUBLE functions; other numbers are widened."""

from holdfast.runtime.functions.declaration import Example, ScalarForm, ScalarFunction, Template
from holdfast.types import Scalar

CATEGORY = "MATHEMATICAL"
DOUBLE = Scalar.DOUBLE

_NAN, _INFINITY = "double('NaN')", "double('Infinity')"


def _java(method: str, value: str) -> str:
    """Calls Java's Math: Spark uses StrictMath, which differs in the last digit, and returns NULL for infinities."""
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
    _of("SIN", "Returns the sine of an angle in radians.", "SIN(0)", "0"),
    _of("COS", "Returns the cosine of an angle in radians.", "COS(0)", "1"),
    _of("TAN", "Returns the tangent of an angle in radians.", "TAN(0)", "0"),
    _of(
        "COT",
        "Returns the cotangent of an angle in radians.",
        "ROUND(COT(1), 6)",
        "0.642093",
        f"CASE WHEN {{0}} = 0 THEN {_INFINITY} ELSE cos({{0}}) / sin({{0}}) END",
    ),
    _of("ASIN", "Returns the inverse sine, in radians. NaN for a number outside -1 to 1.", "ASIN(0)", "0"),
    _of("ACOS", "Returns the inverse cosine, in radians. NaN for a number outside -1 to 1.", "ACOS(1)", "0"),
    _of("ATAN", "Returns the inverse tangent, in radians.", "ATAN(0)", "0"),
    ScalarFunction(
        name="ATAN2",
        arguments=("y", "x"),
        doc="Returns the angle in radians between the x axis and the point (x, y).",
        forms=(ScalarForm(parameters=(DOUBLE, DOUBLE), returns=DOUBLE, spark="atan2({0}, {1})", duckdb=None),),
        examples=(Example(call="ROUND(ATAN2(1, 1), 6)", gives="CAST(0.785398 AS DOUBLE)"),),
    ),
    _of("SINH", "Returns the hyperbolic sine.", "SINH(0)", "0"),
    _of("COSH", "Returns the hyperbolic cosine.", "COSH(0)", "1"),
    _of("TANH", "Returns the hyperbolic tangent.", "TANH(0)", "0"),
    _of("DEGREES", "Converts radians to degrees.", "DEGREES(PI())", "180"),
    _of("RADIANS", "Converts degrees to radians.", "ROUND(RADIANS(180), 6)", "3.141593"),
    _of("CBRT", "Returns the cube root.", "CBRT(27)", "3"),
    _of("EXP", "Returns e raised to a power.", "EXP(0)", "1", _java("exp", "{0}")),
    _of(
        "LN",
        "Returns the natural logarithm. -Infinity for zero, NaN for a negative number.",
        "LN(1)",
        "0",
        _java("log", "{0}"),
    ),
    ScalarFunction(
        name="LOG",
        arguments=("base", "number"),
        doc="Returns the logarithm to a base, or the natural logarithm. -Infinity for zero; NaN for a negative "
        "number, and for a base that is 1 or not positive.",
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
        doc="Returns a number raised to a power.",
        forms=(ScalarForm(parameters=(DOUBLE, DOUBLE), returns=DOUBLE, spark="pow({0}, {1})", duckdb=None),),
        examples=(Example(call="POWER(2, 10)", gives="CAST(1024 AS DOUBLE)"),),
    ),
    ScalarFunction(
        name="PI",
        doc="Returns the constant pi.",
        forms=(ScalarForm(parameters=(), returns=DOUBLE, spark="pi()", duckdb="pi()"),),
        examples=(Example(call="ROUND(PI(), 5)", gives="CAST(3.14159 AS DOUBLE)"),),
    ),
    ScalarFunction(
        name="RANDOM",
        doc="Returns a random number from 0 (inclusive) to 1 (exclusive).",
        # Spark's rand() is seeded when a query is planned, and a plan runs many times.
        forms=(
            ScalarForm(
                parameters=(), returns=DOUBLE, spark="CAST(reflect('java.lang.Math', 'random') AS DOUBLE)", duckdb=None
            ),
        ),
        examples=(Example(call="RANDOM() >= 0", gives="true"),),
    ),
)
