"""JSON records to typed columns by the native function `decode_json`.

It gives the values that Spark's `from_json` and casts give: a test compares the two over random records.
"""

from collections.abc import Sequence
from json import dumps
from typing import Any, assert_never

from holdfast.runtime.expressions.physical import field_name, spark_type
from holdfast.runtime.serdes.json import values
from holdfast.runtime.serdes.native import call_sql
from holdfast.runtime.serdes.side import DecodedSide, DecodeFailure, RecordSide
from holdfast.types import Array, Column, Decimal, Map, Scalar, SqlType, Struct

NULL = "X'6E756C6C'"
REASON = "reason"


def decode_json(side: RecordSide) -> DecodedSide:
    """The decoding of JSON keys or values."""
    absent = f"({side.raw} IS NULL OR {side.raw} = {NULL})"
    if not side.columns:
        return DecodedSide(absent)
    values.check(side.columns, side.info)
    decoded = f"{side.prefix}j"
    return DecodedSide(
        absent=absent,
        parsed=((decoded, call_sql("decode_json", specification(side), side.raw)),),
        typed=tuple(f"{decoded}.{field_name(i)}" for i in range(len(side.columns))),
        failed=(DecodeFailure(f"{decoded}.{REASON} IS NOT NULL", f"{decoded}.{REASON}"),),
    )


def specification(side: RecordSide) -> str:
    """What the function has to know, as `DecodeJson.java` describes it."""
    fields = [f"{field_name(i)} {spark_type(column.type)}" for i, column in enumerate(side.columns)]
    return dumps(
        {
            "side": side.raw,
            "wrapped": not side.unwrapped,
            "schema": ", ".join([*fields, f"{REASON} STRING"]),
            "columns": _columns(side.columns, unwrapped=side.unwrapped),
        }
    )


def _columns(columns: Sequence[Column], *, unwrapped: bool) -> list[dict[str, Any]]:
    return [
        {"name": "v" if unwrapped else c.name, "column": c.name, "shown": str(c.type), "type": _type(c.type)}
        for c in columns
    ]


def _type(type_: SqlType) -> dict[str, Any]:
    match type_:
        case Scalar():
            return {"kind": type_.name}
        case Decimal(precision, scale):
            return {"kind": "DECIMAL", "precision": precision, "scale": scale}
        case Array(element):
            return {"kind": "ARRAY", "of": _type(element)}
        case Map(_, value):
            return {"kind": "MAP", "of": _type(value)}
        case Struct(fields):
            return {"kind": "STRUCT", "fields": [{"name": f.name, "type": _type(f.type)} for f in fields]}
        case _:
            assert_never(type_)
