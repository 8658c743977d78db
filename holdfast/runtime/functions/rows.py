"""Table functions: one row in, one row out for each value."""

from holdfast.runtime.expressions.physical import Dialect, physical_type
from holdfast.runtime.functions.declaration import Arguments, Example, TableForm, TableFunction
from holdfast.runtime.functions.parameters import ANY, ArrayOf, Chosen
from holdfast.types import Array, SqlType

CATEGORY = "TABLE"

# Of more there are no rows: every further element doubles them.
_MOST_ELEMENTS = 16


def _element(types: tuple[Chosen, ...]) -> SqlType:
    array = Arguments((), types).type(0)
    assert isinstance(array, Array)
    return array.element


def _cube(arguments: Arguments) -> str:
    """Every element in turn doubles what was there: once with NULL in its place, once with itself.

    It begins with an array of NULLs, none of them left: one of values that cannot be NULL could not take any.
    """
    missing = f"CAST(NULL AS {physical_type(_element(arguments.chosen), Dialect.SPARK)})"
    array = arguments.texts[0]
    both = f"array(concat(row_, array({missing})), concat(row_, array(next_)))"
    each = f"IF(next_ IS NULL, array(concat(row_, array(next_))), {both})"
    few = f"size(filter({array}, one_ -> one_ IS NOT NULL)) <= {_MOST_ELEMENTS}"
    return (
        f"CASE WHEN {few} THEN aggregate({array}, array(filter(array({missing}), none_ -> FALSE)), "
        f"(rows_, next_) -> flatten(transform(rows_, row_ -> {each}))) END"
    )


FUNCTIONS = (
    TableFunction(
        name="EXPLODE",
        doc="A row for each element of an array; of none or NULL, no row.",
        arguments=("array",),
        forms=(TableForm(parameters=(ArrayOf(ANY),), returns=_element, spark="{0}"),),
        examples=(Example(call="EXPLODE(ARRAY[1, NULL, 3])", gives="ARRAY[1, NULL, 3]"),),
    ),
    TableFunction(
        name="CUBE_EXPLODE",
        doc="A row for each choice of the elements of an array, with NULL in place of those that are left out; "
        f"no row when more than {_MOST_ELEMENTS} elements are not NULL.",
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
