"""Result rows as JSON values, column by column.

| type                             | as                                                                  |
|----------------------------------|---------------------------------------------------------------------|
| BOOLEAN, INTEGER, BIGINT, STRING | the JSON value of the same kind                                     |
| DOUBLE                           | number; "NaN", "Infinity", "-Infinity", which JSON lacks            |
| DECIMAL                          | number with all the digits of its scale                             |
| BYTES                            | base64 text                                                         |
| DATE, TIME, TIMESTAMP            | "2020-01-01", "10:00:00.000", "2020-01-01T10:00:00.000"             |
| ARRAY, MAP, STRUCT               | array; object, the keys as text; object                             |
"""

import math
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.serving.results import ResultColumn
from holdfast.types import Array, Decimal, Map, Scalar, SqlType, Struct

Convert = Callable[[Any], Any]


def json_rows(rows: pa.Table, columns: Sequence[ResultColumn]) -> Iterator[tuple[Any, ...]]:
    """The rows as tuples for `orjson`, without columns of `rows` after those of `columns`."""
    return zip(*(json_values(rows.column(i), column.type) for i, column in enumerate(columns)), strict=True)


def finite(rows: list[tuple[Any, ...]], columns: Sequence[ResultColumn]) -> list[tuple[Any, ...]]:
    """Rows of scalar values, with strings for numbers that JSON cannot represent."""
    doubles = [i for i, column in enumerate(columns) if column.type is Scalar.DOUBLE]
    if not any(isinstance(row[i], float) and not math.isfinite(row[i]) for i in doubles for row in rows):
        return rows
    return [tuple(number(v) if isinstance(v, float) else v for v in row) for row in rows]


def json_values(values: pa.ChunkedArray, type_: SqlType) -> list[Any]:
    match type_:
        case Scalar.DATE | Scalar.TIME | Scalar.TIMESTAMP:
            return list(temporal_texts(values, type_).to_pylist())
        case Scalar.DOUBLE if pc.all(pc.is_finite(values)).as_py() is not False:
            return list(values.to_pylist())
    convert = converter(type_)
    if convert is None:
        return list(values.to_pylist())
    return [None if value is None else convert(value) for value in values.to_pylist()]


def temporal_texts(values: pa.ChunkedArray, type_: SqlType) -> pa.ChunkedArray:
    """Dates and times as strings; Arrow also formats those outside the range of Python's types."""
    match type_:
        case Scalar.DATE:
            return values.cast(pa.string())
        case Scalar.TIME:
            return values.cast(pa.time32("ms")).cast(pa.string())
        case _:
            return pc.strftime(values.cast(pa.timestamp("ms"), safe=False), "%Y-%m-%dT%H:%M:%S")


def converter(type_: SqlType) -> Convert | None:
    """Converts a non-null value of a type to JSON; None if it needs no conversion."""
    match type_:
        case Scalar.DOUBLE:
            return number
        case Scalar.BYTES:
            return lambda value: b64encode(value).decode("ascii")
        case Scalar.DATE:
            return lambda value: value.isoformat()
        case Scalar.TIME:
            return time_of_day
        case Scalar.TIMESTAMP:
            return lambda value: value.isoformat(timespec="milliseconds")
        case Decimal():
            return lambda value: orjson.Fragment(format(value, "f"))
        case Array(element):
            inner = nullable(element)
            return lambda value: [inner(part) for part in value]
        case Map(key, value_type):
            inner_key, inner_value = nullable(key), nullable(value_type)
            return lambda value: {key_text(inner_key(k)): inner_value(v) for k, v in value}
        case Struct(fields):
            parts = [(f"f{i}", field.name, nullable(field.type)) for i, field in enumerate(fields)]
            return lambda value: {name: inner(value[physical]) for physical, name, inner in parts}
        case _:
            return None


def nullable(type_: SqlType) -> Convert:
    convert = converter(type_)
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def time_of_day(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:03}"


def key_text(key: object) -> str:
    match key:
        case str():
            return key
        case orjson.Fragment():
            return str(key.contents)
        case bool():
            return str(key).lower()
        case _:
            return str(key)
