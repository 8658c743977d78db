"""Aggregate functions; `AggregateForm` describes how they are declared.

As in ksqlDB, COUNT, SUM and AVG ignore NULLs and start from zero: the SUM of no rows is 0.
"""

from holdfast.runtime.expressions.java import wrap32, wrap64
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.functions.collectors import at_least_one, offset_forms
from holdfast.runtime.functions.declaration import (
    AggregateForm,
    AggregateFunction,
    Example,
    Returns,
    first,
)
from holdfast.runtime.functions.parameters import ANY, DECIMAL, Chosen, Parameter
from holdfast.types import Decimal, Scalar, SqlType

CATEGORY = "AGGREGATE"
INTEGER, BIGINT, DOUBLE = Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE

ADD32, SUBTRACT32 = (wrap32(f"{{s0}}::BIGINT {sign} {{p0}}::BIGINT") for sign in "+-")
ADD64, SUBTRACT64 = (wrap64(f"{{s0}}::HUGEINT {sign} {{p0}}::HUGEINT") for sign in "+-")
_ADD64_SECOND, _SUBTRACT64_SECOND = (wrap64(f"{{s1}}::HUGEINT {sign} {{p1}}::HUGEINT") for sign in "+-")
_SAME = {Dialect.SPARK: "{s0}", Dialect.DUCKDB: "{s0}"}


_READ_SUM32 = wrap32("COALESCE(SUM({0}::BIGINT), 0)::HUGEINT")
_READ_SUM64 = wrap64("COALESCE(SUM({0}::HUGEINT), 0)::HUGEINT")
_READ_SUM = "COALESCE(SUM({0}), 0::DOUBLE)"


def _sum(type_: Scalar, partial: str, merge: str, undo: str, zero: str, reading: str) -> AggregateForm:
    return AggregateForm(
        reading=(reading,),
        parameters=(type_,),
        returns=type_,
        state=lambda _: (type_,),
        initial=(zero,),
        partial=(partial,),
        merge=(merge,),
        undo=(undo,),
        result_sql=_SAME,
    )


def _sum_state(types: tuple[Chosen, ...]) -> tuple[SqlType, ...]:
    source = first(types)
    assert isinstance(source, Decimal)
    return (Decimal(38, source.scale),)


def _sums_fit(types: tuple[Chosen, ...]) -> bool:
    """Whether a sum needs ten billion rows to exceed 38 digits, where DuckDB raises."""
    source = first(types)
    assert isinstance(source, Decimal)
    return source.precision <= 28


# A sum of more than 38 digits is NULL and stays NULL: better no number than a wrong one.
_SUM_DECIMAL = AggregateForm(
    parameters=(DECIMAL,),
    returns=first,
    state=_sum_state,
    initial=("CAST(0 AS {t0})",),
    partial=("CASE WHEN COUNT({0}) = 0 THEN CAST(0 AS {t0}) ELSE CAST(SUM(CAST({0} AS {t0})) AS {t0}) END",),
    merge=("TRY(CAST({s0} + {p0} AS {t0}))",),
    undo=("TRY(CAST({s0} - {p0} AS {t0}))",),
    reading=("CAST(COALESCE(SUM(CAST({0} AS {t0})), 0) AS {t0})",),
    reads=_sums_fit,
    result_sql={Dialect.SPARK: "CAST({s0} AS {r})", Dialect.DUCKDB: "TRY_CAST({s0} AS {r})"},
)


def _average(type_: Scalar, partial: str, merge: str, undo: str, zero: str, reading: str) -> AggregateForm:
    mean = "CASE WHEN {s1} = 0 THEN CAST(0 AS DOUBLE) ELSE CAST({s0} AS DOUBLE) / CAST({s1} AS DOUBLE) END"
    return AggregateForm(
        parameters=(type_,),
        returns=DOUBLE,
        reading=(reading, "COUNT({0})"),
        state=lambda _: (BIGINT if type_ is INTEGER else type_, BIGINT),
        initial=(zero, "0::BIGINT"),
        partial=(partial, "COUNT({0})"),
        merge=(merge, _ADD64_SECOND),
        undo=(undo, _SUBTRACT64_SECOND),
        result_sql={Dialect.SPARK: mean, Dialect.DUCKDB: mean},
    )


def _extreme(parameter: Parameter, function: str, comparison: str, returns: Returns) -> AggregateForm:
    better = f"CASE WHEN {{s0}} IS NULL OR {{p0}} {comparison} {{s0}} THEN {{p0}} ELSE {{s0}} END"
    return AggregateForm(
        parameters=(parameter,),
        returns=returns,
        state=lambda types: (first(types),),
        initial=("CAST(NULL AS {t0})",),
        partial=(f"{function}({{0}})",),
        reading=(f"{function}({{0}})",),
        merge=(better,),
        undo=None,
        result_sql=_SAME,
    )


_ORDERED: tuple[Parameter, ...] = (
    INTEGER,
    BIGINT,
    DECIMAL,
    DOUBLE,
    Scalar.STRING,
    Scalar.BYTES,
    Scalar.DATE,
    Scalar.TIME,
    Scalar.TIMESTAMP,
)


def _count(parameters: tuple[Parameter, ...], partial: str) -> AggregateForm:
    return AggregateForm(
        parameters=parameters,
        returns=BIGINT,
        state=lambda _: (BIGINT,),
        initial=("0::BIGINT",),
        partial=(partial,),
        reading=(partial,),
        merge=(ADD64,),
        undo=(SUBTRACT64,),
        result_sql=_SAME,
    )


def _by_offset(function: str, merge: str) -> AggregateForm:
    """Orders values by the offset of their records, which every row of a stream has."""
    return AggregateForm(
        parameters=(ANY,),
        returns=first,
        state=lambda types: (first(types),),
        initial=("CAST(NULL AS {t0})",),
        partial=(f"{function}({{0}}, struct({{part}}, off)) FILTER (WHERE {{0}} IS NOT NULL)",),
        merge=(merge,),
        undo=None,
        result_sql=_SAME,
    )


FUNCTIONS = (
    AggregateFunction(
        name="LATEST_BY_OFFSET",
        arguments=("value",),
        check=at_least_one(1),
        doc="Returns the value of the latest record, or an array of the latest values if a count is given. NULLs "
        "are ignored unless the last argument is false.",
        forms=(_by_offset("max_by", "COALESCE({p0}, {s0})"), *offset_forms(latest=True)),
        examples=(
            Example(call="LATEST_BY_OFFSET(x)", gives="2", over="ARRAY[1, 2, NULL]"),
            Example(call="LATEST_BY_OFFSET(x, false)", gives="CAST(NULL AS INT)", over="ARRAY[1, 2, NULL]"),
            Example(call="LATEST_BY_OFFSET(x, 2)", gives="ARRAY[2, 3]", over="ARRAY[1, 2, NULL, 3]"),
        ),
    ),
    AggregateFunction(
        name="EARLIEST_BY_OFFSET",
        arguments=("value",),
        check=at_least_one(1),
        doc="Returns the value of the earliest record, or an array of the earliest values if a count is given. "
        "NULLs are ignored unless the last argument is false.",
        forms=(_by_offset("min_by", "COALESCE({s0}, {p0})"), *offset_forms(latest=False)),
        examples=(
            Example(call="EARLIEST_BY_OFFSET(x)", gives="1", over="ARRAY[NULL, 1, 2]"),
            Example(call="EARLIEST_BY_OFFSET(x, 2)", gives="ARRAY[1, 2]", over="ARRAY[NULL, 1, 2, 3]"),
        ),
    ),
    AggregateFunction(
        name="COUNT",
        doc="Counts rows, or the rows where the argument is not NULL.",
        forms=(_count((), "COUNT(*)"), _count((ANY,), "COUNT({0})")),
        examples=(
            Example(call="COUNT(*)", gives="CAST(4 AS BIGINT)", over="ARRAY[3, 1, NULL, 3]"),
            Example(call="COUNT(x)", gives="CAST(3 AS BIGINT)", over="ARRAY[3, 1, NULL, 3]"),
        ),
    ),
    AggregateFunction(
        name="SUM",
        doc="Returns the sum. NULLs are ignored; integers wrap around on overflow.",
        forms=(
            _sum(INTEGER, "CAST(COALESCE(SUM({0}), 0) AS INT)", ADD32, SUBTRACT32, "0::INTEGER", _READ_SUM32),
            _sum(BIGINT, "COALESCE(SUM({0}), 0L)", ADD64, SUBTRACT64, "0::BIGINT", _READ_SUM64),
            _SUM_DECIMAL,
            _sum(DOUBLE, "COALESCE(SUM({0}), 0D)", "({s0} + {p0})", "({s0} - {p0})", "0::DOUBLE", _READ_SUM),
        ),
        examples=(Example(call="SUM(x)", gives="7", over="ARRAY[3, 1, NULL, 3]"),),
    ),
    AggregateFunction(
        name="AVG",
        doc="Returns the average. NULLs are ignored; 0 if there are no values.",
        forms=(
            _average(INTEGER, "COALESCE(SUM({0}), 0L)", ADD64, SUBTRACT64, "0::BIGINT", _READ_SUM64),
            _average(BIGINT, "COALESCE(SUM({0}), 0L)", ADD64, SUBTRACT64, "0::BIGINT", _READ_SUM64),
            _average(DOUBLE, "COALESCE(SUM({0}), 0D)", "({s0} + {p0})", "({s0} - {p0})", "0::DOUBLE", _READ_SUM),
        ),
        examples=(Example(call="AVG(x)", gives="CAST(2 AS DOUBLE)", over="ARRAY[3, 1, NULL]"),),
    ),
    AggregateFunction(
        name="MIN",
        doc="Returns the minimum. NULLs are ignored.",
        forms=tuple(_extreme(p, "MIN", "<", first) for p in _ORDERED),
        examples=(Example(call="MIN(x)", gives="1", over="ARRAY[3, 1, NULL, 3]"),),
    ),
    AggregateFunction(
        name="MAX",
        doc="Returns the maximum. NULLs are ignored.",
        forms=tuple(_extreme(p, "MAX", ">", first) for p in _ORDERED),
        examples=(Example(call="MAX(x)", gives="3", over="ARRAY[3, 1, NULL, 3]"),),
    ),
)
