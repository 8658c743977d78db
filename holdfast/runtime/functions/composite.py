"""Forms of aggregates that keep values with parts: sets of ARRAYs, MAPs and STRUCTs, and the greatest values with the
columns that came with them."""

from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.functions.declaration import AggregateForm, Arguments
from holdfast.runtime.functions.parameters import ANY, ArrayOf, Chosen, Family, Variable
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


def _in_order(value: str) -> str:
    collected = f"collect_list(named_struct('p', part, 'o', off, 'v', {value}))"
    return f"transform(array_sort({collected}, {_BY_OFFSET}), e_ -> e_.v)"


def set_form() -> AggregateForm:
    """COLLECT_SET of any type. MAPs are compared and kept with their keys in order."""
    return AggregateForm(
        parameters=(ANY,),
        returns=ArrayOf(ANY),
        state=lambda types: (Array(Arguments((), types).type(0)),),
        initial=("CAST([] AS {t0})",),
        partial=(_in_order("{canonical}"),),
        merge=(
            "list_transform([list_concat({s0}, {p0})], lambda l: list_filter(l, lambda x, i:"
            " len(list_filter(l[:i - 1], lambda y: y IS NOT DISTINCT FROM x)) = 0))[1]",
        ),
        undo=None,
        result_sql=_SAME,
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
        returns=_row,
        shown="ARRAY<STRUCT<sort_col T, col0 ANY, ...>>",
        state=lambda types: (_row(types),),
        initial=("CAST([] AS {t0})",),
        partial=(
            f"slice(array_sort(filter({_in_order('{row}')}, e_ -> e_.f0 IS NOT NULL), {_GREATEST_FIRST}), 1, {{last}})",
        ),
        merge=(
            "list_transform([list_concat({s0}, {p0})], lambda l: list_transform(list_sort(list_transform("
            f"range(1, len(l) + 1), lambda i: {_PLACED}), 'DESC'), lambda e: e.v)[1:{{last}}])[1]",
        ),
        undo=None,
        result_sql=_SAME,
        constants=frozenset({-1}),
    )
