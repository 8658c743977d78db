"""Nested JSON: values inside values are read and written by the rules of their types, at any depth."""

import pytest

from holdfast.names import TopicName
from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.program import TopicInput
from holdfast.runtime.record_decoder import RecordDecoder
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.types import Array, Column, Decimal, Map, Role, Scalar, Schema, Struct, StructField

from .round_trip import (
    BAD,
    array,
    case_id,
    decode,
    encode,
    expected_json,
    formats,
    json_cases,
    records,
    rewrite_json,
    values_of,
)

JSON = formats("NONE", "JSON")


def struct(**fields):
    return Struct(tuple(StructField(name, type_) for name, type_ in fields.items()))


MOMENTS = struct(B=Scalar.BYTES, D=Scalar.DATE, T=Scalar.TIME, S=Scalar.TIMESTAMP, O=Scalar.BOOLEAN)
DEEP = Array(struct(X=Map(Scalar.STRING, Array(Scalar.TIMESTAMP)), Y=struct(Z=Scalar.STRING, N=Array(Scalar.BIGINT))))
TYPES = {
    "NUMBERS": Array(Scalar.INTEGER),
    "TEXTS": Array(Scalar.STRING),
    "PRICES": Array(Decimal(6, 2)),
    "MONEY": Map(Scalar.STRING, Decimal(38, 10)),
    "RATES": Map(Scalar.STRING, Scalar.DOUBLE),
    "MOMENTS": MOMENTS,
    "BY_NAME": Map(Scalar.STRING, MOMENTS),
    "DEEP": DEEP,
    "LISTS": Array(Array(Scalar.INTEGER)),
    "FLAGS": Array(Scalar.BOOLEAN),
}
NO_MOMENTS = '{"B":null,"D":null,"T":null,"S":null,"O":null}'

# What others write, and what we write after we have read it; None: the same.
READ = {
    "NUMBERS": {"[]": None, "[1,null,-3]": None, '["4",5.9,1e2]': "[4,5,100]", "[null]": None, "{}": BAD, '"[1]"': BAD,
                "1": BAD, "[2147483648]": BAD, '["x"]': BAD, "[[1]]": BAD, "[true]": BAD},
    "TEXTS": {'["a","",null]': None, "[1,true,1.50,12345678.9,1e2]": '["1","true","1.50","12345678.9","1e2"]',
              '[{"a":[1,null]}]': r'["{\"a\":[1,null]}"]', r'["\"\\\u0000"]': None, '["a, b"]': None},
    "PRICES": {"[1.5,2,null]": "[1.50,2.00,null]", '["0.01"]': "[0.01]", "[0.001]": BAD, "[10000]": BAD, '["x"]': BAD},
    "MONEY": {'{"a":0.0000000001}': None, '{"a":1234567890123456789012345678.0123456789}': None,
              '{"a":0.00000000001}': BAD, '{"a":"x"}': BAD, '{"a":null}': None},
    "RATES": {"{}": None, '{"a":1,"b":null,"":0.1}': '{"a":1.0,"b":null,"":0.1}', '{"a":1,"a":2}': '{"a":2.0}',
              '{"a":"NaN"}': None, r'{"k\"\\\n":1.5}': None, '{"A":1.5,"a":2.5}': None, "[]": BAD, '{"a":{}}': BAD},
    "MOMENTS": {'{"B":"AP8=","D":-1,"T":86399999,"S":1700000000123,"O":true}': None, "{}": NO_MOMENTS,
                '{"unrelated":1}': NO_MOMENTS, '{"T":-1}': BAD, '{"B":"!"}': BAD, '{"O":"true"}': BAD, "[]": BAD,
                '{"S":9223372036854775807}': BAD, "5": BAD, '"{}"': BAD},
    "BY_NAME": {'{"k":{}}': f'{{"k":{NO_MOMENTS}}}', '{"k":null}': None, '{"k":{"D":"x"}}': BAD, '{"k":5}': BAD},
    "DEEP": {'[{"X":{"k":[0,null]},"Y":{"Z":"z","N":[1]}},null,{"X":null,"Y":null}]': None,
             '[{"Y":{"Z":1.50,"N":["7"]}}]': '[{"X":null,"Y":{"Z":"1.50","N":[7]}}]',
             '[{"Y":{"N":["x"]}}]': BAD, '[{"X":{"k":["x"]}}]': BAD, '[{"Y":[]}]': BAD, "[5]": BAD},
    "LISTS": {"[[1],[],null,[2,null]]": None, "[1]": BAD, '[[{}]]': BAD},
    "FLAGS": {"[true,null,false]": None, '["true"]': BAD, "[1]": BAD},
}  # fmt: skip
CASES = json_cases(READ)


@pytest.fixture(scope="module")
def rewritten(engine, reader):
    return rewrite_json(engine, reader, TYPES, CASES)


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_a_nested_value_is_read_and_written_as_documented(case, rewritten):
    assert rewritten[case[:2]] == expected_json(TYPES, case)


@pytest.mark.parametrize(
    "type_", [DEEP, TYPES["RATES"], MOMENTS, TYPES["NUMBERS"]], ids=["deep", "map", "struct", "list"]
)
def test_a_nested_value_that_is_not_wrapped(type_, engine, reader):
    bare, name = formats("NONE", "JSON", unwrapped=True), next(n for n, t in TYPES.items() if t == type_)
    schema = values_of(A=type_)
    whole = [text for text, written in READ[name].items() if written is None]
    rows = decode(engine, Decoder(schema, bare), [*(text.encode() for text in whole), b'"x"'])
    assert rows.column("bad").to_pylist() == [0] * len(whole) + [1]
    written = encode(reader, Encoder(schema, bare), c0=rows.column("c0").cast(arrow_type(type_)))
    assert written.column("value").to_pylist() == [*(text.encode() for text in whole), None]


def test_keys_may_be_nested_too(engine, reader):
    key = (Column("A", Array(Scalar.INTEGER), Role.KEY), Column("S", struct(F=Scalar.DOUBLE), Role.KEY))
    schema, both = Schema((*key, Column("V", Scalar.INTEGER))), formats("JSON", "JSON")
    rows = decode(engine, Decoder(schema, both), [b"{}", b"{}"], [b'{"S":{"f":1.5},"a":[1]}', None])
    assert rows.column("bad").to_pylist() == [0, 0]
    columns = {"k0": rows.column("k0"), "k1": rows.column("k1"), "c0": rows.column("c0")}
    assert encode(reader, Encoder(schema, both), **columns).column("key").to_pylist() == [
        b'{"A":[1],"S":{"F":1.5}}',
        b'{"A":null,"S":null}',
    ]
    single, bare = Schema((key[1], Column("V", Scalar.INTEGER))), formats("JSON", "JSON")
    rows = decode(engine, Decoder(single, bare), [b"{}", b"{}"], [b'{"f":1.5}', None])
    columns = {"k0": rows.column("k0"), "c0": rows.column("c0")}
    assert encode(reader, Encoder(single, bare), **columns).column("key").to_pylist() == [b'{"F":1.5}', None]


def test_names_inside_are_found_in_every_spelling_that_records_use(engine):
    inner = struct(FIRST=Scalar.INTEGER, quoted=Scalar.INTEGER)
    schema = values_of(LIST=Array(inner), ONE=struct(INNER=inner), OTHER=Scalar.STRING)
    values = [
        b'{"LIST":[{"FIRST":1,"quoted":2}]}',
        b'{"list":[{"first":1,"QUOTED":2},{"First":3}]}',
        b'{"one":{"InNeR":{"fIRST" : 5}}}',
        b'{"One":{"inner":{"first":6}},"other":"\\"FiRSt\\": 1"}',
        b'{"ONE":{"unrelated":{"FIRSt":7}}}',
    ]
    source = TopicInput(TopicName("t"), Decoder(schema, JSON), "v")
    reader = RecordDecoder(engine)
    rows = reader.decode(source, records(values)).sort_by("off").select(["c0", "c1", "c2"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ([{"f0": 1, "f1": 2}], None, None),
        ([{"f0": 1, "f1": None}, {"f0": 3, "f1": None}], None, None),
        (None, {"f0": {"f0": 5, "f1": None}}, None),
        (None, {"f0": {"f0": 6, "f1": None}}, '"FiRSt": 1'),
        (None, {"f0": None}, None),
    ]


def test_names_of_fields_are_what_json_needs(engine, reader):
    names = ['quo"te', "back\\slash", "tick`", "it's", "ä😀", "a.b", "(A|B)", "$1", "x0"]
    type_ = Array(struct(**dict.fromkeys(names, Scalar.INTEGER)))
    schema = values_of(A=type_)
    rows = [[{f"f{i}": i for i in range(len(names))}]]
    encoded = encode(reader, Encoder(schema, JSON), c0=array(rows, type_))
    found = decode(engine, Decoder(schema, JSON), encoded.column("value").to_pylist())
    assert found.select(["bad", "c0"]).to_pylist() == [{"bad": 0, "c0": rows[0]}]
