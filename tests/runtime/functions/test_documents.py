"""What functions of JSON and of URLs give for values that are easily got wrong."""

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.types import Scalar

from .engines import Relation, evaluated, unequal

NULL = "CAST(NULL AS STRING)"


def call(name: str, json: str, *more: str) -> str:
    escaped = json.replace("'", "''")
    return f"{name}({', '.join((f'{chr(39)}{escaped}{chr(39)}', *more))})"


DEEP = '{"a": {"b": [1, 2.50, {"c": null}]}, "d": "x 1.50 null \\"q\\"", "e.f": 1e3, "g": 12345678901234567890.10}'

JSON: list[tuple[str, Any]] = [
    (call("EXTRACTJSONFIELD", DEEP, "'$.a.b[0]'"), "1"),
    (call("EXTRACTJSONFIELD", DEEP, "'$.a.b[1]'"), "2.50"),
    (call("EXTRACTJSONFIELD", DEEP, "'$.a.b[3]'"), None),
    (call("EXTRACTJSONFIELD", DEEP, "'$.a.b[-1]'"), None),
    (call("EXTRACTJSONFIELD", DEEP, "'$.a.b[2].c'"), "null"),
    (call("EXTRACTJSONFIELD", DEEP, "'$.a'"), '{"b":[1,2.50,{"c":null}]}'),
    (call("EXTRACTJSONFIELD", DEEP, "'$.d'"), 'x 1.50 null "q"'),
    (call("EXTRACTJSONFIELD", DEEP, """'$["e.f"]'"""), "1e3"),
    (call("EXTRACTJSONFIELD", DEEP, "'$.g'"), "12345678901234567890.10"),
    (call("EXTRACTJSONFIELD", DEEP, "'$.none'"), None),
    (call("EXTRACTJSONFIELD", DEEP, "'no path'"), None),
    (call("EXTRACTJSONFIELD", DEEP, "NULL"), None),
    (call("EXTRACTJSONFIELD", '{"@type": "UDF"}}', "'$.@type'"), "UDF"),
    (call("EXTRACTJSONFIELD", '{"a": true}', "'$.a'"), "true"),
    (call("EXTRACTJSONFIELD", "nonsense", "'$.a'"), None),
    (f"EXTRACTJSONFIELD({NULL}, '$.a')", None),
    (call("EXTRACTJSONFIELD", "{'a': 1}", "'$.a'"), None),
    (call("EXTRACTJSONFIELD", """{"a": "it's"}""", "'$.a'"), "it's"),
    *((call("IS_JSON_STRING", text), True) for text in ("1", '"a"', "null", "[]", '{"a": 1, "a": 2}', " {} ")),
    *((call("IS_JSON_STRING", text), False) for text in ("", " ", "abc", '{"a"', "[1,]", "{a: 1}", "'a'")),
    (f"IS_JSON_STRING({NULL})", False),
    (call("JSON_ARRAY_CONTAINS", '["Pink", null]', "'Pink'"), True),
    (call("JSON_ARRAY_CONTAINS", '["Pink", null]', NULL), True),
    (call("JSON_ARRAY_CONTAINS", '["Pink"]', NULL), False),
    (call("JSON_ARRAY_CONTAINS", "[1, 2]", "2"), True),
    (call("JSON_ARRAY_CONTAINS", "[1, 2]", "2147483648"), False),
    (call("JSON_ARRAY_CONTAINS", "[1.5]", "1.5E0"), True),
    (call("JSON_ARRAY_CONTAINS", "[1]", "1E0"), False),
    (call("JSON_ARRAY_CONTAINS", '["1"]', "1"), False),
    (call("JSON_ARRAY_CONTAINS", "[true, [false]]", "false"), False),
    (call("JSON_ARRAY_CONTAINS", "[true]", "true"), True),
    (call("JSON_ARRAY_CONTAINS", '{"a": 1}', "1"), False),
    (call("JSON_ARRAY_CONTAINS", "nonsense", "1"), False),
    (f"JSON_ARRAY_CONTAINS({NULL}, 'a')", False),
    (call("JSON_ARRAY_LENGTH", "[1, [2, 3]]"), 2),
    (call("JSON_ARRAY_LENGTH", "[]"), 0),
    (call("JSON_ARRAY_LENGTH", "{}"), None),
    (call("JSON_ARRAY_LENGTH", ""), None),
    (call("JSON_ARRAY_LENGTH", "[1"), None),
    (call("JSON_ARRAY_LENGTH", "['a']"), None),
    (call("JSON_ARRAY_LENGTH", """["it's", "'"]"""), 2),
    (f"JSON_ARRAY_LENGTH({NULL})", None),
    (call("JSON_KEYS", '{"b": 1, "a": 2}'), ["b", "a"]),
    (call("JSON_KEYS", "{}"), []),
    (call("JSON_KEYS", "[]"), None),
    (call("JSON_KEYS", ""), None),
    (call("JSON_KEYS", "{'a': 1}"), None),
    (f"JSON_KEYS({NULL})", None),
    (
        call("JSON_RECORDS", '{"a": 3, "b": "Seven", "c": null, "d": {"x": [1.0, "y"]}, "e": true}'),
        [("a", "3"), ("b", "Seven"), ("c", "null"), ("d", '{"x":[1.0,"y"]}'), ("e", "true")],
    ),
    (call("JSON_RECORDS", "{}"), []),
    (call("JSON_RECORDS", "[1]"), None),
    (call("JSON_RECORDS", '{"a"'), None),
    (call("JSON_RECORDS", "{'a': 1}"), None),
    (call("JSON_RECORDS", """{"a": "it's"}"""), [("a", "it's")]),
    (f"JSON_RECORDS({NULL})", None),
    (call("JSON_ITEMS", '[{"a": 1.0}, {"b": "c"}]'), ['{"a":1.0}', '{"b":"c"}']),
    (call("JSON_ITEMS", "[]"), []),
    (call("JSON_ITEMS", '[{"a": 1}, 2]'), None),
    (call("JSON_ITEMS", '[{"a": 1}, null]'), None),
    (call("JSON_ITEMS", '["{"]'), None),
    (call("JSON_ITEMS", "{}"), None),
    (call("JSON_ITEMS", "[{'a': 1}]"), None),
    (f"JSON_ITEMS({NULL})", None),
    (call("JSON_CONCAT", '{"a": 1}', """'{"b": 2, "c": {"z": 1, "y": 1.0}}'"""), '{"a":1,"b":2,"c":{"z":1,"y":1.0}}'),
    (call("JSON_CONCAT", '{"a": {"5": 6}}', """'{"a": {"3": 4}}'"""), '{"a":{"3":4}}'),
    (call("JSON_CONCAT", "{}", "'{}'"), "{}"),
    (call("JSON_CONCAT", "[1, 2]", "'[3, 4]'", "'[]'"), "[1,2,3,4]"),
    (call("JSON_CONCAT", "null", "'null'"), "[null,null]"),
    (call("JSON_CONCAT", "[1, 2]", """'{"a": 1}'""", "'4'"), '[1,2,{"a":1},4]'),
    (call("JSON_CONCAT", "[1, [2]]", "'[[[3]], [[[4]]]]'"), "[1,[2],[[3]],[[[4]]]]"),
    (call("JSON_CONCAT", '"a\\"b"', "'[]'"), '["a\\"b"]'),
    (call("JSON_CONCAT", '{"a": "q\\"", "b": null}', "'{}'"), '{"a":"q\\"","b":null}'),
    (call("JSON_CONCAT", "1"), "1"),
    (call("JSON_CONCAT", '"a"'), '"a"'),
    (call("JSON_CONCAT", "[1, 2.0]"), "[1,2.0]"),
    (call("JSON_CONCAT", '{"a": 1}'), '{"a":1}'),
    (call("JSON_CONCAT", "nonsense"), None),
    (call("JSON_CONCAT", "{'a': 1}", "'{}'"), None),
    (call("JSON_CONCAT", "1", "''"), None),
    (call("JSON_CONCAT", "1", NULL), None),
    ("TO_JSON_STRING(1)", "1"),
    (f"TO_JSON_STRING({NULL})", "null"),
    ("""TO_JSON_STRING('a"é\\')""", '"a\\"é\\\\"'),
    ("TO_JSON_STRING(1.50)", "1.50"),
    ("TO_JSON_STRING(1.5E0)", "1.5"),
    ("TO_JSON_STRING(SQRT(-1))", '"NaN"'),
    ("TO_JSON_STRING(TIME '16:43:40')", '"16:43:40"'),
    ("TO_JSON_STRING(DATE '1972-09-27')", '"1972-09-27"'),
    ("TO_JSON_STRING(TIMESTAMP '1971-11-28T23:46:40')", '"1971-11-28T23:46:40.000"'),
    ("TO_JSON_STRING(TO_BYTES('21', 'hex'))", '"IQ=="'),
    ("TO_JSON_STRING(ARRAY[1, NULL, 3])", "[1,null,3]"),
    ("TO_JSON_STRING(MAP('b' := ARRAY[1], 'a' := NULL))", '{"a":null,"b":[1]}'),
    ('TO_JSON_STRING(STRUCT(z := 1, `a"` := STRUCT(x := true)))', '{"Z":1,"a\\"":{"X":true}}'),
    ("TO_JSON_STRING(CAST(NULL AS STRUCT<A INT>))", "null"),
]

URL = "http://test@confluent.io:8080/nested/p%20q+r?q=2&jobs&q=3&w=a%26b=c#f%20g"

URLS: list[tuple[str, Any]] = [
    (f"URL_EXTRACT_PROTOCOL('{URL}')", "http"),
    (f"URL_EXTRACT_HOST('{URL}')", "confluent.io"),
    (f"URL_EXTRACT_PORT('{URL}')", 8080),
    (f"URL_EXTRACT_PATH('{URL}')", "/nested/p q+r"),
    (f"URL_EXTRACT_QUERY('{URL}')", "q=2&jobs&q=3&w=a&b=c"),
    (f"URL_EXTRACT_FRAGMENT('{URL}')", "f g"),
    (f"URL_EXTRACT_PARAMETER('{URL}', 'q')", "2"),
    (f"URL_EXTRACT_PARAMETER('{URL}', 'jobs')", ""),
    (f"URL_EXTRACT_PARAMETER('{URL}', 'b')", "c"),
    (f"URL_EXTRACT_PARAMETER('{URL}', 'none')", None),
    (f"URL_EXTRACT_PARAMETER('{URL}', {NULL})", None),
    ("URL_EXTRACT_PATH('http://www.test.com?query#fragment')", ""),
    ("URL_EXTRACT_QUERY('http://www.test.com/path')", None),
    ("URL_EXTRACT_PORT('http://www.test.com/path')", None),
    ("URL_EXTRACT_PORT('http://[::1]:80/')", 80),
    ("URL_EXTRACT_HOST('mailto:a@b.c')", None),
    ("URL_EXTRACT_PATH('no url at all')", None),
    (f"URL_EXTRACT_HOST({NULL})", None),
    ("URL_ENCODE_PARAM('a b&é*-_.~')", "a+b%26%C3%A9*-_.%7E"),
    (f"URL_ENCODE_PARAM({NULL})", None),
    ("URL_DECODE_PARAM('url%20encoded+x')", "url encoded x"),
    ("URL_DECODE_PARAM('%zz')", None),
]


@pytest.mark.parametrize("part", ["x", '\\"', "\\u00e9", "'"])
def test_long_texts(spark: SparkSession, part: str) -> None:
    """What one record holds cannot be too long for the matchers of all the others."""
    string = f'"{part * 100_000}"'
    named, listed = f'{{"a": {string}}}', f"[{string}]"
    texts = [string, named, listed, f"[{named}]"]
    calls = ("IS_JSON_STRING(A)", "EXTRACTJSONFIELD(A, '$.a')", "JSON_ARRAY_LENGTH(A)", "JSON_ARRAY_CONTAINS(A, 'x')",
             "JSON_KEYS(A)", "JSON_RECORDS(A)", "JSON_ITEMS(A)", "JSON_CONCAT(A, A)")  # fmt: skip
    relation = Relation((("A", Scalar.STRING),), [(text,) for text in texts])
    right, found, lengths, _, keys, records, items, joined = evaluated(spark, relation, calls)
    value = json.loads(string)
    assert right == [True] * 4
    assert found == [None, value, None, None]
    assert lengths == [None, None, 1, 1]
    assert keys == [None, ["a"], None, None]
    assert records == [None, [("a", value)], None, None]
    assert [None if i is None else list(map(json.loads, i)) for i in items] == [None, None, None, [{"a": value}]]
    assert list(map(json.loads, joined)) == [[value] * 2, {"a": value}, [value] * 2, [{"a": value}] * 2]


def test_deep_texts(spark: SparkSession) -> None:
    """Deeper than the parser goes is no JSON."""
    relation = Relation((("A", Scalar.STRING),), [("[" * 5_000 + "]" * 5_000,), ('{"a":' * 5_000 + "1" + "}" * 5_000,)])
    calls = ("IS_JSON_STRING(A)", "EXTRACTJSONFIELD(A, '$.b')", "JSON_ARRAY_LENGTH(A)", "JSON_ARRAY_CONTAINS(A, 'x')",
             "JSON_KEYS(A)", "JSON_RECORDS(A)", "JSON_ITEMS(A)", "JSON_CONCAT(A, A)")  # fmt: skip
    found = evaluated(spark, relation, calls)
    assert found == [[False] * 2, [None] * 2, [None] * 2, [False] * 2, *([None] * 2 for _ in range(4))]


def test_documents(spark: SparkSession) -> None:
    wrong = unequal(spark, [*JSON, *URLS])
    assert not wrong, "\n".join(wrong)
