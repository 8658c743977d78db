"""The native function gives what Spark's `from_json` and casts give, for any record."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import slow_law

from holdfast.runtime.plan.formats import FormatInfo
from holdfast.runtime.serdes.json.native import decode_json
from holdfast.runtime.serdes.side import DecodedSide, RecordSide
from holdfast.runtime.spark.engine import LOCAL_ROWS, Engine, Round
from holdfast.types import Array, Column, Decimal, Map, Scalar, SqlType, Struct, StructField

from .json_sql.decode import decode_json as decode_sql
from .round_trip import records

INNER = Struct((StructField("FIRST", Scalar.INTEGER), StructField("quoted", Scalar.STRING)))
TYPES: dict[str, SqlType] = {
    "B": Scalar.BOOLEAN,
    "I": Scalar.INTEGER,
    "L": Scalar.BIGINT,
    "D": Scalar.DOUBLE,
    "S": Scalar.STRING,
    "Y": Scalar.BYTES,
    "DAY": Scalar.DATE,
    "T": Scalar.TIME,
    "AT": Scalar.TIMESTAMP,
    "PRICE": Decimal(6, 2),
    "MONEY": Decimal(38, 10),
    "LIST": Array(Scalar.INTEGER),
    "TEXTS": Array(Scalar.STRING),
    "NAMED": Map(Scalar.STRING, Scalar.DOUBLE),
    "IN": INNER,
    "DEEP": Array(Map(Scalar.STRING, INNER)),
    "lower": Scalar.INTEGER,
}
COLUMNS = tuple(Column(name, type_) for name, type_ in TYPES.items())

NUMBERS = [
    "0", "-0", "1", "-1", "007", "2147483647", "2147483648", "-2147483649", "9223372036854775807",
    "9223372036854775808",
    "1.0", "1.50", "-0.0", "12345678.9", "1e2", "1E-7", "1e19", "1e400", "-1e400",
    "0.1000000000000000055511151231257827",
    "123456789012345678901234567890.10", "0.00000000005", "1e-10", "9999.999", "10000", "12.345", "12.340",
    "1e999999999",
    "-1e-9999", "NaN", "Infinity", "-Infinity", "+1", ".5", "5.", "1" * 40, "1" * 1001, "86400000", "86400001",
    "0.00000000000000000000000000000000000000001", "12.34000000000000000000000000000000000000000001",
    "9223372036854774.9", "-2147483648.5", "1e-400", "0x10", "1_000", "1,5",
]  # fmt: skip
TEXTS = [
    '""', '" "', '"x"', '"5"', '" 5 "', '"1.5"', '"1e3"', '"1,234.5"', '","', '"NaN"', '"Infinity"', '"-inf"', '"1d"',
    '"0x1p3"', '"AP8="', '"AP8"', '"A P8="', '"not base64!"', '"true"', r'"\u00e9\ud83d\ude00"', r'"\ud83d"', '"日本"',
    r'"\"\\\n\t\u0000"', '"null"', '"9223372036854775808"', '"-0"', '"+5"', '"12.345"', '"99999999999"', r'"\x"',
    '"\t"',
]  # fmt: skip
NESTED = [
    "[]", "{}", "[1,null,-3]", '["4",5.9,1e2]', "[[1]]", '{"a":1,"b":null}', '{"a":1,"a":2}',
    '{"FIRST":1,"quoted":"x"}',
    '{"first":1,"First":2,"QUOTED":3}', '{"First":null,"FIRST":"7"}', '[{"k":{"FIRST":"x"}}]',
    '[{"k":{"first":5}},null]',
    '{"FIRST":true}', '{"FIRST":[1]}', '[{"k":1}]', '[{"a":1.50}]', '{"x":{"y":[1,{"z":NaN}]}}', '["a", "b"]', '[1',
    '{"a"',
    "[" * 1001 + "]" * 1001, '[1.10,"1.10",true]', "[,]", "[1,]", '{"a":1,}',
]  # fmt: skip
VALUES = st.one_of(
    st.sampled_from([*NUMBERS, *TEXTS, *NESTED, "true", "false", "null", "nul", "'x'", "", "TRUE"]),
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(repr),
    st.text(max_size=5).map(json.dumps),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["FIRST", "first", "a"]), inner),
        max_leaves=6,
    ).map(json.dumps),
)
NAMES = st.sampled_from([*TYPES, *(name.lower() for name in TYPES), "Day", "dAy", "iN", "other", "LOWER", "ı"])
SPACE = st.sampled_from(["", " ", "\n\t", "\r", "\u00a0", "/* */"])


@st.composite
def objects(draw: st.DrawFn) -> bytes:
    members = draw(st.lists(st.tuples(NAMES, VALUES), max_size=4))
    text = ",".join(f"{draw(SPACE)}{json.dumps(name, ensure_ascii=False)}:{value}" for name, value in members)
    return draw(SPACE).encode() + b"{" + text.encode() + b"}" + draw(st.sampled_from([b"", b" ", b"x", b"{}", b"}"]))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A record that is cut, or has a few other bytes in it."""
    record = draw(objects())
    at = draw(st.integers(0, len(record)))
    if draw(st.booleans()):
        return record[:at]
    return record[:at] + draw(st.binary(min_size=1, max_size=2)) + record[at + draw(st.integers(0, 2)) :]


MARK = b"\xef\xbb\xbf"
RECORDS = st.one_of(
    objects(),
    damaged(),
    st.sampled_from([b"", b" ", b"null", b" null ", b"5", b'"x"', b"[]", b"[{}]", MARK + b"{}", b"\0{\0}", b"{\0}\0"]),
    objects().map(lambda record: record.decode().encode("utf-16-be")),
)
BARE = st.one_of(
    VALUES.map(str.encode), st.sampled_from([b"5 6", b"5}", b'1,"v":2', b"", b" ", MARK + b"5"]), damaged()
)


def rows(engine: Engine, side: RecordSide, decoded: DecodedSide, values: list[bytes]) -> Iterator[tuple[object, ...]]:
    """The columns and the reason, or a single reason for a record that cannot be decoded."""
    inputs = Round({"records": records(values)}, {})
    level = "SELECT off, key, value FROM records"
    for added in (decoded.parsed, decoded.texts, tuple(zip(side.physical, decoded.typed, strict=True))):
        level = f"SELECT *{''.join(f', {sql} AS {name}' for name, sql in added)} FROM ({level})"
    bad = " OR ".join(failure.when for failure in decoded.failed)
    whens = " ".join(f"WHEN {failure.when} THEN {failure.why}" for failure in decoded.failed)
    names = ", ".join(side.physical)
    shown = f"to_json(struct({names}), map('ignoreNullFields', 'false'))"
    state = f"{decoded.absent} AS absent, ({bad}) AS bad, CASE {whens} END AS why"
    sql = f"SELECT off, {state}, {shown} AS shown FROM ({level})"
    for row in engine.select(sql, inputs).sort_by("off").to_pylist():
        if row["absent"]:
            yield ("absent",)
        elif row["bad"]:
            yield ("bad", row["why"])
        else:
            yield ("good", row["shown"])


def names_in(values: list[bytes]) -> frozenset[str]:
    """Every name that the records may have, in every spelling."""
    text = b" ".join(values).decode("utf-8", "replace") + b" ".join(values).decode("utf-16-be", "replace")
    return frozenset(token for token in json_names(text) if token.upper() in {name.upper() for name in SPELLED})


SPELLED = [*TYPES, *(field.name for field in INNER.fields)]


def json_names(text: str) -> set[str]:
    return {part for part in text.split('"') if 0 < len(part) <= max(map(len, SPELLED))}


def check_same(engine: Engine, columns: tuple[Column, ...], values: list[bytes], *, unwrapped: bool = False) -> None:
    side = RecordSide(columns=columns, info=FormatInfo(format="JSON"), prefix="c", unwrapped=unwrapped)
    native = list(rows(engine, side, decode_json(side), values))
    reference = list(rows(engine, side, decode_sql(side, names_in(values)), values))
    differing = [
        (value, found, expected)
        for value, found, expected in zip(values, native, reference, strict=True)
        if found[0] != expected[0] or (found[0] == "good" and found != expected)
    ]
    assert not differing


@pytest.mark.law
@slow_law(2)
@given(values=st.lists(RECORDS, min_size=500, max_size=1_000))
def test_records_are_decoded_as_by_sql(engine, values):
    check_same(engine, COLUMNS, values)


@pytest.mark.law
@slow_law(2)
@given(column=st.sampled_from(COLUMNS), values=st.lists(BARE, min_size=50, max_size=200))
def test_single_values_are_decoded_as_by_sql(engine, column, values):
    check_same(engine, (column,), values, unwrapped=True)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_each_value_of_each_type_is_decoded_as_by_sql(engine, column):
    values = [*NUMBERS, *TEXTS, *NESTED, "true", "false", "null", "nul", "'x'", ""]
    check_same(engine, (column,), [f'{{"{column.name}":{value}}}'.encode() for value in values])
    check_same(engine, (column,), [value.encode() for value in values], unwrapped=True)


def test_generated_code_decodes_the_same(engine):
    """More rows than this run with generated code, in tasks that have a copy of the function."""
    every = [f'{{"{c.name}":{v}}}'.encode() for c in COLUMNS for v in (*NUMBERS, *TEXTS, *NESTED, "true", "null")]
    check_same(engine, COLUMNS, every * (LOCAL_ROWS // len(every) + 1))
