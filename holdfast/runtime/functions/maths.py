"""Functions of numbers. Whole numbers wrap around as Java's do."""

from collections.abc import Callable

from holdfast.errors import Feature, NotYetSupported
from holdfast.runtime.expressions.physical import duckdb_type, spark_type
from holdfast.runtime.functions.declaration import (
    Arguments,
    Example,
    ScalarForm,
    ScalarFunction,
    first,
)
from holdfast.runtime.functions.parameters import DECIMAL, Chosen
from holdfast.types import Decimal, Scalar, SqlType

CATEGORY = "MATHEMATICAL"
INTEGER, BIGINT, DOUBLE = Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE

# From here on every DOUBLE is a whole number.
_WHOLE = "4503599627370496"


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
            f"CASE WHEN abs({{0}}) < {_WHOLE} THEN CAST({name}({{0}}) AS DOUBLE) ELSE {{0}} END",
            f"CASE WHEN abs({{0}}) < {_WHOLE} THEN CAST(CAST({name}({{0}}) AS BIGINT) AS DOUBLE) ELSE {{0}} END",
            DOUBLE,
        ),
    )


def _halves_up(value: str, scale: int, places: int) -> str:
    """Numbers in the middle go up, also negative ones: a cast rounds away from zero, so those move one unit first."""
    unit = "1" if scale == 0 else f"0.{'0' * (scale - 1)}1"
    return f"CASE WHEN {value} < 0 THEN {value} + {unit} ELSE {value} END" if places < scale else value


def _places(arguments: Arguments) -> int:
    places = arguments.constants[1] if len(arguments.constants) > 1 else 0
    if not isinstance(places, int) or places < 0:
        raise NotYetSupported(
            Feature.FUNCTION,
            "ROUND to computed places",
            "ROUND needs its number of places as a literal",
            detail="Only whole numbers from 0 on are taken so far.",
        )
    return places


def _round_decimal(cast: str, type_name: Callable[[SqlType], str]) -> Callable[[Arguments], str]:
    def write(arguments: Arguments) -> str:
        source = arguments.type(0)
        assert isinstance(source, Decimal)
        places = min(_places(arguments), source.scale)
        middle = Decimal(min(source.precision + 1, 38), places)
        rounded = f"{cast}({_halves_up(arguments.texts[0], source.scale, places)} AS {type_name(middle)})"
        return f"{cast}({rounded} AS {type_name(arguments.returns)})"

    return write


def _round_double(arguments: Arguments) -> str:
    """Through the shortest decimal text of the number, as Java's BigDecimal.valueOf; what has none stays itself."""
    places = min(_places(arguments), 17)
    text = arguments.texts[0]
    exact = f"CAST(CAST({text} AS STRING) AS DECIMAL(38,18))"
    rounded = f"CAST(CAST({_halves_up(exact, 18, places)} AS DECIMAL(38,{places})) AS DOUBLE)"
    return f"COALESCE({rounded}, {text})"


def _whole_part(types: tuple[Chosen, ...]) -> SqlType:
    source = first(types)
    assert isinstance(source, Decimal)
    return Decimal(max(source.precision - source.scale, 1), 0)


_ROUND_DECIMAL = {
    "spark": _round_decimal("CAST", spark_type),
    "duckdb": _round_decimal("TRY_CAST", duckdb_type),
}

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
        doc="The least whole number that is not less.",
        forms=_step("ceil"),
        examples=(Example(call="CEIL(CAST(1.2 AS DOUBLE))", gives="CAST(2 AS DOUBLE)"),),
    ),
    ScalarFunction(
        name="FLOOR",
        doc="The greatest whole number that is not greater.",
        forms=_step("floor"),
        examples=(Example(call="FLOOR(CAST(-1.2 AS DOUBLE))", gives="CAST(-2 AS DOUBLE)"),),
    ),
    ScalarFunction(
        name="ROUND",
        doc="The nearest number with as many digits after the point as the second argument says, or none. "
        "Numbers in the middle go up.",
        forms=(
            ScalarForm(parameters=(INTEGER,), returns=BIGINT, spark="CAST({0} AS BIGINT)", duckdb="{0}::BIGINT"),
            ScalarForm(parameters=(BIGINT,), returns=BIGINT, spark="{0}", duckdb="{0}"),
            ScalarForm(
                parameters=(DECIMAL,),
                returns=_whole_part,
                spark=_ROUND_DECIMAL["spark"],
                duckdb=_ROUND_DECIMAL["duckdb"],
            ),
            ScalarForm(
                parameters=(DOUBLE,),
                returns=BIGINT,
                spark="floor({0} + 0.5D)",
                duckdb="CASE WHEN isnan({0}) THEN 0 WHEN {0} >= 9223372036854775807 THEN 9223372036854775807"
                " WHEN {0} <= -9223372036854775808 THEN -9223372036854775808"
                " ELSE CAST(floor({0} + 0.5::DOUBLE) AS BIGINT) END",
            ),
            ScalarForm(
                parameters=(DECIMAL, INTEGER),
                returns=first,
                spark=_ROUND_DECIMAL["spark"],
                duckdb=_ROUND_DECIMAL["duckdb"],
            ),
            ScalarForm(parameters=(DOUBLE, INTEGER), returns=DOUBLE, spark=_round_double, duckdb=None),
        ),
        examples=(
            Example(call="ROUND(1.5)", gives="CAST(2 AS DECIMAL(1, 0))"),
            Example(call="ROUND(-1.5)", gives="CAST(-1 AS DECIMAL(1, 0))"),
            Example(call="ROUND(CAST(2.345 AS DOUBLE), 2)", gives="CAST(2.35 AS DOUBLE)"),
        ),
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
