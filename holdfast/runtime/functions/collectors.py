"""Aggregates whose state is a list of values, in record order: lists, sets, top k, the first and the last."""

from collections.abc import Sequence

from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.functions.declaration import (
    AggregateForm,
    AggregateFunction,
    Check,
    Constant,
    Example,
    Refusal,
    first,
)
from holdfast.runtime.functions.nested_collectors import COMPARED, count_form, firsts, set_form, top_rows_form
from holdfast.runtime.functions.parameters import ANY, ArrayOf, Chosen, Family, Parameter, Variable
from holdfast.runtime.functions.spark_sql import let
from holdfast.types import Array, Map, Scalar, SqlType

CATEGORY = "AGGREGATE"
INTEGER, BIGINT, BOOLEAN, STRING = Scalar.INTEGER, Scalar.BIGINT, Scalar.BOOLEAN, Scalar.STRING

_SAME = {Dialect.SPARK: "{s0}", Dialect.DUCKDB: "{s0}"}
_PRIMITIVE = Variable("T", Family.PRIMITIVE)
_BY_OFFSET = (
    "(l_, r_) -> CASE WHEN l_.p < r_.p OR (l_.p = r_.p AND l_.o < r_.o) THEN -1"
    " WHEN l_.p = r_.p AND l_.o = r_.o THEN 0 ELSE 1 END"
)
_ORDERED = (
    f"transform(array_sort(collect_list(named_struct('p', {{part}}, 'o', off, 'v', {{0}})), {_BY_OFFSET}), e_ -> e_.v)"
)
_KNOWN = "list_filter({s0}, lambda y: y IS NULL)"
_NEW = (
    f"list_filter({{p0}}, lambda x: CASE WHEN x IS NULL THEN len({_KNOWN}) = 0 ELSE NOT list_contains({{s0}}, x) END)"
)

# To undo, remove one occurrence of each value in the partial, from the end of the list.
_REMOVALS = "list_filter({p0}, lambda y: y IS NOT DISTINCT FROM x)"
_LATER = "list_filter({s0}[i + 1:], lambda y: y IS NOT DISTINCT FROM x)"
_WITHOUT_LAST = (
    "list_filter({s0}, lambda x, i: CASE WHEN x IS NOT NULL AND NOT list_contains({p0}, x) THEN TRUE"
    f" ELSE len({_LATER}) >= len({_REMOVALS}) END)"
)


def _list_state(types: tuple[Chosen, ...]) -> tuple[SqlType, ...]:
    return (Array(first(types)),)


def _list_form(
    parameters: tuple[Parameter, ...],
    partial: str,
    merge: str,
    constants: frozenset[int] = frozenset(),
    undo: str | None = None,
    names: tuple[str, ...] = (),
) -> AggregateForm:
    element = parameters[0]
    assert isinstance(element, Variable)
    return AggregateForm(
        parameters=parameters,
        returns=ArrayOf(element),
        state=_list_state,
        initial=("CAST([] AS {t0})",),
        partial=(partial,),
        merge=(merge,),
        undo=None if undo is None else (undo,),
        result_sql=_SAME,
        constants=constants,
        names=names,
    )


def _last_or_first(partial: str, merge: str) -> AggregateForm:
    """A single value, which may be NULL if `ignore_nulls` is false; `s1` is true once there was any."""
    accepted = "FILTER (WHERE {0} IS NOT NULL OR NOT {1})"
    return AggregateForm(
        parameters=(ANY, BOOLEAN),
        returns=first,
        state=lambda types: (first(types), BOOLEAN),
        initial=("CAST(NULL AS {t0})", "FALSE"),
        partial=(f"{partial}({{0}}, struct({{part}}, off)) {accepted}", f"(COUNT(*) {accepted} > 0)"),
        merge=(merge, "({s1} OR {p1})"),
        undo=None,
        result_sql=_SAME,
        constants=frozenset({1}),
        names=("value", "ignore_nulls"),
    )


def offset_forms(latest: bool) -> tuple[AggregateForm, ...]:
    """The forms of LATEST_BY_OFFSET and EARLIEST_BY_OFFSET with a number of values or with NULLs."""
    merge = "CASE WHEN {p1} THEN {p0} ELSE {s0} END" if latest else "CASE WHEN {s1} THEN {s0} ELSE {p0} END"
    single = _last_or_first("max_by" if latest else "min_by", merge)

    def many(parameters: tuple[Parameter, ...], condition: str) -> AggregateForm:
        values = f"filter({_ORDERED}, v_ -> {condition})"
        # In the reversed array, the last values come first.
        partial = f"reverse(slice(reverse({values}), 1, {{1}}))" if latest else f"slice({values}, 1, {{1}})"
        joined = "list_concat({s0}, {p0})"
        merge = f"{joined}[-{{1}}:]" if latest else f"{joined}[1:{{1}}]"
        names = ("value", "count", "ignore_nulls")[: len(parameters)]
        return _list_form(parameters, partial, merge, frozenset(range(1, len(parameters))), names=names)

    return (
        single,
        many((ANY, INTEGER), "v_ IS NOT NULL"),
        many((ANY, INTEGER, BOOLEAN), "v_ IS NOT NULL OR NOT {2}"),
    )


# ksqlDB's limit on distinct strings; later ones are not counted.
_MAX_COUNTED = 1_000
_HISTOGRAM_KEYS = (
    "list_concat(map_keys({s0}), list_filter(map_keys({p0}), lambda k: NOT list_contains(map_keys({s0}), k)))"
    f"[1:{_MAX_COUNTED}]"
)


def _counted(sign: str) -> str:
    count = f"COALESCE({{s0}}[k], 0) {sign} COALESCE({{p0}}[k], 0)"
    entries = f"list_transform({_HISTOGRAM_KEYS}, lambda k: {{{{'k': k, 'v': {count}}}}})"
    return f"map_from_entries(list_filter({entries}, lambda e: e.v > 0))"


_HISTOGRAM = AggregateForm(
    parameters=(STRING,),
    returns=Map(STRING, BIGINT),
    state=lambda _: (Map(STRING, BIGINT),),
    initial=("CAST(MAP {{}} AS {t0})",),
    partial=(
        "aggregate(collect_list(COALESCE({0}, 'null')), CAST(map() AS MAP<STRING, BIGINT>),"
        " (m_, x_) -> map_concat(m_, map(x_, COALESCE(m_[x_], 0L) + 1L)))",
    ),
    merge=(_counted("+"),),
    undo=(_counted("-"),),
    result_sql={
        Dialect.SPARK: f"map_from_entries(slice(map_entries({{s0}}), 1, {_MAX_COUNTED}))",
        Dialect.DUCKDB: "{s0}",
    },
)

_COUNT_DISTINCT = AggregateForm(
    parameters=(_PRIMITIVE,),
    returns=BIGINT,
    state=_list_state,
    initial=("CAST([] AS {t0})",),
    partial=("collect_set({0})",),
    reading=("COALESCE(list(DISTINCT {0}) FILTER (WHERE {0} IS NOT NULL), [])",),
    merge=("list_concat({s0}, list_filter({p0}, lambda x: NOT list_contains({s0}, x)))",),
    undo=None,
    result_sql={Dialect.SPARK: "CAST(array_size({s0}) AS BIGINT)", Dialect.DUCKDB: "CAST(len({s0}) AS BIGINT)"},
)


def _recounted(sign: str) -> tuple[str, str]:
    """The distinct values and their counts, after adding or subtracting those of a partial."""

    def of(values: str, counts: str) -> str:
        return f"COALESCE({{{counts}}}[list_position({{{values}}}, x)], 0)"

    count = f"{of('s0', 's1')} {sign} {of('p0', 'p1')}"
    known = f"list_concat({{s0}}, {_NEW})"
    remaining = f"list_filter({known}, lambda x: {count} > 0)"
    return remaining, f"list_transform({remaining}, lambda x: {count})"


_ATTR_COUNTED = AggregateForm(
    parameters=(ANY,),
    returns=first,
    state=lambda types: (Array(first(types)), Array(BIGINT)),
    initial=("CAST([] AS {t0})", "CAST([] AS {t1})"),
    partial=(
        let(COMPARED, lambda all_: f"transform({firsts(all_)}, f_ -> f_.v)", "all_"),
        let(
            COMPARED,
            lambda all_: f"transform({firsts(all_)}, f_ -> size(filter({all_}, o_ -> o_.c <=> f_.c)) + 0L)",
            "all_",
        ),
    ),
    merge=_recounted("+"),
    undo=_recounted("-"),
    result_sql={
        Dialect.SPARK: "CASE WHEN size({s0}) = 1 THEN {s0}[0] END",
        Dialect.DUCKDB: "CASE WHEN len({s0}) = 1 THEN {s0}[1] END",
    },
)

_ATTR = AggregateForm(
    parameters=(ANY,),
    returns=first,
    state=lambda types: (first(types), BOOLEAN, BOOLEAN),
    initial=("CAST(NULL AS {t0})", "FALSE", "FALSE"),
    partial=(
        "max_by({canonical}, struct({part}, off))",
        "(COUNT(*) > 0)",
        "(size(collect_set(struct({comparable}))) = 1)",
    ),
    merge=(
        "CASE WHEN {p1} THEN {p0} ELSE {s0} END",
        "({s1} OR {p1})",
        "CASE WHEN NOT {s1} THEN {p2} WHEN NOT {p1} THEN {s2}"
        " ELSE {s2} AND {p2} AND {s0} IS NOT DISTINCT FROM {p0} END",
    ),
    undo=None,
    result_sql={
        Dialect.SPARK: "CASE WHEN {s2} THEN {s0} END",
        Dialect.DUCKDB: "CASE WHEN {s2} THEN {s0} END",
    },
    over_tables=_ATTR_COUNTED,
)


def at_least_one(index: int) -> Check:
    """Rejects a count below 1."""

    def check(constants: Sequence[Constant]) -> Refusal | None:
        count = constants[index] if len(constants) > 1 else None
        if not isinstance(count, int) or isinstance(count, bool) or count > 0:
            return None
        return Refusal(index, "the count must be at least 1", "Write a positive number.")

    return check


def _top(collected: str, joined: str) -> AggregateForm:
    return _list_form(
        (_PRIMITIVE, INTEGER),
        f"slice(sort_array({collected}({{0}}), FALSE), 1, {{1}})",
        f"list_sort({joined}, 'DESC')[1:{{1}}]",
        frozenset({1}),
    )


FUNCTIONS = (
    AggregateFunction(
        name="COLLECT_LIST",
        arguments=("value",),
        doc="Collects all values into an array, in record order and including NULLs.",
        forms=(_list_form((ANY,), _ORDERED, "list_concat({s0}, {p0})", undo=_WITHOUT_LAST),),
        examples=(Example(call="COLLECT_LIST(x)", gives="ARRAY[3, 1, NULL, 3]", over="ARRAY[3, 1, NULL, 3]"),),
    ),
    AggregateFunction(
        name="COLLECT_SET",
        arguments=("value",),
        doc="Collects the distinct values into an array, in the order of first occurrence and including NULL.",
        forms=(
            _list_form((_PRIMITIVE,), f"array_distinct({_ORDERED})", f"list_concat({{s0}}, {_NEW})"),
            set_form(),
        ),
        examples=(Example(call="COLLECT_SET(x)", gives="ARRAY[3, 1, NULL]", over="ARRAY[3, 1, NULL, 3]"),),
    ),
    AggregateFunction(
        name="COUNT_DISTINCT",
        arguments=("value",),
        doc="Counts the distinct values. NULLs are ignored; the count is exact.",
        forms=(_COUNT_DISTINCT, count_form()),
        examples=(Example(call="COUNT_DISTINCT(x)", gives="CAST(2 AS BIGINT)", over="ARRAY[3, 1, NULL, 3]"),),
    ),
    AggregateFunction(
        name="HISTOGRAM",
        arguments=("value",),
        doc="Returns a map of each distinct string to its number of occurrences. Only the first "
        f"{_MAX_COUNTED:,} distinct strings are counted.",
        forms=(_HISTOGRAM,),
        examples=(
            Example(
                call="HISTOGRAM(x)",
                gives="MAP('a' := CAST(2 AS BIGINT), 'b' := CAST(1 AS BIGINT))",
                over="ARRAY['a', 'b', 'a']",
            ),
        ),
    ),
    AggregateFunction(
        name="ATTR",
        arguments=("value",),
        doc="Returns the value if all records have the same one, otherwise NULL.",
        forms=(_ATTR,),
        examples=(
            Example(call="ATTR(x)", gives="'a'", over="ARRAY['a', 'a']"),
            Example(call="ATTR(x)", gives="CAST(NULL AS STRING)", over="ARRAY['a', 'b']"),
        ),
    ),
    AggregateFunction(
        name="TOPK",
        arguments=("value", "count"),
        check=at_least_one(-1),
        doc="Returns the k greatest values in descending order; k is the last argument. NULLs are ignored. With "
        "further columns in between, each result is a STRUCT of the value and those columns.",
        forms=(_top("collect_list", "list_concat({s0}, {p0})"), top_rows_form()),
        examples=(
            Example(call="TOPK(x, 2)", gives="ARRAY[3, 3]", over="ARRAY[3, 1, NULL, 3]"),
            Example(
                call="TOPK(LEN(x), x, 1)",
                gives="ARRAY[STRUCT(`sort_col` := 3, `col0` := 'abc')]",
                over="ARRAY['a', 'abc', 'ab']",
            ),
        ),
    ),
    AggregateFunction(
        name="TOPKDISTINCT",
        arguments=("value", "count"),
        check=at_least_one(-1),
        doc="Returns the k greatest distinct values in descending order. NULLs are ignored.",
        forms=(_top("collect_set", "list_distinct(list_concat({s0}, {p0}))"),),
        examples=(Example(call="TOPKDISTINCT(x, 2)", gives="ARRAY[3, 1]", over="ARRAY[3, 1, NULL, 3]"),),
    ),
)
