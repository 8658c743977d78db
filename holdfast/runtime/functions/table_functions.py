"""Table functions: one row in, one row out for each value."""

from holdfast.runtime.expressions.physical import Dialect, physical_type
from holdfast.runtime.functions.declaration import Arguments, Example, TableForm, TableFunction
from holdfast.runtime.functions.parameters import ANY, ArrayOf, Chosen
from holdfast.types import Array, SqlType

CATEGORY = "TABLE"

# Every element doubles the number of rows; an array with more elements returns none.
_MAX_ELEMENTS = 16


def _element(types: tuple[Chosen, ...]) -> SqlType:
    array = Arguments((), types).type(0)
    assert isinstance(array, Array)
    return array.element


def _cube(arguments: Arguments) -> str:
    """Every element in turn doubles the rows: once with NULL in its position, once with itself.

    The initial row is an empty array of nullable elements; otherwise it could not take NULLs.
    """
    missing = f"CAST(NULL AS {physical_type(_element(arguments.chosen), Dialect.SPARK)})"
    array = arguments.texts[0]
    both = f"array(concat(row_, array({missing})), concat(row_, array(next_)))"
    each = f"IF(next_ IS NULL, array(concat(row_, array(next_))), {both})"
    within_limit = f"size(filter({array}, one_ -> one_ IS NOT NULL)) <= {_MAX_ELEMENTS}"
    return (
        f"CASE WHEN {within_limit} THEN aggregate({array}, array(filter(array({missing}), none_ -> FALSE)), "
        f"(rows_, next_) -> flatten(transform(rows_, row_ -> {each}))) END"
    )


FUNCTIONS = (
    TableFunction(
        name="EXPLODE",
        doc="Returns a row for each element of an array. An empty or NULL array returns no rows.",
        arguments=("array",),
        forms=(TableForm(parameters=(ArrayOf(ANY),), returns=_element, spark="{0}"),),
        examples=(Example(call="EXPLODE(ARRAY[1, NULL, 3])", gives="ARRAY[1, NULL, 3]"),),
    ),
    TableFunction(
        name="CUBE_EXPLODE",
        doc="Returns a row for each combination of an array's elements, with NULL for the elements that are not in it. "
        f"Returns no rows if more than {_MAX_ELEMENTS} elements are not NULL.",
        arguments=("array",),
        forms=(TableForm(parameters=(ArrayOf(ANY),), returns=ArrayOf(ANY), spark=_cube),),
        examples=(
            Example(
                call="CUBE_EXPLODE(ARRAY[1, 2])",
                gives="ARRAY[ARRAY[CAST(NULL AS INT), NULL], ARRAY[CAST(NULL AS INT), 2], ARRAY[1, NULL], ARRAY[1, 2]]",
            ),
        ),
    ),
)
