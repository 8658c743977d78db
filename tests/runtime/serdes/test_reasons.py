"""Why a record cannot be decoded, as its reader sees it."""

from collections.abc import Mapping
from decimal import Decimal as Number

from runtime.serdes.round_trip import formats, records

from holdfast.runtime.plan.optional import ABSENT
from holdfast.runtime.plan.windows import Duration, WindowInfo, WindowTopic, WindowType
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.spark.engine import Engine, Round
from holdfast.types import Array, Column, Decimal, Role, Scalar, Schema

ID = Column("ID", Scalar.BIGINT, Role.KEY)
KEY = bytes(8)
COLUMNS = (
    Column("N", Scalar.INTEGER),
    Column("OK", Scalar.BOOLEAN),
    Column("XS", Array(Scalar.BIGINT)),
    Column("P", Decimal(4, 2)),
)


def check(engine: Engine, decoder: Decoder, reasons: Mapping[tuple[bytes | None, bytes | None], str]) -> None:
    """Records, by key and value, are all undecodable, each for its reason."""
    keys, values = zip(*reasons, strict=True)
    inputs = Round({"records": records(values, keys)}, {})
    found = engine.select(decoder.reason_sql("records", 100), inputs).sort_by("off")
    rows = {(row["key"], row["value"]): row["reason"] for row in found.to_pylist()}
    assert rows == dict(reasons)
    assert found.column("total").unique().to_pylist() == [len(reasons)]


def test_json(engine):
    reasons = {
        b"": "the value is empty",
        b"\xff{}": "the value is not UTF-8",
        b"nonsense": "the value is not a JSON object",
        b"[1]": "the value is not a JSON object",
        b'{"N": 1': "the value is not a JSON object",
        b'{"N": "x"}': 'column "N" cannot be read as INTEGER',
        b'{"N": 3000000000}': 'column "N" cannot be read as INTEGER',
        b'{"OK": 7}': 'column "OK" cannot be read as BOOLEAN',
        b'{"N": 1, "XS": 7}': 'column "XS" cannot be read as ARRAY<BIGINT>',
        b'{"XS": [1, "x"]}': 'column "XS" cannot be read as ARRAY<BIGINT>',
        b'{"P": 1.234}': 'column "P" cannot be read as DECIMAL(4, 2)',
    }
    decoder = Decoder(Schema((ID, *COLUMNS)), formats("KAFKA", "JSON"))
    check(engine, decoder, {(KEY, value): reason for value, reason in reasons.items()})


def test_bare_json(engine):
    decoder = Decoder(Schema((ID, Column("N", Scalar.INTEGER))), formats("JSON", "JSON", unwrapped=True))
    reasons = {
        (b"1", b"}"): "the value is not JSON",
        (b"x", b"1"): "the key is not JSON",
        (b'"x"', b"1"): 'column "ID" cannot be read as BIGINT',
    }
    check(engine, decoder, reasons)


def test_delimited(engine):
    columns = (Column("N", Scalar.INTEGER), Column("S", Scalar.STRING))
    decoder = Decoder(Schema((ID, *columns)), formats("KAFKA", "DELIMITED"))
    reasons = {
        b"": "the value is empty",
        b"1": "the value has 1 fields for 2 columns",
        b"1,a,b": "the value has 3 fields for 2 columns",
        b'1,"a': "the value has a misplaced quote",
        b"1,\xff": "the value is not UTF-8",
        b"x,a": 'column "N" cannot be read as INTEGER',
    }
    check(engine, decoder, {(KEY, value): reason for value, reason in reasons.items()})


def test_kafkas_own_serializers(engine):
    decoder = Decoder(Schema((ID, Column("S", Scalar.STRING))), formats("KAFKA", "KAFKA"))
    reasons = {
        (b"1", b"a"): 'the key has 1 bytes, but column "ID" of type BIGINT needs 8',
        (KEY, b"\xff"): "the value is not UTF-8",
    }
    check(engine, decoder, reasons)


def test_a_row_of_a_table_needs_a_key(engine):
    table = Decoder(Schema((ID, *COLUMNS)), formats("KAFKA", "JSON"), keyed=True)
    check(engine, table, {(None, b'{"N": 1}'): "the record has no key, but a row of a table needs one"})


def test_the_key_of_a_windowed_topic_has_the_bytes_of_a_window(engine):
    def check_keys(type_: WindowType, topic: WindowTopic, reasons: Mapping[bytes, str]) -> None:
        window = WindowInfo(type=type_, size=ABSENT if type_ is WindowType.SESSION else Duration(Number(60)))
        schema = Schema((Column("ID", Scalar.STRING, Role.KEY), *COLUMNS))
        decoder = Decoder(schema, formats("KAFKA", "JSON"), keyed=True, window=window, window_topic=topic)
        check(engine, decoder, {(key, b'{"N": 1}'): reason for key, reason in reasons.items()})

    starts = "bytes, but the key in a windowed topic ends with 8: the window's start"
    check_keys(
        WindowType.HOPPING,
        WindowTopic.TOPIC,
        {b"": f"the key has 0 {starts}", b"abc": f"the key has 3 {starts}", b"\xff" + KEY: "the key is not UTF-8"},
    )
    for topic in WindowTopic:
        why = "the key has 15 bytes, but the key of a session ends with 16: its end and its start"
        check_keys(WindowType.SESSION, topic, {bytes(15): why})
    logged = "bytes, but the key in a window store's changelog ends with 12: the window's start and a sequence number"
    several = "its window has several values, as in the store of a join"
    check_keys(
        WindowType.TUMBLING,
        WindowTopic.CHANGELOG,
        {
            b"a": f"the key has 1 {logged}",
            bytes(10) + b"\x01": f"the key has 11 {logged}",
            b"a" + KEY + bytes((0, 0, 0, 7)): f"the key has sequence number 7: {several}",
            b"a" + KEY + bytes((127, 255, 255, 255)): f"the key has sequence number 2147483647: {several}",
            b"\xff" + KEY + bytes((255, 255, 255, 255)): f"the key has sequence number -1: {several}",
        },
    )
