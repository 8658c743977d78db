"""Table functions: one row in, one row out for each value."""

from holdfast.runtime.expressions.physical import Dialect, physical_type
from holdfast.runtime.functions.declaration import Arguments, TableForm, TableFunction
from holdfast.runtime.functions.parameters import ANY, ArrayOf, Chosen
from holdfast.types import Array, SqlType

CATEGORY = "TABLE"


def _element(types: tuple[Chosen, ...]) -> SqlType:
    array = Arguments((), types).type(0)
    assert isinstance(array, Array)
    return array.element


def _cube(arguments: Arguments) -> str:
    """Every element in turn doubles what was there: once with NULL in its place, once with itself."""
    missing = f"CAST(NULL AS {physical_type(_element(arguments.chosen), Dialect.SPARK)})"
    array = arguments.texts[0]
    both = f"array(concat(row_, array({missing})), concat(row_, array(next_)))"
    each = f"IF(next_ IS NULL, array(concat(row_, array(next_))), {both})"
    return (
        f"aggregate({array}, array(filter({array}, none_ -> FALSE)), "
        f"(rows_, next_) -> flatten(transform(rows_, row_ -> {each})))"
    )


FUNCTIONS = (
    TableFunction(
        name="EXPLODE",
        doc="A row for each element of an array; of none or NULL, no row.",
        arguments=("array",),
        forms=(TableForm(parameters=(ArrayOf(ANY),), returns=_element, spark="{0}"),),
    ),
    TableFunction(
        name="CUBE_EXPLODE",
        doc="A row for each choice of the elements of an array, with NULL in place of those that are left out.",
        arguments=("array",),
        forms=(TableForm(parameters=(ArrayOf(ANY),), returns=ArrayOf(ANY), spark=_cube),),
    ),
)
