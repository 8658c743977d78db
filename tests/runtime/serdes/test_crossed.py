"""Every format of keys with every format of values: what is written is read back."""

from itertools import product

import pytest

from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, Formats
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.types import Column, Role, Scalar, Schema

from .round_trip import array, decode, encode

INFOS = {
    "JSON": FormatInfo(format="JSON", properties=FormatProperties()),
    "DELIMITED": FormatInfo(format="DELIMITED", properties=FormatProperties()),
    "DELIMITED by |": FormatInfo(format="DELIMITED", properties=FormatProperties(delimiter="|")),
    "KAFKA": FormatInfo(format="KAFKA", properties=FormatProperties()),
    "NONE": FormatInfo(format="NONE", properties=FormatProperties()),
}
KEYS = [1, -2, 2**40]
TEXTS = ["a", 'b,|"é', "null"]
WRITTEN_KEYS = {
    "JSON": b"1",
    "DELIMITED": b"1",
    "DELIMITED by |": b"1",
    "KAFKA": b"\x00" * 7 + b"\x01",
    "NONE": None,
}
WRITTEN_VALUES = {"JSON": b'{"V":"a"}', "DELIMITED": b"a", "DELIMITED by |": b"a", "KAFKA": b"a", "NONE": None}


@pytest.mark.parametrize(("key", "value"), product(INFOS, INFOS))
def test_each_format_of_keys_goes_with_each_of_values(key, value, engine, reader):
    both = Formats(key_format=INFOS[key], value_format=INFOS[value])
    keyed = () if key == "NONE" else (Column("K", Scalar.BIGINT, Role.KEY),)
    valued = () if value == "NONE" else (Column("V", Scalar.STRING),)
    schema = Schema((*keyed, *valued))
    columns = {"k0": array(KEYS, Scalar.BIGINT)} if keyed else {}
    columns |= {"c0": array(TEXTS, Scalar.STRING)} if valued else {}
    if not columns:
        pytest.skip("a record of nothing at all")
    written = encode(reader, Encoder(schema, both), **columns)
    raw_keys, raw_values = (written.column(name).to_pylist() for name in ("key", "value"))
    assert (raw_keys[0], raw_values[0]) == (WRITTEN_KEYS[key], WRITTEN_VALUES[value])
    rows = decode(engine, Decoder(schema, both), raw_values, raw_keys)
    assert rows.column("bad").to_pylist() == [0] * 3
    assert not keyed or rows.column("k0").to_pylist() == KEYS
    assert not valued or rows.column("c0").to_pylist() == TEXTS
