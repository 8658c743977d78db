"""ARRAY functions. Elements compare as in Java: NULL equals NULL, and maps with equal entries are equal."""

from collections.abc import Callable

from holdfast.runtime.expressions.casts import cast
from holdfast.runtime.expressions.comparable import comparable, has_map
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction, Template
from holdfast.runtime.functions.parameters import ANY, ArrayOf, Family, Variable
from holdfast.runtime.functions.spark_sql import let
from holdfast.types import Array, Scalar, SqlType

CATEGORY = "ARRAY"
STRING, INTEGER, BIGINT, BOOLEAN = Scalar.STRING, Scalar.INTEGER, Scalar.BIGINT, Scalar.BOOLEAN

ELEMENTS = ArrayOf(ANY)
_PRIMITIVE = Variable("T", Family.PRIMITIVE)
PRIMITIVES = ArrayOf(_PRIMITIVE)

# A longer series is NULL: it would take too much memory for one row.
_MAX_ELEMENTS = 10_000_000


def element_type(arguments: Arguments, index: int = 0) -> SqlType:
    type_ = arguments.type(index)
    assert isinstance(type_, Array)
    return type_.element


def _has(array: str, value: str, type_: SqlType) -> str:
    """Whether a non-NULL array contains a value."""
    return f"exists({array}, has_ -> {comparable('has_', type_)} <=> {comparable(value, type_)})"


def _distinct(array: str, type_: SqlType) -> str:
    if not has_map(type_):
        return f"array_distinct({array})"
    extended = f"CASE WHEN {_has('seen_', 'new_', type_)} THEN seen_ ELSE concat(seen_, array(new_)) END"
    return let(array, lambda a: f"aggregate({a}, filter({a}, none_ -> FALSE), (seen_, new_) -> {extended})", "all_")


def _set(native: str, composed: Callable[[str, str, SqlType], str]) -> Template:
    """Spark's own function, or one built from comparisons if elements contain maps."""

    def write(a: Arguments) -> str:
        left, right = a.texts
        type_ = element_type(a)
        if not has_map(type_):
            return f"{native}({left}, {right})"
        return _distinct(composed(left, right, type_), type_)

    return write


def _contains(a: Arguments) -> str:
    return f"COALESCE({_has(a.texts[0], a.texts[1], element_type(a))}, FALSE)"


def _remove(a: Arguments) -> str:
    type_ = element_type(a)
    return f"filter({a.texts[0]}, x_ -> NOT ({comparable('x_', type_)} <=> {comparable(a.texts[1], type_)}))"


def _concat(a: Arguments) -> str:
    left, right = a.texts
    return f"CASE WHEN {left} IS NULL THEN {right} WHEN {right} IS NULL THEN {left} ELSE concat({left}, {right}) END"


def _join(a: Arguments) -> str:
    element = cast("x_", element_type(a), STRING, Dialect.SPARK)
    delimiter = f"COALESCE({a.texts[1]}, '')" if len(a.texts) > 1 else "','"
    return f"array_join(transform({a.texts[0]}, x_ -> COALESCE({element}, 'null')), {delimiter})"


def _sort(a: Arguments) -> str:
    array, *direction = a.texts
    if not direction:
        return f"array_sort({array})"
    ascending, descending = "('ASC', 'ASCENDING')", "('DESC', 'DESCENDING')"
    order = f"upper({direction[0]})"
    return (
        f"CASE WHEN {order} IN {ascending} THEN array_sort({array})"
        f" WHEN {order} IN {descending} THEN sort_array({array}, FALSE) END"
    )


def _slice(a: Arguments) -> str:
    def body(array: str) -> str:
        start, end = f"COALESCE({a.texts[1]}, 1)", f"COALESCE({a.texts[2]}, array_size({array}))"
        in_range = f"{start} >= 1 AND {end} <= array_size({array}) AND {start} - 1 <= {end}"
        return f"CASE WHEN {in_range} THEN slice({array}, {start}, {end} - {start} + 1) END"

    return let(a.texts[0], body, "all_")


def _series(a: Arguments) -> str:
    start, end, *steps = a.texts
    step = steps[0] if steps else f"CASE WHEN {end} > {start} THEN 1 ELSE -1 END"

    def body(by: str) -> str:
        span = f"(CAST({end} AS DECIMAL(20,0)) - {start})"
        valid = f"{by} <> 0 AND {span} * sign({by}) >= 0 AND abs({span}) < {_MAX_ELEMENTS}D * abs({by})"
        return f"CASE WHEN {valid} THEN sequence({start}, {end}, {by}) END"

    return let(f"CAST({step} AS {'INT' if a.type(0) is INTEGER else 'BIGINT'})", body, "step_")


def _function(
    name: str,
    doc: str,
    arguments: tuple[str, ...],
    forms: tuple[ScalarForm, ...],
    *examples: Example,
) -> ScalarFunction:
    return ScalarFunction(name=name, arguments=arguments, doc=doc, forms=forms, examples=examples)


FUNCTIONS = (
    _function(
        "ARRAY_LENGTH",
        "Returns the number of elements in an array.",
        ("array",),
        (
            ScalarForm(
                parameters=(ELEMENTS,), returns=INTEGER, spark="array_size({0})", duckdb="CAST(len({0}) AS INTEGER)"
            ),
        ),
        Example(call="ARRAY_LENGTH(ARRAY[1, NULL, 3])", gives="3"),
    ),
    _function(
        "ARRAY_CONTAINS",
        "Returns true if an array contains a value. False for a NULL array.",
        ("array", "element"),
        (ScalarForm(parameters=(ELEMENTS, ANY), returns=BOOLEAN, spark=_contains, duckdb=None),),
        Example(call="ARRAY_CONTAINS(ARRAY[1, 2], 2)", gives="true"),
    ),
    _function(
        "ARRAY_CONCAT",
        "Concatenates two arrays. A NULL array is ignored.",
        ("left", "right"),
        (ScalarForm(parameters=(ELEMENTS, ELEMENTS), returns=ELEMENTS, spark=_concat, duckdb=None),),
        Example(call="ARRAY_CONCAT(ARRAY[1, 2], ARRAY[2, 3])", gives="ARRAY[1, 2, 2, 3]"),
    ),
    _function(
        "ARRAY_DISTINCT",
        "Removes duplicate elements, in the order of first occurrence.",
        ("array",),
        (
            ScalarForm(
                parameters=(ELEMENTS,),
                returns=ELEMENTS,
                spark=lambda a: _distinct(a.texts[0], element_type(a)),
                duckdb=None,
            ),
        ),
        Example(call="ARRAY_DISTINCT(ARRAY[1, 2, 1, NULL, NULL])", gives="ARRAY[1, 2, NULL]"),
    ),
    _function(
        "ARRAY_UNION",
        "Returns the distinct elements of both arrays. NULL if either array is NULL.",
        ("left", "right"),
        (
            ScalarForm(
                parameters=(ELEMENTS, ELEMENTS),
                returns=ELEMENTS,
                spark=_set("array_union", lambda left, right, _: f"concat({left}, {right})"),
                duckdb=None,
            ),
        ),
        Example(call="ARRAY_UNION(ARRAY[3, 1, 3], ARRAY[2, 1])", gives="ARRAY[3, 1, 2]"),
    ),
    _function(
        "ARRAY_INTERSECT",
        "Returns the distinct elements that are in both arrays. NULL if either array is NULL.",
        ("left", "right"),
        (
            ScalarForm(
                parameters=(ELEMENTS, ELEMENTS),
                returns=ELEMENTS,
                spark=_set("array_intersect", lambda left, right, t: f"filter({left}, l_ -> {_has(right, 'l_', t)})"),
                duckdb=None,
            ),
        ),
        Example(call="ARRAY_INTERSECT(ARRAY[3, 1, 3], ARRAY[2, 3])", gives="ARRAY[3]"),
    ),
    _function(
        "ARRAY_EXCEPT",
        "Returns the distinct elements of the first array that are not in the second. NULL if either array is NULL.",
        ("left", "right"),
        (
            ScalarForm(
                parameters=(ELEMENTS, ELEMENTS),
                returns=ELEMENTS,
                spark=_set(
                    "array_except",
                    lambda left, right, t: (
                        f"CASE WHEN {right} IS NOT NULL THEN filter({left}, l_ -> NOT {_has(right, 'l_', t)}) END"
                    ),
                ),
                duckdb=None,
            ),
        ),
        Example(call="ARRAY_EXCEPT(ARRAY[3, 1, 3], ARRAY[2, 1])", gives="ARRAY[3]"),
    ),
    _function(
        "ARRAY_REMOVE",
        "Removes all elements that are equal to a value.",
        ("array", "element"),
        (ScalarForm(parameters=(ELEMENTS, ANY), returns=ELEMENTS, spark=_remove, duckdb=None),),
        Example(call="ARRAY_REMOVE(ARRAY[1, 2, NULL, 1], 1)", gives="ARRAY[2, NULL]"),
    ),
    _function(
        "ARRAY_JOIN",
        "Joins the elements into a string with a delimiter between them, a comma by default. NULL elements are "
        "written as null.",
        ("array", "delimiter"),
        tuple(
            ScalarForm(parameters=(PRIMITIVES, *delimiter), returns=STRING, spark=_join, duckdb=None)
            for delimiter in ((), (STRING,))
        ),
        Example(call="ARRAY_JOIN(ARRAY[1, NULL, 3], '-')", gives="'1-null-3'"),
    ),
    _function(
        "ARRAY_MAX",
        "Returns the greatest element. NULLs are ignored.",
        ("array",),
        (ScalarForm(parameters=(PRIMITIVES,), returns=_PRIMITIVE, spark="array_max({0})", duckdb=None),),
        Example(call="ARRAY_MAX(ARRAY[1, 3, NULL])", gives="3"),
    ),
    _function(
        "ARRAY_MIN",
        "Returns the least element. NULLs are ignored.",
        ("array",),
        (ScalarForm(parameters=(PRIMITIVES,), returns=_PRIMITIVE, spark="array_min({0})", duckdb=None),),
        Example(call="ARRAY_MIN(ARRAY['b', 'a'])", gives="'a'"),
    ),
    _function(
        "ARRAY_SORT",
        "Sorts an array, ASC or DESC. NULLs come last.",
        ("array", "direction"),
        tuple(
            ScalarForm(parameters=(PRIMITIVES, *direction), returns=PRIMITIVES, spark=_sort, duckdb=None)
            for direction in ((), (STRING,))
        ),
        Example(call="ARRAY_SORT(ARRAY[2, NULL, 1])", gives="ARRAY[1, 2, NULL]"),
        Example(call="ARRAY_SORT(ARRAY[2, NULL, 3], 'DESC')", gives="ARRAY[3, 2, NULL]"),
    ),
    _function(
        "SLICE",
        "Returns the elements between two positions, both inclusive and starting at 1. NULL if a position is "
        "outside the array. A NULL position stands for the first or the last.",
        ("array", "from", "to"),
        (ScalarForm(parameters=(ELEMENTS, INTEGER, INTEGER), returns=ELEMENTS, spark=_slice, duckdb=None),),
        Example(call="SLICE(ARRAY[1, 2, 3, 4], 2, 3)", gives="ARRAY[2, 3]"),
    ),
    _function(
        "GENERATE_SERIES",
        "Returns an array of the integers from start to end, both inclusive. The step is 1 or -1 by default. "
        "NULL if the step leads away from the end, or if there are more than ten million elements.",
        ("start", "end", "step"),
        tuple(
            ScalarForm(parameters=(type_, type_, *step), returns=Array(type_), spark=_series, duckdb=None)
            for type_ in (INTEGER, BIGINT)
            for step in ((), (INTEGER,))
        ),
        Example(call="GENERATE_SERIES(1, 10, 4)", gives="ARRAY[1, 5, 9]"),
        Example(call="GENERATE_SERIES(3, 1)", gives="ARRAY[3, 2, 1]"),
    ),
)
