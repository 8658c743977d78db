"""Functions that choose among their arguments."""

from holdfast.runtime.functions.declaration import Example, ScalarForm, ScalarFunction, first
from holdfast.runtime.functions.parameters import ANY, Parameter

CATEGORY = "CONDITIONAL"


def _choice(
    name: str,
    doc: str,
    sql: str,
    *examples: Example,
    count: int = 2,
    variadic: bool = False,
    one_kind: bool = False,
) -> ScalarFunction:
    parameters: tuple[Parameter, ...] = (ANY,) * count
    form = ScalarForm(parameters=parameters, returns=first, variadic=variadic, spark=sql, duckdb=sql)
    return ScalarFunction(name=name, doc=doc, forms=(form,), examples=examples, one_kind=one_kind)


FUNCTIONS = (
    _choice(
        "COALESCE",
        "The first argument that is not NULL.",
        "COALESCE({all})",
        Example(call="COALESCE(NULL, 2, 3)", gives="2"),
        count=1,
        variadic=True,
    ),
    _choice(
        "AS_VALUE",
        "Its argument: copies a key column into the value.",
        "{0}",
        Example(call="AS_VALUE(5)", gives="5"),
        count=1,
    ),
    _choice(
        "IFNULL",
        "The first argument, or the second when the first is NULL.",
        "COALESCE({all})",
        Example(call="IFNULL(CAST(NULL AS STRING), 'none')", gives="'none'"),
    ),
    _choice(
        "NULLIF",
        "NULL when both arguments are equal, else the first.",
        "NULLIF({all})",
        Example(call="NULLIF(1, 1)", gives="CAST(NULL AS INT)"),
        Example(call="NULLIF(1, 2)", gives="1"),
    ),
    _choice(
        "GREATEST",
        "The greatest argument that is not NULL; NULL when all are.",
        "GREATEST({all})",
        Example(call="GREATEST(1, 5, NULL)", gives="5"),
        variadic=True,
        one_kind=True,
    ),
    _choice(
        "LEAST",
        "The least argument that is not NULL; NULL when all are.",
        "LEAST({all})",
        Example(call="LEAST(4, 1, NULL)", gives="1"),
        variadic=True,
        one_kind=True,
    ),
)
