"""Functions that choose among their arguments."""

from holdfast.runtime.expressions.comparable import comparable, has_map
from holdfast.runtime.expressions.physical import NotRenderable
from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction, Template, first
from holdfast.runtime.functions.parameters import ANY, Family, Variable

CATEGORY = "CONDITIONAL"
_ORDERED = Variable("T", Family.ORDERED)


def _choice(
    name: str,
    doc: str,
    spark: Template,
    *examples: Example,
    duckdb: Template | None = None,
    count: int = 2,
    variadic: bool = False,
) -> ScalarFunction:
    form = ScalarForm(parameters=(ANY,) * count, returns=first, variadic=variadic, spark=spark, duckdb=duckdb or spark)
    return ScalarFunction(name=name, doc=doc, forms=(form,), examples=examples)


def _extreme(name: str, doc: str, *examples: Example) -> ScalarFunction:
    def write(a: Arguments) -> str:
        """Spark's function requires at least two arguments."""
        return f"{name}({', '.join(a.texts)})" if len(a.texts) > 1 else a.texts[0]

    form = ScalarForm(parameters=(_ORDERED,), returns=first, variadic=True, spark=write, duckdb=write)
    return ScalarFunction(name=name, doc=doc, forms=(form,), examples=examples, one_kind=True)


def _unless_equal(a: Arguments) -> str:
    left, right = a.texts
    type_ = a.type(0)
    if not has_map(type_):
        return f"NULLIF({left}, {right})"
    return f"CASE WHEN {comparable(left, type_)} = {comparable(right, type_)} THEN NULL ELSE {left} END"


def _duckdb_unless_equal(a: Arguments) -> str:
    if has_map(a.type(0)):
        raise NotRenderable("NULLIF of MAPs")
    return f"NULLIF({', '.join(a.texts)})"


FUNCTIONS = (
    _choice(
        "COALESCE",
        "Returns the first argument that is not NULL.",
        "COALESCE({all})",
        Example(call="COALESCE(NULL, 2, 3)", gives="2"),
        count=1,
        variadic=True,
    ),
    _choice(
        "AS_VALUE",
        "Returns its argument. Use it to copy a key column into the value.",
        "{0}",
        Example(call="AS_VALUE(5)", gives="5"),
        count=1,
    ),
    _choice(
        "IFNULL",
        "Returns the first argument, or the second if the first is NULL.",
        "COALESCE({all})",
        Example(call="IFNULL(CAST(NULL AS STRING), 'none')", gives="'none'"),
    ),
    _choice(
        "NULLIF",
        "Returns NULL if both arguments are equal, otherwise the first.",
        _unless_equal,
        Example(call="NULLIF(1, 1)", gives="CAST(NULL AS INT)"),
        Example(call="NULLIF(1, 2)", gives="1"),
        duckdb=_duckdb_unless_equal,
    ),
    _extreme(
        "GREATEST",
        "Returns the greatest argument. NULLs are ignored; NULL if all arguments are NULL. MAPs cannot be compared.",
        Example(call="GREATEST(1, 5, NULL)", gives="5"),
    ),
    _extreme(
        "LEAST",
        "Returns the least argument. NULLs are ignored; NULL if all arguments are NULL. MAPs cannot be compared.",
        Example(call="LEAST(4, 1, NULL)", gives="1"),
    ),
)
