"""Functions that apply a lambda to the elements of an array or the entries of a map."""

from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction
from holdfast.runtime.functions.maps import KEY, MAPPING, VALUE
from holdfast.runtime.functions.parameters import ANY, ArrayOf, LambdaOf, LambdaType, MapOf, Variable
from holdfast.runtime.functions.spark_sql import let
from holdfast.types import Scalar

CATEGORY = "LAMBDA"
BOOLEAN = Scalar.BOOLEAN

_RESULT, _NEW_KEY, _NEW_VALUE, _STATE = Variable("U"), Variable("K2"), Variable("V2"), Variable("S")


def _parts(text: str) -> tuple[list[str], str]:
    """The names of a lambda's parameters and its body."""
    names, body = text.split(" -> ", 1)
    return names.strip("()").split(", "), body


def _transform_map(a: Arguments) -> str:
    """Both lambdas take the old entries, so the new keys are first computed as the values of a map."""
    key_lambda = a.chosen[1]
    assert isinstance(key_lambda, LambdaType)

    def body(mapping: str) -> str:
        keys = f"map_values(transform_values({mapping}, {a.texts[1]}))"
        values = f"map_values(transform_values({mapping}, {a.texts[2]}))"
        if key_lambda.returns is Scalar.STRING:
            keys = f"transform({keys}, k_ -> COALESCE(k_, 'null'))"
            return f"map_from_arrays({keys}, {values})"
        result = f"CASE WHEN NOT exists(keys_, k_ -> k_ IS NULL) THEN map_from_arrays(keys_, {values}) END"
        return let(f"({keys})", lambda _: result, "keys_")

    return let(a.texts[0], body, "map_")


def _reduce(a: Arguments) -> str:
    collection, state, function = a.texts

    def body(initial: str) -> str:
        return (
            f"CASE WHEN {initial} IS NULL OR {collection} IS NULL THEN {initial}"
            f" ELSE aggregate({collection}, {initial}, {function}) END"
        )

    return let(state, body, "state_")


def _reduce_map(a: Arguments) -> str:
    mapping, state, function = a.texts
    (accumulator, key, value), body = _parts(function)
    applied = f"get(transform(array(e_.key), {key} -> get(transform(array(e_.value), {value} -> {body}), 0)), 0)"
    over_entries = f"({accumulator}, e_) -> {applied}"
    return _reduce(Arguments((f"map_entries({mapping})", state, over_entries), a.chosen, a.constants, a.returns))


FUNCTIONS = (
    ScalarFunction(
        name="TRANSFORM",
        arguments=("collection", "lambda", "value lambda"),
        doc="Applies a lambda to each element of an array, or one lambda to the keys and one to the values of a "
        "map. If new keys are equal, the last entry is used.",
        forms=(
            ScalarForm(
                parameters=(ArrayOf(ANY), LambdaOf((ANY,), _RESULT)),
                returns=ArrayOf(_RESULT),
                spark="transform({0}, {1})",
                duckdb=None,
            ),
            ScalarForm(
                parameters=(MAPPING, LambdaOf((KEY, VALUE), _NEW_KEY), LambdaOf((KEY, VALUE), _NEW_VALUE)),
                returns=MapOf(_NEW_KEY, _NEW_VALUE),
                spark=_transform_map,
                duckdb=None,
            ),
        ),
        examples=(
            Example(call="TRANSFORM(ARRAY[1, 2], x => x * 10)", gives="ARRAY[10, 20]"),
            Example(call="TRANSFORM(MAP('a' := 1), (k, v) => UCASE(k), (k, v) => v + 1)", gives="MAP('A' := 2)"),
        ),
    ),
    ScalarFunction(
        name="FILTER",
        arguments=("collection", "lambda"),
        doc="Returns the elements of an array, or the entries of a map, for which a lambda returns true.",
        forms=(
            ScalarForm(
                parameters=(ArrayOf(ANY), LambdaOf((ANY,), BOOLEAN)),
                returns=ArrayOf(ANY),
                spark="filter({0}, {1})",
                duckdb=None,
            ),
            ScalarForm(
                parameters=(MAPPING, LambdaOf((KEY, VALUE), BOOLEAN)),
                returns=MAPPING,
                spark="map_filter({0}, {1})",
                duckdb=None,
            ),
        ),
        examples=(
            Example(call="FILTER(ARRAY[1, 5, NULL, 7], x => x > 3)", gives="ARRAY[5, 7]"),
            Example(call="FILTER(MAP('a' := 1, 'b' := 2), (k, v) => v = 2)", gives="MAP('b' := 2)"),
        ),
    ),
    ScalarFunction(
        name="REDUCE",
        arguments=("collection", "state", "lambda"),
        doc="Folds an array or a map into one value: applies a lambda to the state and each element, or to the "
        "state and each key and value. Returns the initial state if it or the collection is NULL.",
        forms=(
            ScalarForm(
                parameters=(ArrayOf(ANY), _STATE, LambdaOf((_STATE, ANY), _STATE)),
                returns=_STATE,
                spark=_reduce,
                duckdb=None,
            ),
            ScalarForm(
                parameters=(MAPPING, _STATE, LambdaOf((_STATE, KEY, VALUE), _STATE)),
                returns=_STATE,
                spark=_reduce_map,
                duckdb=None,
            ),
        ),
        examples=(
            Example(call="REDUCE(ARRAY[1, 2, 3], 10, (s, x) => s + x)", gives="16"),
            Example(call="REDUCE(MAP('a' := 1, 'b' := 2), 0, (s, k, v) => s + v)", gives="3"),
        ),
    ),
)
