"""JSON, value by value: what others write is read, and what was read is written as documented.

All values of all types are one Spark job; a test looks at its own.
"""

from decimal import Decimal as Number

import pyarrow as pa
import pytest

from holdfast.errors import NotSupported, NotYetSupported
from holdfast.names import TopicName
from holdfast.runtime.decode import RecordDecoder
from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.program import TopicInput
from holdfast.runtime.serdes.decoding import Decoder
from holdfast.runtime.serdes.encoding import Encoder
from holdfast.runtime.spark.engine import RECORDS as RAW
from holdfast.types import Array, Column, Decimal, Map, Role, Scalar, Schema, Struct, StructField

from .coding import array, decode, encode, formats, values_of

BAD = object()
JSON = formats("NONE", "JSON")
MONEY = Decimal(38, 10)
TYPES = {
    "BOOLEAN": Scalar.BOOLEAN,
    "INTEGER": Scalar.INTEGER,
    "BIGINT": Scalar.BIGINT,
    "DOUBLE": Scalar.DOUBLE,
    "MONEY": MONEY,
    "STRING": Scalar.STRING,
    "BYTES": Scalar.BYTES,
    "DATE": Scalar.DATE,
    "TIME": Scalar.TIME,
    "TIMESTAMP": Scalar.TIMESTAMP,
}

# What others write, and what we write after we have read it; None: the same.
READ = {
    "BOOLEAN": {"true": None, "false": None, '"true"': "true", '"false"': "false", '"yes"': BAD, "1": BAD, '""': BAD,
                "{}": BAD, "[true]": BAD},
    "INTEGER": {"0": None, "-0": "0", "2147483647": None, "-2147483648": None, "2147483648": BAD, "-2147483649": BAD,
                '"5"': "5", '" 5 "': "5", "1.9": "1", "-1.9": "-1", "1e2": "100", "12345678.9": "12345678",
                "2147483647.9": "2147483647", "2147483648.0": BAD, "-2147483648.5": "-2147483648", "1e400": BAD,
                '"x"': BAD, '""': BAD, "true": BAD, "{}": BAD, "[1]": BAD},
    "BIGINT": {"9223372036854775807": None, "-9223372036854775808": None, "9223372036854775808": BAD,
               '"-7"': "-7", "1700000000.5": "1700000000", "1e18": "1000000000000000000", "1e19": BAD, '"x"': BAD},
    "DOUBLE": {"0": "0.0", "-0.0": None, "0.1": None, "1.7976931348623157e308": "1.7976931348623157e+308",
               "5e-324": None, "2.2250738585072014e-308": None, "1e-400": "0.0", '"NaN"': None, '"Infinity"': None,
               '"-Infinity"': None, "NaN": BAD, "1e400": BAD, '"1.5"': "1.5", '"x"': BAD, '""': BAD, "true": BAD},
    "MONEY": {"1234567890123456789012345678.0123456789": None, "-0.0000000001": None, '"1.5"': "1.5000000000",
              "0.00000000005": "0.0000000001", "1e2": "100.0000000000", "0": "0.0000000000",
              "99999999999999999999999999999": BAD, '"x"': BAD, '""': BAD, "true": BAD},
    "STRING": {'"text"': None, '""': None, '" "': None, '"null"': None, "true": '"true"', "17": '"17"',
               "-1.5": '"-1.5"',
               '{"a":[1,null]}': r'"{\"a\":[1,null]}"', '["x"]': r'"[\"x\"]"', r'"\u00e9\ud83d\ude00"': '"é😀"',
               r'"\"\\\n\t\u0000\u001f"': r'"\"\\\n\t\u0000\u001F"', '"日本 \u2028"': None},
    "BYTES": {'"AP8="': None, '""': None, '"not base64!"': BAD, "{}": BAD},
    "DATE": {"0": None, "-1": None, "2147483646": None, "-2147483646": None, "2147483647": BAD, "-2147483648": BAD,
             '"1"': "1", '"soon"': BAD},
    "TIME": {"0": None, "86399999": None, '"1"': "1", '"noon"': BAD},
    "TIMESTAMP": {"0": None, "-1": None, "1700000000123": None, "9223372036854774": None, "9223372036854775": BAD,
                  "-9223372022400000": None, "-9223372036854775808": BAD, "9223372036854775807": BAD, '"1"': "1",
                  '"soon"': BAD},
}  # fmt: skip
CASES = [(name, given, written) for name, cases in READ.items() for given, written in cases.items()]
CASES += [(name, "null", None) for name in TYPES]

# Whole records, and the STRING column `A` read from them.
RECORDS = {
    b'{"A": "x"}': "x",
    b' {"A":"x"} ': "x",
    b"{}": None,
    b'{"B": "x"}': None,
    b'{"A": "x", "A": "y"}': "y",
    b'{"A": "x", "B": {"A": "y"}}': "x",
    b"": BAD,
    b" ": BAD,
    b"null": BAD,
    b"5": BAD,
    b'"x"': BAD,
    b"[]": BAD,
    b'[{"A": "x"}]': BAD,
    b'{"A": "x"': BAD,
    b"{'A': 'x'}": BAD,
    b'{A: "x"}': BAD,
    b'{"A": "x",}': BAD,
    b'{"A": "\xff"}': BAD,
    b"\xff\xfe": BAD,
}


@pytest.fixture(scope="module")
def read(engine, reader):
    """By type and text, the whole JSON record that we write after reading it, or BAD."""
    schema = values_of(**TYPES)
    rows = decode(engine, Decoder(schema, JSON), [f'{{"{name}": {text}}}'.encode() for name, text, _ in CASES])
    columns = {f"c{i}": rows.column(f"c{i}").cast(arrow_type(t)) for i, t in enumerate(TYPES.values())}
    written = encode(reader, Encoder(schema, JSON), **columns).column("value").to_pylist()
    bad = rows.column("bad").to_pylist()
    return {
        (name, text): BAD if b else w.decode()
        for (name, text, _), b, w in zip(CASES, bad, written, strict=True)
    }  # fmt: skip


@pytest.mark.parametrize(("name", "text", "written"), CASES, ids=lambda value: "" if value is BAD else None)
def test_a_value_is_read_and_written_as_documented(name, text, written, read):
    if written is not BAD:
        others = dict.fromkeys(TYPES, "null") | {name: text if written is None else written}
        written = "{" + ",".join(f'"{other}":{shown}' for other, shown in others.items()) + "}"
    assert read[name, text] == written


def test_whole_records(engine):
    rows = decode(engine, Decoder(values_of(A=Scalar.STRING), JSON), list(RECORDS))
    both = zip(rows.column("bad").to_pylist(), rows.column("c0").to_pylist(), strict=True)
    found = [BAD if bad else value for bad, value in both]
    assert dict(zip(RECORDS, found, strict=True)) == RECORDS


def test_what_we_write_we_read_back(engine, reader):
    values = {
        "BOOLEAN": [True, False, None],
        "INTEGER": [-(2**31), 2**31 - 1, None],
        "BIGINT": [-(2**63), 2**63 - 1, None],
        "DOUBLE": [5e-324, -1.7976931348623157e308, 0.1],
        "MONEY": [Number("-9999999999999999999999999999.9999999999"), Number("0.0000000001"), None],
        "STRING": ["", 'é😀\u2028"\\\x00\n', "null"],
        "BYTES": [b"", bytes(range(256)), None],
    }
    types = {name: TYPES[name] for name in values}
    schema = values_of(**types)
    columns = {f"c{i}": array(values[name], type_) for i, (name, type_) in enumerate(types.items())}
    encoded = encode(reader, Encoder(schema, JSON), **columns).column("value").to_pylist()
    rows = decode(engine, Decoder(schema, JSON), encoded)
    assert rows.column("bad").to_pylist() == [0, 0, 0]
    assert {name: rows.column(f"c{i}").to_pylist() for i, name in enumerate(types)} == values


def test_names_of_columns_are_what_json_needs(engine, reader):
    names = ['quo"te', "back\\slash", "new\nline", "tick`", "it's", "ä😀", "", "_corrupt", "a.b", "v"]
    schema = values_of(**dict.fromkeys(names, Scalar.INTEGER))
    encoded = encode(reader, Encoder(schema, JSON), **{f"c{i}": array([i], Scalar.INTEGER) for i in range(len(names))})
    rows = decode(engine, Decoder(schema, JSON), encoded.column("value").to_pylist())
    assert rows.select([f"c{i}" for i in range(len(names))]).to_pylist() == [{f"c{i}": i for i in range(len(names))}]


UNWRAPPED = {b"5": 5, b'"5"': 5, b" 5 ": 5, b"null": None, b'"x"': BAD, b"": BAD, b'{"A": 5}': BAD, b"5 6": BAD}


def test_a_value_that_is_not_wrapped(engine, reader):
    bare = formats("NONE", "JSON", unwrapped=True)
    schema = values_of(A=Scalar.INTEGER)
    rows = decode(engine, Decoder(schema, bare), list(UNWRAPPED))
    found = zip(rows.column("bad").to_pylist(), rows.column("c0").to_pylist(), strict=True)
    assert dict(zip(UNWRAPPED, (BAD if bad else value for bad, value in found), strict=True)) == UNWRAPPED
    encoded = encode(reader, Encoder(schema, bare), c0=array([5, None], Scalar.INTEGER))
    assert encoded.column("value").to_pylist() == [b"5", None]


def test_a_table_refuses_records_without_a_key(engine):
    schema = Schema((Column("ID", Scalar.STRING, Role.KEY), Column("A", Scalar.INTEGER)))
    decoder = Decoder(schema, formats("KAFKA", "JSON"), keyed=True)
    rows = decode(engine, decoder, [b'{"A":1}', b'{"A":1}', None, None], [b"k", None, b"k", None])
    assert rows.column("bad").to_pylist() == [0, 1, 0, 1]
    assert rows.column("tombstone").to_pylist() == [False, False, True, True]


NESTED = {
    "A": Array(Scalar.INTEGER),
    "M": Map(Scalar.STRING, Array(Scalar.BOOLEAN)),
    "S": Struct((StructField("X", Scalar.BIGINT), StructField("Y", Struct((StructField("z", Decimal(4, 2)),))))),
    "L": Array(Struct((StructField("D", Scalar.DATE), StructField("T", Scalar.STRING)))),
}
DEEP = {
    b'{"A": [1, "2", 3.7, null]}': b'{"A":[1,2,3,null],"M":null,"S":null,"L":null}',
    b'{"A": []}': b'{"A":[],"M":null,"S":null,"L":null}',
    b'{"M": {"k": [true, null], "K": null, "q\\"": []}}':
        b'{"A":null,"M":{"k":[true,null],"K":null,"q\\"":[]},"S":null,"L":null}',
    b'{"S": {"X": 5, "more": 1}}': b'{"A":null,"M":null,"S":{"X":5,"Y":null},"L":null}',
    b'{"S": {"Y": {"z": 1.5}}}': b'{"A":null,"M":null,"S":{"X":null,"Y":{"z":1.50}},"L":null}',
    b'{"L": [{"D": 1, "T": {"a": 1}}, null, {}]}':
        b'{"A":null,"M":null,"S":null,"L":[{"D":1,"T":"{\\"a\\":1}"},null,{"D":null,"T":null}]}',
    b'{"A": [1, "x"]}': BAD,
    b'{"A": {"0": 1}}': BAD,
    b'{"M": {"k": [1]}}': BAD,
    b'{"M": [1]}': BAD,
    b'{"S": 5}': BAD,
    b'{"S": {"X": "x"}}': BAD,
    b'{"L": [{"D": "x"}]}': BAD,
}  # fmt: skip


def test_values_with_parts(engine, reader):
    schema = values_of(**NESTED)
    rows = decode(engine, Decoder(schema, JSON), list(DEEP))
    columns = {f"c{i}": rows.column(f"c{i}").cast(arrow_type(t)) for i, t in enumerate(NESTED.values())}
    written = encode(reader, Encoder(schema, JSON), **columns).column("value").to_pylist()
    found = [BAD if bad else text for bad, text in zip(rows.column("bad").to_pylist(), written, strict=True)]
    assert dict(zip(DEEP, found, strict=True)) == DEEP


def test_fields_in_other_spellings_are_learnt(engine):
    struct = Struct((StructField("ONE", Scalar.INTEGER), StructField("two", Scalar.INTEGER)))
    decoder = Decoder(values_of(S=Array(struct)), JSON)
    source = TopicInput(TopicName("t"), decoder, "d")
    values = [b'{"s": [{"One": 1, "TWO": 2}]}', b'{"S": [{"one": 3, "two": 4, "Two": 5}]}']
    rows = [{"part": 0, "off": i, "ts": 0, "key": None, "value": value} for i, value in enumerate(values)]
    found = RecordDecoder(engine).decode(source, pa.Table.from_pylist(rows, schema=RAW)).sort_by("off")
    assert found.column("c0").to_pylist() == [[{"f0": 1, "f1": 2}], [{"f0": 3, "f1": 4}]]


def test_types_without_a_json_form_are_refused():
    schema = values_of(A=Array(Map(Scalar.INTEGER, Scalar.INTEGER)))
    for refuse in (Encoder(schema, JSON).check, lambda: Decoder(schema, JSON).sql("records", frozenset())):
        with pytest.raises(NotSupported, match="JSON cannot hold MAP<INTEGER, INTEGER>"):
            refuse()
    with pytest.raises(NotYetSupported, match="format AVRO is not supported"):
        Decoder(values_of(A=Scalar.INTEGER), formats("NONE", "AVRO")).sql("records", frozenset())
