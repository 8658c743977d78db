"""DELIMITED, value by value and line by line."""

from decimal import Decimal as Number

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import NotSupported
from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, Formats
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.types import Array, Column, Decimal, Map, Role, Scalar, Schema, Struct, StructField

from .round_trip import array, decode, encode, formats, values_of

BAD = object()
LINES = formats("NONE", "DELIMITED")
TYPES = {
    "BOOLEAN": Scalar.BOOLEAN,
    "INTEGER": Scalar.INTEGER,
    "BIGINT": Scalar.BIGINT,
    "DOUBLE": Scalar.DOUBLE,
    "MONEY": Decimal(38, 10),
    "PRICE": Decimal(6, 2),
    "STRING": Scalar.STRING,
    "BYTES": Scalar.BYTES,
    "DATE": Scalar.DATE,
    "TIME": Scalar.TIME,
    "TIMESTAMP": Scalar.TIMESTAMP,
}

# What others write in a field that is not the first, and what we write after we have read it; None: the same.
READ = {
    "BOOLEAN": {"true": None, "TRUE": "true", "false": None, "yes": "false", '"true"': "true"},
    "INTEGER": {"0": None, "-5": None, "+5": "5", '"22"': "22", "2147483647": None, "2147483648": BAD, "1.0": BAD,
                " 5": BAD, "5 ": BAD, "x": BAD, "1e2": BAD},
    "BIGINT": {"9223372036854775807": None, "-9223372036854775808": None, "9223372036854775808": BAD, "1.5": BAD},
    "DOUBLE": {"1": "1.0", "-0.0": None, "0.001": None, "9999999.5": None, "1234567.0": None, "10000000": "1.0E7",
               "12345678.9": "1.23456789E7", "0.0001": "1.0E-4", "-0.000123": "-1.23E-4", "1e20": "1.0E20",
               "123456789e12": "1.23456789E20", "4.9E-324": None, "-9.9E-324": None, "1.5E-323": None,
               "1.7976931348623157E308": None, "NaN": None,
               "Infinity": None, "-Infinity": None, "x": BAD, "1,5": BAD},
    "MONEY": {"1234567890123456789012345678.0123456789": None, "-0.0000000001": None, ".5": "0.5000000000",
              "5.": "5.0000000000", "1e2": "100.0000000000", "0.00000000001": BAD, " 1": BAD, "x": BAD},
    "PRICE": {"12.34": None, "12.3": "12.30", "12.345": BAD, "9999.990": "9999.99", "10000": BAD, "1E-2": "0.01"},
    "STRING": {"text": None, "é日本😀": None, "a b": None, "a\"b": '"a""b"', '"a,b"': None, '"a""b"': None,
               '"a\nb"': None,
               '"a"  ': "a", ' "a"': '" ""a"""', "#x": '"#x"', "$x": None, " x": '" x"', "x ": '"x "', "a\\b": None,
               "\\N": None, '"unclosed': BAD, '"a"b': BAD, "null": None},
    "BYTES": {"AP8=": None, "!": BAD},
    "DATE": {"0": None, "-1": None, "2147483647": BAD, "x": BAD},
    "TIME": {"0": None, "86400000": None, "86400001": BAD, "-1": BAD},
    "TIMESTAMP": {"0": None, "-1": None, "1700000000123": None, "9223372036854775807": BAD, "1.5": BAD},
}  # fmt: skip
CASES = [(name, text, written) for name, cases in READ.items() for text, written in cases.items()]
CASES += [(name, "", None) for name in TYPES]


def line(name: str, text: str) -> str:
    return ",".join(["first", *(text if name == other else "" for other in TYPES)])


@pytest.fixture(scope="module")
def read(engine, reader):
    """By type and text, the whole line that we write after reading it, or BAD."""
    schema = values_of(FIRST=Scalar.STRING, **TYPES)
    rows = decode(engine, Decoder(schema, LINES), [line(name, text).encode() for name, text, _ in CASES])
    types = [Scalar.STRING, *TYPES.values()]
    columns = {f"c{i}": rows.column(f"c{i}").cast(arrow_type(type_)) for i, type_ in enumerate(types)}
    written = encode(reader, Encoder(schema, LINES), **columns).column("value").to_pylist()
    found = zip(CASES, rows.column("bad").to_pylist(), written, strict=True)
    return {(name, text): BAD if bad else whole.decode() for (name, text, _), bad, whole in found}


@pytest.mark.parametrize(("name", "text", "written"), CASES, ids=lambda value: "" if value is BAD else None)
def test_a_value_is_read_and_written_as_documented(name, text, written, read):
    assert read[name, text] == (BAD if written is BAD else line(name, text if written is None else written))


# Whole records, and the columns `A` and `B` read from them.
RECORDS = {
    b"a,b": ("a", "b"),
    b",": (None, None),
    b"a,": ("a", None),
    b",b": (None, "b"),
    b'"",""': (None, None),
    b"\r\n\na,b\nc,d": ("a", "b"),
    b"a,b\r": ("a", "b"),
    b'"a\r\n,","b"': ("a\r\n,", "b"),
    b'"a" \t,b': ("a", "b"),
    b" a , b ": (" a ", " b "),
    b"a": BAD,
    b"a,b,c": BAD,
    b"a,b,": BAD,
    b"": BAD,
    b"\n": BAD,
    b'a,"b': BAD,
    b'a,"b"c': BAD,
    b"a,\xff": BAD,
}


def test_whole_records(engine):
    rows = decode(engine, Decoder(values_of(A=Scalar.STRING, B=Scalar.STRING), LINES), [*RECORDS, None])
    *found, null = rows.select(["bad", "tombstone", "c0", "c1"]).to_pylist()
    assert dict(zip(RECORDS, [BAD if r["bad"] else (r["c0"], r["c1"]) for r in found], strict=True)) == RECORDS
    assert null == {"bad": 0, "tombstone": True, "c0": None, "c1": None}


@pytest.mark.parametrize("own", ["TAB", "SPACE", "|", ";", "$", "^", "]", "-", "\\", ".", "é", "x", "&"])
def test_any_character_may_separate_fields(own, engine, reader):
    info = FormatInfo(format="DELIMITED", properties=FormatProperties(delimiter=own))
    both = Formats(key_format=info, value_format=info)
    key = (Column("K", Scalar.STRING, Role.KEY), Column("L", Scalar.INTEGER, Role.KEY))
    schema = Schema((*key, Column("A", Scalar.STRING), Column("B", Scalar.STRING)))
    mark = {"TAB": "\t", "SPACE": " "}.get(own, own)
    texts = ["a", f"{mark}b", "c]^\\&&,\t", None]
    numbers = [1, -2, 3, None]
    columns = {"k0": array(texts, Scalar.STRING), "k1": array(numbers, Scalar.INTEGER)}
    columns |= {"c0": array(texts[::-1], Scalar.STRING), "c1": array(texts, Scalar.STRING)}
    written = encode(reader, Encoder(schema, both), **columns)
    assert written.column("key")[0].as_py() == f"a{mark}1".encode()
    rows = decode(engine, Decoder(schema, both), written.column("value").to_pylist(), written.column("key").to_pylist())
    assert rows.column("bad").to_pylist() == [0] * 4
    assert rows.select(["k0", "k1", "c0", "c1"]).to_pydict() == {
        "k0": texts, "k1": numbers, "c0": texts[::-1], "c1": texts
    }  # fmt: skip


def test_a_first_field_is_in_quotes_unless_it_starts_with_a_letter_or_a_digit(reader):
    schema = values_of(A=Decimal(8, 2), B=Decimal(8, 2))
    values = array([Number("-5.00"), Number("5.00")], Decimal(8, 2))
    written = encode(reader, Encoder(schema, LINES), c0=values, c1=values)
    assert written.column("value").to_pylist() == [b'"-5.00",-5.00', b"5.00,5.00"]


def test_a_single_column_that_is_null_can_be_read_again(engine, reader):
    schema = values_of(A=Scalar.STRING)
    written = encode(reader, Encoder(schema, LINES), c0=array([None, "", "a"], Scalar.STRING))
    assert written.column("value").to_pylist() == [b'""', b'""', b"a"]
    rows = decode(engine, Decoder(schema, LINES), written.column("value").to_pylist())
    assert rows.select(["bad", "c0"]).to_pydict() == {"bad": [0, 0, 0], "c0": [None, None, "a"]}


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(alphabet='a"|, \n\r\t\\#é😀0-', min_size=1), min_size=20, max_size=40))
def test_every_text_comes_back(texts, engine, reader):
    schema = values_of(A=Scalar.STRING, B=Scalar.STRING)
    columns = {"c0": array(texts, Scalar.STRING), "c1": array(texts[::-1], Scalar.STRING)}
    written = encode(reader, Encoder(schema, LINES), **columns).column("value").to_pylist()
    rows = decode(engine, Decoder(schema, LINES), written)
    assert rows.select(["bad", "c0", "c1"]).to_pydict() == {"bad": [0] * len(texts), "c0": texts, "c1": texts[::-1]}


NESTED = [Array(Scalar.INTEGER), Map(Scalar.STRING, Scalar.INTEGER), Struct((StructField("F", Scalar.INTEGER),))]


@pytest.mark.parametrize("type_", NESTED, ids=str)
def test_nested_types_are_refused(type_):
    with pytest.raises(NotSupported, match='the DELIMITED format cannot hold column "A"'):
        Encoder(values_of(A=type_), LINES).check()
    with pytest.raises(NotSupported, match='the DELIMITED format cannot hold column "A"'):
        Decoder(values_of(A=type_), LINES).sql("records")


@pytest.mark.parametrize("own", ['"', "<~>", "\n"])
def test_what_cannot_separate_is_refused(own):
    info = FormatInfo(format="DELIMITED", properties=FormatProperties(delimiter=own))
    with pytest.raises(NotSupported, match="cannot use delimiter"):
        Encoder(values_of(A=Scalar.STRING), Formats(key_format=info, value_format=info)).check()
