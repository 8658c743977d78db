"""Forms of aggregates that collect nested values: sets of ARRAYs, MAPs and STRUCTs, and the top k values with
further columns."""

from collections.abc import Mapping

from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.functions.declaration import AggregateForm, Arguments, Returns
from holdfast.runtime.functions.parameters import ANY, ArrayOf, Chosen, Family, Variable
from holdfast.runtime.functions.spark_sql import let
from holdfast.types import Array, Scalar, SqlType, Struct, StructField

SORT_COLUMN, OTHER_COLUMN = "sort_col", "col"
"""The field names of TOPK's rows, as in ksqlDB."""

_SAME = {Dialect.SPARK: "{s0}", Dialect.DUCKDB: "{s0}"}
_BY_OFFSET = (
    "(l_, r_) -> CASE WHEN l_.p < r_.p OR (l_.p = r_.p AND l_.o < r_.o) THEN -1"
    " WHEN l_.p = r_.p AND l_.o = r_.o THEN 0 ELSE 1 END"
)
# Spark's sort is stable; the store's is not, so there the position of a row breaks ties.
_GREATEST_FIRST = "(l_, r_) -> CASE WHEN l_.f0 > r_.f0 THEN -1 WHEN l_.f0 < r_.f0 THEN 1 ELSE 0 END"
_WITH_POSITION = "{{'k': struct_extract(l[i], 'f0'), 'n': -i, 'v': l[i]}}"


def in_order(value: str) -> str:
    collected = f"collect_list(named_struct('p', {{part}}, 'o', off, 'v', {value}))"
    return f"transform(array_sort({collected}, {_BY_OFFSET}), e_ -> e_.v)"


_PAIR = "struct({comparable} AS c, {canonical} AS v)"
COMPARED = in_order(_PAIR)
"""All values in order, each as `v` beside its comparable form `c`."""


def firsts(compared: str) -> str:
    """The first of each set of equal values, in an array like `COMPARED`."""
    keys = f"transform({compared}, k_ -> struct(k_.c))"
    return let(keys, lambda k: f"filter({compared}, (e_, i_) -> array_position({k}, struct(e_.c)) = i_ + 1)", "keys_")


def set_form() -> AggregateForm:
    """COLLECT_SET of any type. MAPs are compared and stored with their keys sorted."""
    return _distinct_form(_distinct_values(COMPARED), ArrayOf(ANY), _SAME)


def count_form() -> AggregateForm:
    """COUNT_DISTINCT of any type."""
    counted = {Dialect.SPARK: "CAST(array_size({s0}) AS BIGINT)", Dialect.DUCKDB: "CAST(len({s0}) AS BIGINT)"}
    values = f"filter(collect_list({_PAIR}), e_ -> e_.v IS NOT NULL)"
    return _distinct_form(_distinct_values(values), Scalar.BIGINT, counted)


def _distinct_values(compared: str) -> str:
    return f"transform({let(compared, firsts, 'all_')}, e_ -> e_.v)"


def _distinct_form(partial: str, returns: Returns, result: Mapping[Dialect, str]) -> AggregateForm:
    return AggregateForm(
        parameters=(ANY,),
        returns=returns,
        state=lambda types: (Array(Arguments((), types).type(0)),),
        initial=("CAST([] AS {t0})",),
        partial=(partial,),
        merge=(
            "list_transform([list_concat({s0}, {p0})], lambda l: list_filter(l, lambda x, i:"
            " len(list_filter(l[:i - 1], lambda y: y IS NOT DISTINCT FROM x)) = 0))[1]",
        ),
        undo=None,
        result_sql=result,
    )


def _row(types: tuple[Chosen, ...]) -> SqlType:
    arguments = Arguments((), types)
    columns = [arguments.type(i) for i in range(len(types) - 1)]
    named = [StructField(SORT_COLUMN, columns[0])]
    return Array(Struct((*named, *(StructField(f"{OTHER_COLUMN}{i}", type_) for i, type_ in enumerate(columns[1:])))))


def top_rows_form() -> AggregateForm:
    """TOPK of rows: the first column orders them, further columns are included, the last argument is the count."""
    return AggregateForm(
        parameters=(Variable("T", Family.PRIMITIVE), Variable("C", each=True), Scalar.INTEGER),
        variadic=True,
        repeats=1,
        names=("value", "column", "count"),
        returns=_row,
        shown="ARRAY<STRUCT<sort_col T, col0 ANY, ...>>",
        state=lambda types: (_row(types),),
        initial=("CAST([] AS {t0})",),
        partial=(
            f"slice(array_sort(filter({in_order('{row}')}, e_ -> e_.f0 IS NOT NULL), {_GREATEST_FIRST}), 1, {{last}})",
        ),
        merge=(
            "list_transform([list_concat({s0}, {p0})], lambda l: list_transform(list_sort(list_transform("
            f"range(1, len(l) + 1), lambda i: {_WITH_POSITION}), 'DESC'), lambda e: e.v)[1:{{last}}])[1]",
        ),
        undo=None,
        result_sql=_SAME,
        constants=frozenset({-1}),
    )
