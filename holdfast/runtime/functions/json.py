"""JSON functions. A string that is not valid JSON gives NULL."""

from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction
from holdfast.runtime.functions.json_text import (
    json_of,
    json_string,
    marked,
    marked_if_needed,
    restored,
    single_quoted,
    strict,
    value_json,
    value_text,
)
from holdfast.runtime.functions.parameters import ANY
from holdfast.runtime.functions.spark_sql import let, text
from holdfast.types import Array, Map, Scalar

CATEGORY = "JSON"
STRING, INTEGER, BIGINT, DOUBLE, BOOLEAN = (
    Scalar.STRING,
    Scalar.INTEGER,
    Scalar.BIGINT,
    Scalar.DOUBLE,
    Scalar.BOOLEAN,
)

_ITEMS = "try_cast(try_parse_json({0}) AS ARRAY<VARIANT>)"
_STRICT = "map('allowSingleQuotes', 'false')"


def _extract(a: Arguments) -> str:
    """Names in brackets have double quotes in ksqlDB's paths, single quotes in Spark's."""
    path = f"replace(replace({a.texts[1]}, '[\"', {text('[' + chr(39))}), '\"]', {text(chr(39) + ']')})"
    document = let(a.texts[0], strict, "text_")
    found = let(document, lambda json: f"get_json_object({marked_if_needed(json)}, {path})", "doc_")
    return let(found, value_text, "found_")


def _contains(test: str) -> str:
    """`test` is a condition on an element `v_`; in it, `kind_` stands for the element's type."""
    kinds = "schema_of_variant(v_)"
    return (
        f"COALESCE(exists({_ITEMS}, v_ -> CASE WHEN {kinds} = 'VOID' THEN {{1}} IS NULL"
        f" ELSE COALESCE({test.replace('kind_', kinds)}, FALSE) END), FALSE)"
    )


_CONTAINS = {
    BOOLEAN: "kind_ = 'BOOLEAN' AND try_cast(v_ AS BOOLEAN) = {1}",
    INTEGER: "kind_ = 'BIGINT' AND try_cast(v_ AS BIGINT) = {1}",
    BIGINT: "kind_ = 'BIGINT' AND try_cast(v_ AS BIGINT) = {1}",
    DOUBLE: "(kind_ = 'DOUBLE' OR kind_ LIKE 'DECIMAL%') AND try_cast(v_ AS DOUBLE) = {1}",
    STRING: "kind_ = 'STRING' AND try_cast(v_ AS STRING) = {1}",
}


def _records(a: Arguments) -> str:
    entries = f"map_entries(from_json({marked(a.texts[0])}, 'MAP<STRING, STRING>', {_STRICT}))"
    entry = f"named_struct('k', substring(e_.key, 2), 'v', {value_text('e_.value')})"
    return f"map_from_entries(transform({entries}, e_ -> {entry}))"


def _items(a: Arguments) -> str:
    """NULL unless every element is an object."""
    every = "forall(items_, i_ -> substring(i_, 1, 1) = '{{')".replace("{{", "{")
    listed = f"CASE WHEN {every} THEN transform(items_, i_ -> {restored('i_')}) END"
    return let(f"(from_json({marked(a.texts[0])}, 'ARRAY<STRING>', {_STRICT}))", lambda _: listed, "items_")


def _concat(a: Arguments) -> str:
    """Merges objects into one object, anything else into one array. A single argument is returned unchanged."""
    documents = f"array({', '.join(marked(let(json, strict, 'text_')) for json in a.texts)})"
    values = "transform(docs_, d_ -> get_json_object(d_, '$'))"
    maps = "transform(docs_, d_ -> from_json(d_, 'MAP<STRING, STRING>'))"
    merged = f"aggregate({maps}, map_filter({maps}[0], (k_, v_) -> FALSE), (all_, m_) -> map_concat(all_, m_))"
    entry = f"concat({json_string('substring(e_.key, 2)')}, ':', {value_json('e_.value')})"
    one = f"concat('{{', array_join(transform(map_entries({merged}), e_ -> {entry}), ','), '}}')"
    inner = "CASE WHEN v_ LIKE '[%' THEN substring(v_, 2, length(v_) - 2) ELSE v_ END"
    parts = f"filter(transform(values_, x_ -> {let(value_json('x_'), lambda _: inner, 'v_')}), p_ -> p_ <> '')"
    listed = f"concat('[', array_join({parts}, ','), ']')"
    many = listed if len(a.texts) > 1 else let("values_[0]", value_json, "x_")
    chosen = (
        "CASE WHEN exists(values_, x_ -> x_ IS NULL) THEN NULL"
        f" WHEN forall(values_, x_ -> x_ LIKE '{{%') THEN {one} ELSE {many} END"
    )
    return let(f"({documents})", lambda _: let(f"({values})", lambda _: chosen, "values_"), "docs_")


def _function(
    name: str, doc: str, arguments: tuple[str, ...], forms: tuple[ScalarForm, ...], *examples: Example
) -> ScalarFunction:
    return ScalarFunction(name=name, doc=doc, arguments=arguments, forms=forms, examples=examples)


FUNCTIONS = (
    _function(
        "EXTRACTJSONFIELD",
        "Extracts the value at a path such as $.a.b[0] from a JSON string: strings without quotes, anything "
        "else as JSON. NULL if there is no value at the path. If an object has a name more than once, the "
        "first is used.",
        ("json", "path"),
        (ScalarForm(parameters=(STRING, STRING), returns=STRING, spark=_extract, duckdb=None),),
        Example(call="""EXTRACTJSONFIELD('{"a": {"b": ["x", 1.50]}}', '$.a.b[1]')""", gives="'1.50'"),
        Example(call="""EXTRACTJSONFIELD('{"a": {"b": ["x", 1.50]}}', '$.a')""", gives="""'{"b":["x",1.50]}'"""),
    ),
    _function(
        "IS_JSON_STRING",
        "Returns true if a string is valid JSON. False for NULL.",
        ("text",),
        (
            ScalarForm(
                parameters=(STRING,),
                returns=BOOLEAN,
                spark=f"(get_json_object({{0}}, '$') IS NOT NULL AND NOT {single_quoted('{0}')})",
                duckdb=None,
            ),
        ),
        Example(call="IS_JSON_STRING('[1, 2]')", gives="true"),
        Example(call="IS_JSON_STRING('[1, 2')", gives="false"),
    ),
    _function(
        "JSON_ARRAY_CONTAINS",
        "Returns true if a JSON array contains a value of the same type. False for anything but a JSON array.",
        ("json", "value"),
        tuple(
            ScalarForm(parameters=(STRING, type_), returns=BOOLEAN, spark=_contains(test), duckdb=None)
            for type_, test in _CONTAINS.items()
        ),
        Example(call="""JSON_ARRAY_CONTAINS('[1, "a", true]', 'a')""", gives="true"),
        Example(call="""JSON_ARRAY_CONTAINS('["1"]', 1)""", gives="false"),
    ),
    _function(
        "JSON_ARRAY_LENGTH",
        "Returns the number of elements in a JSON array. NULL for anything else.",
        ("json",),
        (
            ScalarForm(
                parameters=(STRING,),
                returns=INTEGER,
                spark=lambda a: f"json_array_length({let(a.texts[0], strict)})",
                duckdb=None,
            ),
        ),
        Example(call="JSON_ARRAY_LENGTH('[1, [2, 3]]')", gives="2"),
    ),
    _function(
        "JSON_CONCAT",
        "Merges JSON values: objects into one object, where the last of equal names is used, anything else "
        "into an array. A single argument is returned unchanged.",
        ("json",),
        (ScalarForm(parameters=(STRING,), returns=STRING, variadic=True, spark=_concat, duckdb=None),),
        Example(call="""JSON_CONCAT('{"a": 1}', '{"b": 2, "a": 3}')""", gives="""'{"a":3,"b":2}'"""),
        Example(call="JSON_CONCAT('[1, 2]', '3')", gives="'[1,2,3]'"),
    ),
    _function(
        "JSON_ITEMS",
        "Returns the objects of a JSON array as JSON strings. NULL if an element is not an object.",
        ("json",),
        (ScalarForm(parameters=(STRING,), returns=Array(STRING), spark=_items, duckdb=None),),
        Example(call="""JSON_ITEMS('[{"a": 1}, {"b": 2.0}]')""", gives="""ARRAY['{"a":1}', '{"b":2.0}']"""),
    ),
    _function(
        "JSON_KEYS",
        "Returns the names in a JSON object. NULL for anything else.",
        ("json",),
        (
            ScalarForm(
                parameters=(STRING,),
                returns=Array(STRING),
                spark=lambda a: f"array_distinct(json_object_keys({let(a.texts[0], strict)}))",
                duckdb=None,
            ),
        ),
        Example(call="""JSON_KEYS('{"b": 1, "a": 2}')""", gives="ARRAY['b', 'a']"),
    ),
    _function(
        "JSON_RECORDS",
        "Returns the names and values of a JSON object as a map: strings without quotes, anything else as "
        "JSON. NULL for anything but an object.",
        ("json",),
        (ScalarForm(parameters=(STRING,), returns=Map(STRING, STRING), spark=_records, duckdb=None),),
        Example(call="""JSON_RECORDS('{"a": "x", "b": [1]}')""", gives="MAP('a' := 'x', 'b' := '[1]')"),
    ),
    _function(
        "TO_JSON_STRING",
        "Converts a value of any type to a JSON string: dates and times as strings, BYTES in base64, names "
        "sorted. Returns null for NULL.",
        ("value",),
        (ScalarForm(parameters=(ANY,), returns=STRING, spark=lambda a: json_of(a.texts[0], a.type(0)), duckdb=None),),
        Example(call="TO_JSON_STRING(STRUCT(b := ARRAY[1, NULL], a := 'x'))", gives="""'{"A":"x","B":[1,null]}'"""),
    ),
)
