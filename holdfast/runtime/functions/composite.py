"""Forms of aggregates that keep values with parts: sets of ARRAYs, MAPs and STRUCTs, and the greatest values with the
columns that came with them."""

from collections.abc import Mapping

from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.functions.declaration import AggregateForm, Arguments, Returns
from holdfast.runtime.functions.parameters import ANY, ArrayOf, Chosen, Family, Variable
from holdfast.runtime.functions.sparksql import let
from holdfast.types import Array, Scalar, SqlType, Struct, StructField

SORT_COLUMN, OTHER_COLUMN = "sort_col", "col"
"""The fields of TOPK's rows, as ksqlDB calls them."""

_SAME = {Dialect.SPARK: "{s0}", Dialect.DUCKDB: "{s0}"}
_BY_OFFSET = (
    "(l_, r_) -> CASE WHEN l_.p < r_.p OR (l_.p = r_.p AND l_.o < r_.o) THEN -1"
    " WHEN l_.p = r_.p AND l_.o = r_.o THEN 0 ELSE 1 END"
)
# Spark's sort keeps the order of equal rows; the store's does not, so there a row's place decides.
_GREATEST_FIRST = "(l_, r_) -> CASE WHEN l_.f0 > r_.f0 THEN -1 WHEN l_.f0 < r_.f0 THEN 1 ELSE 0 END"
_PLACED = "{{'k': struct_extract(l[i], 'f0'), 'n': -i, 'v': l[i]}}"


def in_order(value: str) -> str:
    collected = f"collect_list(named_struct('p', {{part}}, 'o', off, 'v', {value}))"
    return f"transform(array_sort({collected}, {_BY_OFFSET}), e_ -> e_.v)"


_PAIR = "struct({comparable} AS c, {canonical} AS v)"
COMPARED = in_order(_PAIR)
"""All values in order, each as `v` beside what it is compared by, `c`."""


def firsts(compared: str) -> str:
    """Of values that are `COMPARED` the first of each that are equal."""
    keys = f"transform({compared}, k_ -> struct(k_.c))"
    return let(keys, lambda k: f"filter({compared}, (e_, i_) -> array_position({k}, struct(e_.c)) = i_ + 1)", "keys_")


def set_form() -> AggregateForm:
    """COLLECT_SET of any type. MAPs are compared and kept with their keys in order."""
    return _distinct(_different(COMPARED), ArrayOf(ANY), _SAME)


def count_form() -> AggregateForm:
    """COUNT_DISTINCT of any type."""
    counted = {Dialect.SPARK: "CAST(array_size({s0}) AS BIGINT)", Dialect.DUCKDB: "CAST(len({s0}) AS BIGINT)"}
    values = f"filter(collect_list({_PAIR}), e_ -> e_.v IS NOT NULL)"
    return _distinct(_different(values), Scalar.BIGINT, counted)


def _different(compared: str) -> str:
    return f"transform({let(compared, firsts, 'all_')}, e_ -> e_.v)"


def _distinct(partial: str, returns: Returns, result: Mapping[Dialect, str]) -> AggregateForm:
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
    """TOPK of rows: the first column sorts them, further ones come along, the last argument says how many."""
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
            f"range(1, len(l) + 1), lambda i: {_PLACED}), 'DESC'), lambda e: e.v)[1:{{last}}])[1]",
        ),
        undo=None,
        result_sql=_SAME,
        constants=frozenset({-1}),
    )
