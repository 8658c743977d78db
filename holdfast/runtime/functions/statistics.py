"""Statistical aggregates. The initial state is all zeros."""

from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.functions.aggregates import ADD32, ADD64, SUBTRACT32, SUBTRACT64
from holdfast.runtime.functions.declaration import AggregateForm, AggregateFunction, Example
from holdfast.types import Array, Scalar

CATEGORY = "AGGREGATE"
INTEGER, BIGINT, DOUBLE = Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE

_SAME = {Dialect.SPARK: "{s0}", Dialect.DUCKDB: "{s0}"}

# Merging two sets of numbers: s0 is the count, s1 the sum, s2 the sum of squared distances from the mean.
_MEAN_DIFFERENCE = "({s0}::DOUBLE * {p1} - {p0}::DOUBLE * {s1})"
_CORRECTION = f"{_MEAN_DIFFERENCE} * {_MEAN_DIFFERENCE} / ({{s0}}::DOUBLE * {{p0}} * ({{s0}} + {{p0}}))"

# Removing one set of numbers from another that contains it leaves `s0 - p0` numbers.
_REMAINING_MEAN_DIFFERENCE = "(({s0} - {p0})::DOUBLE * {p1} - {p0}::DOUBLE * ({s1} - {p1}))"
_REMAINING_CORRECTION = (
    f"{_REMAINING_MEAN_DIFFERENCE} * {_REMAINING_MEAN_DIFFERENCE} / (({{s0}} - {{p0}})::DOUBLE * {{p0}} * {{s0}})"
)


def _deviation(result: str) -> AggregateForm:
    shown = f"CASE WHEN {{s0}} < 2 THEN CAST(0 AS DOUBLE) ELSE {result} END"
    return AggregateForm(
        parameters=(DOUBLE,),
        returns=DOUBLE,
        state=lambda _: (BIGINT, DOUBLE, DOUBLE),
        initial=("0::BIGINT", "0::DOUBLE", "0::DOUBLE"),
        partial=("COUNT({0})", "COALESCE(SUM({0}), 0D)", "COALESCE(var_pop({0}) * COUNT({0}), 0D)"),
        merge=(
            ADD64,
            "({s1} + {p1})",
            f"CASE WHEN {{s0}} = 0 OR {{p0}} = 0 THEN {{s2}} + {{p2}} ELSE {{s2}} + {{p2}} + {_CORRECTION} END",
        ),
        undo=(
            SUBTRACT64,
            "CASE WHEN {s0} <= {p0} THEN 0 ELSE {s1} - {p1} END",
            f"CASE WHEN {{p0}} = 0 THEN {{s2}} WHEN {{s0}} <= {{p0}} THEN 0"
            f" ELSE greatest({{s2}} - {{p2}} - {_REMAINING_CORRECTION}, 0) END",
        ),
        result_sql={Dialect.SPARK: shown, Dialect.DUCKDB: shown},
    )


def _correlation() -> AggregateForm:
    """Counts, sums, squares and products of the records in which neither number is NULL."""
    both = "FILTER (WHERE {0} IS NOT NULL AND {1} IS NOT NULL)"
    sums = ("{0}", "{1}", "{0} * {0}", "{1} * {1}", "{0} * {1}")
    denominator = "sqrt(({s0} * {s3} - {s1} * {s1}) * ({s0} * {s4} - {s2} * {s2}))"
    defined = "{s0} * {s3} > {s1} * {s1} AND {s0} * {s4} > {s2} * {s2}"
    shown = (
        f"CASE WHEN {defined} THEN ({{s0}} * {{s5}} - {{s1}} * {{s2}}) / ({denominator}) ELSE CAST('NaN' AS DOUBLE) END"
    )
    return AggregateForm(
        parameters=(DOUBLE, DOUBLE),
        returns=DOUBLE,
        state=lambda _: (DOUBLE,) * 6,
        initial=("0::DOUBLE",) * 6,
        partial=(f"CAST(COUNT(*) {both} AS DOUBLE)", *(f"COALESCE(SUM({s}) {both}, 0D)" for s in sums)),
        merge=tuple(f"({{s{i}}} + {{p{i}}})" for i in range(6)),
        undo=tuple(f"({{s{i}}} - {{p{i}}})" for i in range(6)),
        result_sql={Dialect.SPARK: shown, Dialect.DUCKDB: shown},
    )


def _sum_list(type_: Scalar, zero: str, spark: str, merge: str, undo: str, initial: str) -> AggregateForm:
    row = f"aggregate({{0}}, {zero}, (sum_, x_) -> sum_ + COALESCE(x_, {zero}))"
    return AggregateForm(
        parameters=(Array(type_),),
        returns=type_,
        state=lambda _: (type_,),
        initial=(initial,),
        partial=(f"CAST(COALESCE(SUM({row}), {zero}) AS {spark})",),
        merge=(merge,),
        undo=(undo,),
        result_sql=_SAME,
    )


_VARIANCE = "{s2} / ({s0} - 1)"

FUNCTIONS = (
    AggregateFunction(
        name="STDDEV_SAMP",
        arguments=("number",),
        doc="Returns the sample variance, which is the square of STDDEV_SAMPLE, as ksqlDB does. 0 for fewer than "
        "two values.",
        forms=(_deviation(_VARIANCE),),
        examples=(Example(call="STDDEV_SAMP(x)", gives="CAST(4 AS DOUBLE)", over="ARRAY[10, 12, NULL, 14]"),),
    ),
    AggregateFunction(
        name="STDDEV_SAMPLE",
        arguments=("number",),
        doc="Returns the sample standard deviation. 0 for fewer than two values.",
        forms=(_deviation(f"sqrt({_VARIANCE})"),),
        examples=(Example(call="STDDEV_SAMPLE(x)", gives="CAST(2 AS DOUBLE)", over="ARRAY[10, 12, NULL, 14]"),),
    ),
    AggregateFunction(
        name="CORRELATION",
        arguments=("x", "y"),
        doc="Returns the Pearson correlation coefficient of two columns. NaN if one of them is constant.",
        forms=(_correlation(),),
        examples=(
            Example(call="CORRELATION(x, 100 - 2 * x)", gives="CAST(-1 AS DOUBLE)", over="ARRAY[10, 12, NULL, 14]"),
        ),
    ),
    AggregateFunction(
        name="SUM_LIST",
        arguments=("array",),
        doc="Returns the sum of the elements of all arrays. NULLs are ignored; integers wrap around on overflow.",
        forms=(
            _sum_list(INTEGER, "0", "INT", ADD32, SUBTRACT32, "0::INTEGER"),
            _sum_list(BIGINT, "0L", "BIGINT", ADD64, SUBTRACT64, "0::BIGINT"),
            _sum_list(DOUBLE, "0D", "DOUBLE", "({s0} + {p0})", "({s0} - {p0})", "0::DOUBLE"),
        ),
        examples=(Example(call="SUM_LIST(x)", gives="6", over="ARRAY[ARRAY[1, 2], ARRAY[3]]"),),
    ),
)
