"""Values of SQL types: from JSON to Python, from Python to JSON, and as Arrow.

| type                             | in Python                                                                  |
|----------------------------------|----------------------------------------------------------------------------|
| BOOLEAN, INTEGER, BIGINT, STRING | bool, int, str                                                             |
| DOUBLE, DECIMAL                  | float, decimal.Decimal                                                     |
| BYTES                            | bytes                                                                      |
| DATE, TIME                       | datetime.date, datetime.time                                               |
| TIMESTAMP                        | datetime.datetime in UTC                                                   |
| ARRAY, MAP, STRUCT               | list, dict, dict                                                           |

A date or a timestamp outside the years 1 to 9999, which Python cannot represent, stays a string.
"""

import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from holdfast import types as sql

if TYPE_CHECKING:
    import pyarrow as pa

Reader = Callable[[Any], Any]


def reader(type_: sql.SqlType) -> Reader | None:
    """Converts a non-null JSON value to Python; None if no conversion is needed."""
    match type_:
        case sql.Scalar.DOUBLE:
            return float
        case sql.Scalar.BYTES:
            return b64decode
        case sql.Scalar.DATE:
            return read_date
        case sql.Scalar.TIME:
            return time.fromisoformat
        case sql.Scalar.TIMESTAMP:
            return read_timestamp
        case sql.Decimal():
            return lambda value: Decimal(value) if not isinstance(value, Decimal) else value
        case sql.Array(element):
            inner = nullable(element)
            return lambda value: [inner(part) for part in value]
        case sql.Map(key, inner_type):
            inner_key, inner = key_reader(key), nullable(inner_type)
            return lambda value: {inner_key(name): inner(part) for name, part in value.items()}
        case sql.Struct(fields):
            parts = [(field.name, nullable(field.type)) for field in fields]
            return lambda value: {name: inner(value.get(name)) for name, inner in parts}
        case _:
            return None


def nullable(type_: sql.SqlType) -> Reader:
    read = reader(type_)
    if read is None:
        return lambda value: value
    return lambda value: None if value is None else read(value)


def key_reader(type_: sql.SqlType) -> Reader:
    """Converts a key of a JSON object, which is a string."""
    match type_:
        case sql.Scalar.INTEGER | sql.Scalar.BIGINT:
            return int
        case sql.Scalar.BOOLEAN:
            return lambda text: text == "true"
        case _:
            return reader(type_) or str


def read_date(text: str) -> date | str:
    with suppress(ValueError):
        return date.fromisoformat(text)
    return text


def read_timestamp(text: str) -> datetime | str:
    with suppress(ValueError):
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    return text


def has_decimal(type_: sql.SqlType) -> bool:
    match type_:
        case sql.Decimal():
            return True
        case sql.Array(element):
            return has_decimal(element)
        case sql.Map(key, value):
            return has_decimal(key) or has_decimal(value)
        case sql.Struct(fields):
            return any(has_decimal(field.type) for field in fields)
        case _:
            return False


# ---- Python to JSON


def plain(value: Any) -> Any:
    """A Python value as JSON, in the form that the server sends and accepts; a Decimal stays a Decimal."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case bytes() | bytearray():
            return b64encode(value).decode("ascii")
        case datetime():
            utc = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return utc.isoformat(timespec="milliseconds")
        case date():
            return value.isoformat()
        case time():
            return value.isoformat(timespec="milliseconds")
        case Mapping():
            return {key if isinstance(key, str) else plain_key(key): plain(part) for key, part in value.items()}
        case str():
            return value
        case Sequence():
            return [plain(part) for part in value]
        case _:
            return value


def plain_key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(plain(key))


# ---- Arrow


def arrow_type(type_: sql.SqlType) -> "pa.DataType":
    import pyarrow as pa

    match type_:
        case sql.Scalar.BOOLEAN:
            return pa.bool_()
        case sql.Scalar.INTEGER:
            return pa.int32()
        case sql.Scalar.BIGINT:
            return pa.int64()
        case sql.Scalar.DOUBLE:
            return pa.float64()
        case sql.Scalar.STRING:
            return pa.string()
        case sql.Scalar.BYTES:
            return pa.binary()
        case sql.Scalar.DATE:
            return pa.date32()
        case sql.Scalar.TIME:
            return pa.time32("ms")
        case sql.Scalar.TIMESTAMP:
            return pa.timestamp("ms", tz="UTC")
        case sql.Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case sql.Array(element):
            return pa.list_(arrow_type(element))
        case sql.Map(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case sql.Struct(fields):
            return pa.struct([pa.field(field.name, arrow_type(field.type)) for field in fields])


def arrow_column(values: Sequence[Any], type_: sql.SqlType) -> "pa.Array":
    import numpy as np
    import pyarrow as pa

    to = arrow_type(type_)
    if type_ in (sql.Scalar.DATE, sql.Scalar.TIMESTAMP) and any(isinstance(value, str) for value in values):
        # Years that numpy can represent, but Python's types cannot.
        unit = "D" if type_ is sql.Scalar.DATE else "ms"
        times = np.array([plain(value) for value in values], f"datetime64[{unit}]")
        return pa.array(times).cast(to)
    if isinstance(type_, sql.Map):
        values = [None if value is None else list(value.items()) for value in values]
    return pa.array(values, to)
