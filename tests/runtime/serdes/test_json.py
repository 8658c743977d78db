"""JSON, value by value: what others write is read, and what was read is written as documented.

All values of all types are one Spark job; a test looks at its own.
"""

from decimal import Decimal as Number

import pytest

from holdfast.errors import NotSupported
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.types import Array, Column, Decimal, Map, Role, Scalar, Schema

from .round_trip import (
    BAD,
    array,
    case_id,
    decode,
    encode,
    expected_json,
    formats,
    json_cases,
    rewrite_json,
    values_of,
)

JSON = formats("NONE", "JSON")
MONEY, PRICE = Decimal(38, 10), Decimal(6, 2)
TYPES = {
    "BOOLEAN": Scalar.BOOLEAN,
    "INTEGER": Scalar.INTEGER,
    "BIGINT": Scalar.BIGINT,
    "DOUBLE": Scalar.DOUBLE,
    "MONEY": MONEY,
    "PRICE": PRICE,
    "STRING": Scalar.STRING,
    "BYTES": Scalar.BYTES,
    "DATE": Scalar.DATE,
    "TIME": Scalar.TIME,
    "TIMESTAMP": Scalar.TIMESTAMP,
}

# What others write, and what we write after we have read it; None: the same.
READ = {
    "BOOLEAN": {"true": None, "false": None, '"true"': BAD, '"false"': BAD, '"yes"': BAD, "1": BAD, '""': BAD,
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
              "0.00000000005": BAD, "1e-10": "0.0000000001", "1e-11": BAD, "0.00000000010": "0.0000000001",
              "1e2": "100.0000000000", "0": "0.0000000000", "-0.0": "0.0000000000",
              "1234567890123.5": "1234567890123.5000000000",
              "99999999999999999999999999999": BAD, '"x"': BAD, '""': BAD, "true": BAD},
    "PRICE": {"12.34": None, "12.3": "12.30", "5": "5.00", '"1.5"': "1.50", "-0.01": None, "12.345": BAD,
              "12.340": "12.34", "9999.99": None, "10000": BAD, "9999.999": BAD, "1e2": "100.00", "1e-3": BAD,
              '"0.001"': BAD, "0.001": BAD,
              '"x"': BAD, '""': BAD, "true": BAD, "{}": BAD},
    "STRING": {'"text"': None, '""': None, '" "': None, '"null"': None, "true": '"true"', "17": '"17"',
               "-1.5": '"-1.5"', "1.50": '"1.50"', "-0.0": '"-0.0"', "12345678.9": '"12345678.9"', "1e2": '"1e2"',
               "1e400": '"1e400"', "0.1000000000000000055511151231257827": '"0.1000000000000000055511151231257827"',
               "123456789012345678901234567890.10": '"123456789012345678901234567890.10"', '"1.50"': None,
               '{"a":[1,null]}': r'"{\"a\":[1,null]}"', '["x"]': r'"[\"x\"]"', r'"\u00e9\ud83d\ude00"': '"é😀"',
               r'"\"\\\n\t\u0000\u001f"': r'"\"\\\n\t\u0000\u001F"', '"日本 \u2028"': None},
    "BYTES": {'"AP8="': None, '""': None, '"not base64!"': BAD, "{}": BAD},
    "DATE": {"0": None, "-1": None, "2147483646": None, "-2147483646": None, "2147483647": BAD, "-2147483648": BAD,
             '"1"': "1", "1.9": "1", '"soon"': BAD, "true": BAD},
    "TIME": {"0": None, "86399999": None, "86400000": None, "86400001": BAD, "-1": BAD, '"1"': "1", "1.9": "1",
             '"noon"': BAD, "4294967296": BAD},
    "TIMESTAMP": {"0": None, "-1": None, "1700000000123": None, "9223372036854774": None, "9223372036854775": BAD,
                  "-9223372022400000": None, "-9223372036854775808": BAD, "9223372036854775807": BAD, '"1"': "1",
                  "1700000000123.5": "1700000000123",
                  '"soon"': BAD},
}  # fmt: skip
CASES = json_cases(READ)

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
    b" null ": BAD,
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
def rewritten(engine, reader):
    return rewrite_json(engine, reader, TYPES, CASES)


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_a_value_is_read_and_written_as_documented(case, rewritten):
    assert rewritten[case[:2]] == expected_json(TYPES, case)


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


def test_a_record_that_is_null_has_no_value(engine):
    schema = Schema((Column("ID", Scalar.STRING, Role.KEY), Column("A", Scalar.INTEGER)))
    rows = decode(engine, Decoder(schema, formats("JSON", "JSON")), [b"null", b"{}", None], [b'"k"', b"null", None])
    assert rows.column("bad").to_pylist() == [0, 0, 0]
    assert rows.column("tombstone").to_pylist() == [True, False, True]
    assert rows.column("k0").to_pylist() == ["k", None, None]


def test_what_json_cannot_hold_is_refused():
    numbered = values_of(A=Array(Map(Scalar.INTEGER, Scalar.STRING)))
    with pytest.raises(NotSupported, match="only MAPs with STRING keys"):
        Encoder(numbered, JSON).check()
    with pytest.raises(NotSupported, match="only MAPs with STRING keys"):
        Decoder(numbered, JSON).sql("records")


@pytest.mark.parametrize("name", ["AVRO", "PROTOBUF", "PROTOBUF_NOSR", "JSON_SR"])
def test_formats_with_a_schema_registry_are_refused(name):
    with pytest.raises(NotSupported, match=f"format {name} is not supported"):
        Decoder(values_of(A=Scalar.INTEGER), formats("NONE", name)).sql("records")
    with pytest.raises(NotSupported, match=f"format {name} is not supported"):
        Encoder(values_of(A=Scalar.INTEGER), formats(name, "JSON")).check()
