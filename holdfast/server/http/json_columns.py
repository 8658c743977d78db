"""Encodes result columns as JSON, a column at a time; `json_values` converts a value at a time.

Values of types that Arrow cannot format are encoded one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.serving.json_values import json_rows, json_values, temporal_texts
from holdfast.serving.results import ResultColumn
from holdfast.types import Decimal, Scalar, SqlType

ESCAPED = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    "\b": "\\b",
    "\f": "\\f",
    **{chr(code): f"\\u{code:04x}" for code in range(0x20) if chr(code) not in "\n\t\r\b\f"},
}
TO_ESCAPE = r'["\\\x00-\x1f]'
CONTROLS = r"[\x00-\x1f]"


FEW = 50
"""Up to this number of rows, encoding row by row is faster than column by column."""


@dataclass(frozen=True, slots=True)
class Wrap:
    """The text before and after the values of a row."""

    begin: str
    end: str


def wrapped(rows: pa.Table, columns: Sequence[ResultColumn], row: Wrap, tombstone: Wrap) -> bytes:
    """The concatenated JSON of the rows; a column of `rows` after those of `columns` marks tombstones."""
    is_tombstone = rows.column(len(columns)) if rows.num_columns > len(columns) and row != tombstone else None
    if rows.num_rows <= FEW:
        wraps = (
            [row] * rows.num_rows
            if is_tombstone is None
            else [tombstone if each else row for each in is_tombstone.to_pylist()]
        )
        lists = map(orjson.dumps, json_rows(rows, columns))
        return b"".join(w.begin.encode() + text[1:-1] + w.end.encode() for text, w in zip(lists, wraps, strict=True))
    begin: Any = row.begin
    end: Any = row.end
    if is_tombstone is not None and pc.any(is_tombstone).as_py():
        begin, end = (
            pc.if_else(is_tombstone, tombstone.begin, row.begin),
            pc.if_else(is_tombstone, tombstone.end, row.end),
        )
    texts = [json_texts(rows.column(i), column.type) for i, column in enumerate(columns)]
    values = pc.binary_join_element_wise(*texts, ",", null_handling="replace", null_replacement="null")
    return content(pc.binary_join_element_wise(begin, values, end, ""))


def content(texts: pa.Array | pa.ChunkedArray) -> bytes:
    """The texts, concatenated."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    return b"".join(_bytes(chunk) for chunk in chunks if len(chunk))


def _bytes(texts: pa.Array) -> bytes:
    # The values of a chunk are contiguous in its buffer.
    offsets = pa.Array.from_buffers(pa.int32(), len(texts) + 1, [None, texts.buffers()[1]], offset=texts.offset)
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return bytes(memoryview(texts.buffers()[2])[first:last])


def json_texts(values: pa.ChunkedArray, type_: SqlType) -> pa.ChunkedArray:
    """The JSON of each value; null stays null."""
    match type_:
        case Scalar.BOOLEAN | Scalar.INTEGER | Scalar.BIGINT:
            return values.cast(pa.string())
        case Scalar.STRING:
            return _quoted(_escaped(values))
        case Scalar.DATE | Scalar.TIME | Scalar.TIMESTAMP:
            return _quoted(temporal_texts(values, type_))
        case Scalar.DOUBLE if pc.all(pc.is_finite(values)).as_py() is not False:
            texts = values.cast(pa.string())
            integral = pc.match_substring_regex(texts, r"^-?\d+$")
            return pc.if_else(integral, pc.binary_join_element_wise(texts, ".0", ""), texts)
        case Decimal():
            texts = values.cast(pa.string())
            if pc.any(pc.match_substring(texts, "E")).as_py() is not True:
                return texts
    return _one_by_one(values, type_)


def _quoted(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _escaped(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    if pc.any(pc.match_substring_regex(texts, TO_ESCAPE)).as_py() is not True:
        return texts
    controls = pc.any(pc.match_substring_regex(texts, CONTROLS)).as_py() is True
    for character, escape in ESCAPED.items():
        if (controls or character in '\\"') and pc.any(pc.match_substring(texts, character)).as_py() is True:
            texts = pc.replace_substring(texts, character, escape)
    return texts


def _one_by_one(values: pa.ChunkedArray, type_: SqlType) -> pa.ChunkedArray:
    texts = [None if value is None else orjson.dumps(value).decode() for value in json_values(values, type_)]
    return pa.chunked_array([pa.array(texts, pa.string())])
