"""MAP functions. A NULL key becomes the string null, as in ksqlDB's formats."""

from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction
from holdfast.runtime.functions.parameters import ArrayOf, Chosen, MapOf, Variable
from holdfast.runtime.functions.spark_sql import let
from holdfast.types import Array, Map, Scalar, SqlType, Struct, StructField

CATEGORY = "MAP"
STRING, BOOLEAN = Scalar.STRING, Scalar.BOOLEAN

KEY, VALUE = Variable("K"), Variable("V")
MAPPING = MapOf(KEY, VALUE)


def _as_map(a: Arguments) -> str:
    keys, values = a.texts
    count = f"least(array_size({keys}), array_size({values}))"
    named = f"transform(slice({keys}, 1, {count}), k_ -> COALESCE(k_, 'null'))"
    return (
        f"CASE WHEN {keys} IS NOT NULL AND {values} IS NOT NULL"
        f" THEN map_from_arrays({named}, slice({values}, 1, {count})) END"
    )


def _entry(types: tuple[Chosen, ...]) -> SqlType:
    mapping = types[0]
    assert isinstance(mapping, Map)
    return Array(Struct((StructField("K", mapping.key), StructField("V", mapping.value))))


def _entries(a: Arguments) -> str:
    def body(mapping: str) -> str:
        keys = f"CASE WHEN {a.texts[1]} THEN array_sort(map_keys({mapping})) ELSE map_keys({mapping}) END"
        listed = f"transform({keys}, k_ -> named_struct('f0', k_, 'f1', {mapping}[k_]))"
        return f"CASE WHEN {a.texts[1]} IS NOT NULL THEN {listed} END"

    return let(a.texts[0], body, "map_")


def _union(a: Arguments) -> str:
    left, right = a.texts
    both = f"map_concat({left}, {right})"
    return f"CASE WHEN {left} IS NULL THEN {right} WHEN {right} IS NULL THEN {left} ELSE {both} END"


FUNCTIONS = (
    ScalarFunction(
        name="AS_MAP",
        arguments=("keys", "values"),
        doc="Builds a map from an array of keys and an array of values. Extra elements of the longer array are "
        "ignored; if a key occurs more than once, the last entry is used.",
        forms=(
            ScalarForm(
                parameters=(ArrayOf(STRING), ArrayOf(VALUE)), returns=MapOf(STRING, VALUE), spark=_as_map, duckdb=None
            ),
        ),
        examples=(Example(call="AS_MAP(ARRAY['a', 'b'], ARRAY[1, 2])", gives="MAP('a' := 1, 'b' := 2)"),),
    ),
    ScalarFunction(
        name="ENTRIES",
        arguments=("map", "sorted"),
        doc="Returns the entries of a map as structs with the fields K and V, sorted by key if the second argument "
        "is true.",
        forms=(
            ScalarForm(
                parameters=(MapOf(STRING, VALUE), BOOLEAN),
                returns=_entry,
                shown="ARRAY<STRUCT<K, V>>",
                spark=_entries,
                duckdb=None,
            ),
        ),
        examples=(
            Example(
                call="ENTRIES(MAP('b' := 2, 'a' := 1), TRUE)",
                gives="ARRAY[STRUCT(K := 'a', V := 1), STRUCT(K := 'b', V := 2)]",
            ),
        ),
    ),
    ScalarFunction(
        name="MAP_KEYS",
        arguments=("map",),
        doc="Returns the keys of a map, in no particular order.",
        forms=(ScalarForm(parameters=(MAPPING,), returns=ArrayOf(KEY), spark="map_keys({0})", duckdb="map_keys({0})"),),
        examples=(Example(call="MAP_KEYS(MAP('a' := 1))", gives="ARRAY['a']"),),
    ),
    ScalarFunction(
        name="MAP_VALUES",
        arguments=("map",),
        doc="Returns the values of a map, in no particular order.",
        forms=(
            ScalarForm(
                parameters=(MAPPING,), returns=ArrayOf(VALUE), spark="map_values({0})", duckdb="map_values({0})"
            ),
        ),
        examples=(Example(call="MAP_VALUES(MAP('a' := 1))", gives="ARRAY[1]"),),
    ),
    ScalarFunction(
        name="MAP_UNION",
        arguments=("left", "right"),
        doc="Merges two maps. If both have a key, the second map's value is used. A NULL map is ignored.",
        forms=(ScalarForm(parameters=(MAPPING, MAPPING), returns=MAPPING, spark=_union, duckdb=None),),
        examples=(Example(call="MAP_UNION(MAP('a' := 1, 'b' := 2), MAP('b' := 3))", gives="MAP('a' := 1, 'b' := 3)"),),
    ),
)
