"""Aggregates that keep values: lists, sets, the greatest, the first and the last.

Values come in the order of their records; a state is kept as a list.
"""

from collections.abc import Sequence

from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.functions.composite import COMPARED, count_form, firsts, set_form, top_rows_form
from holdfast.runtime.functions.declaration import (
    AggregateForm,
    AggregateFunction,
    Check,
    Constant,
    Example,
    Refusal,
    first,
)
from holdfast.runtime.functions.parameters import ANY, ArrayOf, Chosen, Family, Parameter, Variable
from holdfast.runtime.functions.sparksql import let
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

# As many of each value as there are to take back, from the end of the list.
_TAKEN = "list_filter({p0}, lambda y: y IS NOT DISTINCT FROM x)"
_LATER = "list_filter({s0}[i + 1:], lambda y: y IS NOT DISTINCT FROM x)"
_WITHOUT_LAST = (
    "list_filter({s0}, lambda x, i: CASE WHEN x IS NOT NULL AND NOT list_contains({p0}, x) THEN TRUE"
    f" ELSE len({_LATER}) >= len({_TAKEN}) END)"
)


def _list_state(types: tuple[Chosen, ...]) -> tuple[SqlType, ...]:
    return (Array(first(types)),)


def _listed(
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
    """One value, also when it is NULL if the second argument says so; `s1` tells whether there was any."""
    kept = "FILTER (WHERE {0} IS NOT NULL OR NOT {1})"
    return AggregateForm(
        parameters=(ANY, BOOLEAN),
        returns=first,
        state=lambda types: (first(types), BOOLEAN),
        initial=("CAST(NULL AS {t0})", "FALSE"),
        partial=(f"{partial}({{0}}, struct({{part}}, off)) {kept}", f"(COUNT(*) {kept} > 0)"),
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

    def many(parameters: tuple[Parameter, ...], kept: str) -> AggregateForm:
        values = f"filter({_ORDERED}, v_ -> {kept})"
        # Counted from the far end the last values are the first.
        partial = f"reverse(slice(reverse({values}), 1, {{1}}))" if latest else f"slice({values}, 1, {{1}})"
        joined = "list_concat({s0}, {p0})"
        merge = f"{joined}[-{{1}}:]" if latest else f"{joined}[1:{{1}}]"
        names = ("value", "count", "ignore_nulls")[: len(parameters)]
        return _listed(parameters, partial, merge, frozenset(range(1, len(parameters))), names=names)

    return (
        single,
        many((ANY, INTEGER), "v_ IS NOT NULL"),
        many((ANY, INTEGER, BOOLEAN), "v_ IS NOT NULL OR NOT {2}"),
    )


# As many texts as ksqlDB counts; those that come later are left out.
_MOST_COUNTED = 1_000
_HISTOGRAM_KEYS = (
    "list_concat(map_keys({s0}), list_filter(map_keys({p0}), lambda k: NOT list_contains(map_keys({s0}), k)))"
    f"[1:{_MOST_COUNTED}]"
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
        Dialect.SPARK: f"map_from_entries(slice(map_entries({{s0}}), 1, {_MOST_COUNTED}))",
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
    """Values and how often each was there, with those of a partial."""

    def of(values: str, counts: str) -> str:
        return f"COALESCE({{{counts}}}[list_position({{{values}}}, x)], 0)"

    count = f"{of('s0', 's1')} {sign} {of('p0', 'p1')}"
    known = f"list_concat({{s0}}, {_NEW})"
    kept = f"list_filter({known}, lambda x: {count} > 0)"
    return kept, f"list_transform({kept}, lambda x: {count})"


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


def at_least_one(place: int) -> Check:
    """Refuses a count that would keep no value."""

    def check(constants: Sequence[Constant]) -> Refusal | None:
        count = constants[place] if len(constants) > 1 else None
        if not isinstance(count, int) or isinstance(count, bool) or count > 0:
            return None
        return Refusal(place, "it would keep no value", "Write a number from 1 on.")

    return check


def _top(collected: str, joined: str) -> AggregateForm:
    return _listed(
        (_PRIMITIVE, INTEGER),
        f"slice(sort_array({collected}({{0}}), FALSE), 1, {{1}})",
        f"list_sort({joined}, 'DESC')[1:{{1}}]",
        frozenset({1}),
    )


FUNCTIONS = (
    AggregateFunction(
        name="COLLECT_LIST",
        arguments=("value",),
        doc="All values in the order of their records, NULLs too.",
        forms=(_listed((ANY,), _ORDERED, "list_concat({s0}, {p0})", undo=_WITHOUT_LAST),),
        examples=(Example(call="COLLECT_LIST(x)", gives="ARRAY[3, 1, NULL, 3]", over="ARRAY[3, 1, NULL, 3]"),),
    ),
    AggregateFunction(
        name="COLLECT_SET",
        arguments=("value",),
        doc="All different values in the order of their first record, NULL too.",
        forms=(
            _listed((_PRIMITIVE,), f"array_distinct({_ORDERED})", f"list_concat({{s0}}, {_NEW})"),
            set_form(),
        ),
        examples=(Example(call="COLLECT_SET(x)", gives="ARRAY[3, 1, NULL]", over="ARRAY[3, 1, NULL, 3]"),),
    ),
    AggregateFunction(
        name="COUNT_DISTINCT",
        arguments=("value",),
        doc="How many different values there are, NULL left out. The count is exact.",
        forms=(_COUNT_DISTINCT, count_form()),
        examples=(Example(call="COUNT_DISTINCT(x)", gives="CAST(2 AS BIGINT)", over="ARRAY[3, 1, NULL, 3]"),),
    ),
    AggregateFunction(
        name="HISTOGRAM",
        arguments=("value",),
        doc=f"How often each text occurs. The first {_MOST_COUNTED:,} texts are counted, later ones left out.",
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
        doc="The value that all records have; NULL as soon as two differ.",
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
        doc="The greatest values, as many as the last argument says, the greatest first; NULLs are left out. With "
        "columns in between, each comes as a STRUCT with theirs.",
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
        doc="The greatest different values, the greatest first; NULLs are left out.",
        forms=(_top("collect_set", "list_distinct(list_concat({s0}, {p0}))"),),
        examples=(Example(call="TOPKDISTINCT(x, 2)", gives="ARRAY[3, 1]", over="ARRAY[3, 1, NULL, 3]"),),
    ),
)
