"""Encodes rows and decodes records as the engine does, without a query."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, Formats, SerdeFeature
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.runtime.spark.engine import RECORDS, Engine, Round
from holdfast.runtime.store.port import SqlReader
from holdfast.types import Column, Schema, SqlType

BAD = object()
"""What is expected of a record that cannot be decoded."""
Case = tuple[str, str, Any]
"""A column, its JSON text as others write it, and as we write it after reading: None for the same, or `BAD`."""


def formats(key: str, value: str, *, unwrapped: bool = False) -> Formats:
    more = {"value_features": (SerdeFeature.UNWRAP_SINGLES,)} if unwrapped else {}
    return Formats(
        key_format=FormatInfo(format=key, properties=FormatProperties()),
        value_format=FormatInfo(format=value, properties=FormatProperties()),
        **more,
    )


def values_of(**types: SqlType) -> Schema:
    return Schema(tuple(Column(name, type_) for name, type_ in types.items()))


def records(values: Sequence[bytes | None], keys: Sequence[bytes | None] = ()) -> pa.Table:
    rows = [
        {"part": 0, "off": i, "ts": 0, "key": keys[i] if keys else None, "value": value}
        for i, value in enumerate(values)
    ]
    return pa.Table.from_pylist(rows, schema=RECORDS)


def decode(engine: Engine, decoder: Decoder, values: Sequence[bytes | None], keys: Sequence[bytes | None] = ()):
    """The decoded rows in the order of the records, including bad ones."""
    inputs = Round({"records": records(values, keys)}, {})
    return engine.select(decoder.sql("records"), inputs).sort_by("off")


def encode(reader: SqlReader, encoder: Encoder, **columns: pa.Array | pa.ChunkedArray) -> pa.Table:
    count = len(next(iter(columns.values())))
    rows = {"present": pa.repeat(pa.scalar(True), count), **columns, "ts": pa.array([0] * count, pa.int64())}
    return encoder.encode(pa.table(rows), reader)


def array(values: Sequence[Any], type_: SqlType) -> pa.Array:
    return pa.array(values, arrow_type(type_))


def json_cases(read: Mapping[str, Mapping[str, Any]]) -> list[Case]:
    """The cases of each column, and a null in each."""
    cases = [(name, text, written) for name, texts in read.items() for text, written in texts.items()]
    return [*cases, *((name, "null", None) for name in read)]


def rewrite_json(
    engine: Engine, reader: SqlReader, types: Mapping[str, SqlType], cases: Sequence[Case]
) -> dict[tuple[str, str], Any]:
    """By column and text, the whole JSON record that we write after reading it, or `BAD`, in one Spark job."""
    schema, json = values_of(**types), formats("NONE", "JSON")
    rows = decode(engine, Decoder(schema, json), [f'{{"{name}": {text}}}'.encode() for name, text, _ in cases])
    columns = {f"c{i}": rows.column(f"c{i}").cast(arrow_type(t)) for i, t in enumerate(types.values())}
    written = encode(reader, Encoder(schema, json), **columns).column("value").to_pylist()
    both = zip(cases, rows.column("bad").to_pylist(), written, strict=True)
    return {(name, text): BAD if bad else record.decode() for (name, text, _), bad, record in both}


def expected_json(types: Mapping[str, SqlType], case: Case) -> Any:
    """The whole record that `rewrite_json` gives for a case: the other columns are null."""
    name, text, written = case
    if written is BAD:
        return BAD
    columns = dict.fromkeys(types, "null") | {name: text if written is None else written}
    return "{" + ",".join(f'"{column}":{shown}' for column, shown in columns.items()) + "}"


def case_id(case: Case) -> str:
    name, text, _ = case
    return f"{name}-{text}"
