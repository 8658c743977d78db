"""ROUND and TRUNC: to a number of digits after the point, negative ones before it.

DOUBLEs are rounded through the shortest decimal text of the number, as Java's BigDecimal.valueOf does; numbers that no
DECIMAL can hold have no such digits and stay themselves.
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
from holdfast.runtime.functions.maths import CARRY, WHOLE
from holdfast.runtime.functions.parameters import DECIMAL, Chosen
from holdfast.runtime.functions.sparksql import let
from holdfast.types import Decimal, Scalar, SqlType

CATEGORY = "MATHEMATICAL"
INTEGER, BIGINT, DOUBLE = Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE

_EXACT, _GREAT, _SMALL = Decimal(38, 18), Decimal(38, 0), Decimal(38, 38)

Cut = Callable[[str, int], str]


def _nearest(value: str, places: int) -> str:
    """Numbers in the middle go up, also negative ones: round goes away from zero, so those have a way of their own."""
    unit, half = (f"{Number(digit).scaleb(-places - shift):f}BD" for digit, shift in ((1, 0), (5, 1)))
    return f"CASE WHEN {value} % {unit} = -{half} THEN ceil({value}, {places}) ELSE round({value}, {places}) END"


def _towards_zero(value: str, places: int) -> str:
    return f"CASE WHEN {value} < 0 THEN ceil({value}, {places}) ELSE floor({value}, {places}) END"


def _cut(value: str, type_: Decimal, places: int, cut: Cut, returns: SqlType) -> str:
    if places >= type_.scale:
        return f"CAST({value} AS {spark_type(returns)})"
    if places <= type_.scale - type_.precision - 1:
        return f"CAST({value} * 0 AS {spark_type(returns)})"
    return f"CAST({cut(value, places)} AS {spark_type(returns)})"


def _all_places(value: str, arguments: Arguments, type_: Decimal, cut: Cut, returns: SqlType) -> str:
    """Spark rounds to constant places: where they are not, there is a case for each."""
    if len(arguments.texts) == 1:
        return _cut(value, type_, 0, cut, returns)
    constant, places = arguments.constants[1], arguments.texts[1]
    if isinstance(constant, int):
        return _cut(value, type_, constant, cut, returns)
    least, greatest = type_.scale - type_.precision - 1, type_.scale
    inner = " ".join(
        f"WHEN {places} = {n} THEN {_cut(value, type_, n, cut, returns)}" for n in range(least + 1, greatest)
    )
    return (
        f"CASE WHEN {places} <= {least} THEN {_cut(value, type_, least, cut, returns)} {inner}"
        f" WHEN {places} >= {greatest} THEN {_cut(value, type_, greatest, cut, returns)} END"
    )


def _decimal(cut: Cut) -> Template:
    def write(a: Arguments) -> str:
        type_ = a.type(0)
        assert isinstance(type_, Decimal)
        return let(a.texts[0], lambda value: _all_places(value, a, type_, cut, a.returns), "n_")

    return write


def _duckdb_nearest(a: Arguments) -> str:
    """As `_nearest`, where a cast does the rounding."""
    type_, constant = a.type(0), a.constants[1] if len(a.constants) > 1 else 0
    assert isinstance(type_, Decimal)
    if not isinstance(constant, int) or constant < 0:
        raise NotRenderable("ROUND to places that are computed or negative")
    places = min(constant, type_.scale)
    value = a.texts[0]
    if places < type_.scale:
        unit = f"0.{'0' * (type_.scale - 1)}1"
        value = f"CASE WHEN {value} < 0 THEN {value} + {unit} ELSE {value} END"
    middle = Decimal(min(type_.precision + 1, 38), places)
    return f"TRY_CAST(TRY_CAST({value} AS {duckdb_type(middle)}) AS {duckdb_type(a.returns)})"


def _exact_types(places: Constant) -> tuple[Decimal, ...]:
    """What a DOUBLE is rounded as: the first that can hold it. Places that are computed are taken for usual ones."""
    if not isinstance(places, int) or 0 <= places <= _EXACT.scale:
        return (_EXACT,)
    return (_EXACT, _GREAT) if places < 0 else (_SMALL,)


def _through(value: str, type_: Decimal, arguments: Arguments, cut: Cut) -> str:
    exact = f"CAST(CAST({value} AS STRING) AS {spark_type(type_)})"
    return let(exact, lambda number: _all_places(number, arguments, type_, cut, DOUBLE), "exact_")


def _double(cut: Cut) -> Template:
    def write(a: Arguments) -> str:
        def body(value: str) -> str:
            rounded = (_through(value, type_, a, cut) for type_ in _exact_types(a.constants[1]))
            finite = f"abs({value}) < CAST('Infinity' AS DOUBLE)"
            return f"CASE WHEN {a.texts[1]} IS NOT NULL AND {finite} THEN COALESCE({', '.join(rounded)}, {value}) END"

        return let(a.texts[0], body, "n_")

    return write


def _whole_part(types: tuple[Chosen, ...]) -> SqlType:
    source = first(types)
    assert isinstance(source, Decimal)
    return Decimal(max(source.precision - source.scale, 1), 0)


def _function(
    name: str, doc: str, cut: Cut, duckdb: Template | None, double: ScalarForm, *examples: Example
) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        arguments=("number", "places"),
        doc=doc,
        forms=(
            ScalarForm(parameters=(INTEGER,), returns=BIGINT, spark="CAST({0} AS BIGINT)", duckdb="{0}::BIGINT"),
            ScalarForm(parameters=(BIGINT,), returns=BIGINT, spark="{0}", duckdb="{0}"),
            ScalarForm(parameters=(DECIMAL,), returns=_whole_part, shown="DECIMAL", spark=_decimal(cut), duckdb=duckdb),
            double,
            ScalarForm(parameters=(DECIMAL, INTEGER), returns=first, spark=_decimal(cut), duckdb=duckdb),
            ScalarForm(parameters=(DOUBLE, INTEGER), returns=DOUBLE, spark=_double(cut), duckdb=None),
        ),
        examples=examples,
    )


def _nearest_whole(a: Arguments) -> str:
    """Not the floor of half a unit more: that sum itself is rounded."""

    def body(n: str) -> str:
        up = f"CASE WHEN {n} - floor({n}) >= 0.5D THEN 1L ELSE 0L END"
        return f"CASE WHEN abs({n}) < {WHOLE} THEN floor({n}) + {up} ELSE CAST({n} AS BIGINT) END"

    return let(a.texts[0], body, "n_")


_DUCKDB_NEAREST_WHOLE = "(floor({0}) + CASE WHEN {0} - floor({0}) >= 0.5 THEN 1 ELSE 0 END)"


def _saturated(sql: str) -> str:
    """DuckDB: a DOUBLE as a BIGINT, as Java casts it."""
    return (
        "CASE WHEN isnan({0}) THEN 0 WHEN {0} >= 9223372036854775807 THEN 9223372036854775807"
        f" WHEN {{0}} <= -9223372036854775808 THEN -9223372036854775808 ELSE CAST({sql} AS BIGINT) END"
    )


FUNCTIONS = (
    _function(
        "ROUND",
        "The nearest number with as many digits after the point as the second argument says, or none. Numbers in the "
        f"middle go up. {CARRY} NaN and the infinities cannot be rounded to places.",
        _nearest,
        _duckdb_nearest,
        ScalarForm(
            parameters=(DOUBLE,),
            returns=BIGINT,
            spark=_nearest_whole,
            duckdb=_saturated(_DUCKDB_NEAREST_WHOLE),
        ),
        Example(call="ROUND(1.5)", gives="CAST(2 AS DECIMAL(1, 0))"),
        Example(call="ROUND(-1.5)", gives="CAST(-1 AS DECIMAL(1, 0))"),
        Example(call="ROUND(CAST(2.345 AS DOUBLE), 2)", gives="CAST(2.35 AS DOUBLE)"),
        Example(call="ROUND(1234.5, -2)", gives="CAST(1200 AS DECIMAL(5, 1))"),
    ),
    _function(
        "TRUNC",
        "The number cut off after as many digits after the point as the second argument says, or at the point.",
        _towards_zero,
        None,
        ScalarForm(parameters=(DOUBLE,), returns=BIGINT, spark="CAST({0} AS BIGINT)", duckdb=_saturated("trunc({0})")),
        Example(call="TRUNC(-1.9)", gives="CAST(-1 AS DECIMAL(1, 0))"),
        Example(call="TRUNC(CAST(2.349 AS DOUBLE), 2)", gives="CAST(2.34 AS DOUBLE)"),
    ),
)
