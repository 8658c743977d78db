"""Result rows as JSON values, column by column.

| type                             | as                                                                  |
|----------------------------------|---------------------------------------------------------------------|
| BOOLEAN, INTEGER, BIGINT, STRING | themselves                                                          |
| DOUBLE                           | number; "NaN", "Infinity", "-Infinity", which JSON does not have    |
| DECIMAL                          | number with all the digits of its scale                             |
| BYTES                            | base64 text                                                         |
| DATE, TIME, TIMESTAMP            | "2020-01-01", "10:00:00.000", "2020-01-01T10:00:00.000"             |
| ARRAY, MAP, STRUCT               | array; object, the keys as text; object                             |
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.serving.results import ResultColumn
from holdfast.types import Array, Scalar, SqlType

Convert = Callable[[Any], Any]


def json_rows(rows: pa.Table, columns: Sequence[ResultColumn]) -> Iterator[tuple[Any, ...]]:
    """The rows as tuples that `orjson` writes; a column of `rows` after those of `columns` is left out."""
    return zip(*(json_values(rows.column(i), column.type) for i, column in enumerate(columns)), strict=True)


def json_values(values: pa.ChunkedArray | pa.Array, type_: SqlType) -> list[Any]:
    values = readable(values, type_)
    if type_ is Scalar.DOUBLE and pc.all(pc.is_finite(values)).as_py() is not False:
        return list(values.to_pylist())
    convert = converter(type_)
    if convert is None:
        return list(values.to_pylist())
    return [None if value is None else convert(value) for value in values.to_pylist()]


def readable(values: pa.ChunkedArray | pa.Array, type_: SqlType) -> pa.ChunkedArray | pa.Array:
    """Dates and times as text: Arrow also writes those that Python's own types cannot hold."""
    match type_:
        case Scalar.DATE:
            return values.cast(pa.string())
        case Scalar.TIME:
            return values.cast(pa.time32("ms")).cast(pa.string())
        case Scalar.TIMESTAMP:
            return pc.strftime(values.cast(pa.timestamp("ms"), safe=False), "%Y-%m-%dT%H:%M:%S")
        case Array(element):
            flat = readable(merged(values).flatten(), element)
            return pa.ListArray.from_arrays(offsets_of(values), flat, mask=merged(values).is_null())
        case _:
            return values


def merged(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
