"""The forms that rows are sent in.

Delimited, the default of /query-stream: one JSON text per line.

    {"queryId": "...", "columnNames": ["ID", "TOTAL"], "columnTypes": ["STRING", "BIGINT"]}
    ["a", 1]
    {"tombstone": ["a", null]}      the row of this key is gone; only columns made of key columns have values
    {"progress": 1700000000000}     no change before this time is still to come; only when asked for
    {"@type": "generic_error", ...} the query failed; nothing follows

`application/json` is one array of the same. `application/vnd.ksql.v1+json`, also the form of /query, is an array too:

    [{"header": {"queryId": "...", "schema": "`ID` STRING, `TOTAL` BIGINT"}},
    {"row": {"columns": ["a", 1]}},
    {"row": {"columns": ["a", null], "tombstone": true}},
    {"progress": 1700000000000},
    {"errorMessage": {"@type": "generic_error", ...}},
    {"finalMessage": "Limit Reached"}]

A tombstone line is not ksqlDB's, which drops deletes here. The request property `holdfast.tombstones=false` drops
them too, for clients that know rows only; `holdfast.progress=true` asks for the progress.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import orjson
import pyarrow as pa

from holdfast.names import quote
from holdfast.server.problems import Json
from holdfast.server.requests import Form
from holdfast.server.values import json_rows
from holdfast.serving.results import ResultColumn

TOMBSTONES = "holdfast.tombstones"
PROGRESS = "holdfast.progress"


class Framing(Protocol):
    """Writes one answer; its parts are sent one after the other."""

    media_type: str

    def header(self, query: str | None, columns: Sequence[ResultColumn], notice: str | None) -> bytes: ...

    def rows(self, rows: pa.Table, columns: Sequence[ResultColumn]) -> bytes: ...

    def progress(self, time: int) -> bytes: ...

    def error(self, body: Json) -> bytes: ...

    def end(self, message: str | None) -> bytes: ...


class Delimited:
    """A line for each part."""

    media_type = Form.DELIMITED.value

    def __init__(self, *, tombstones: bool = True) -> None:
        self._tombstones = tombstones

    def header(self, query: str | None, columns: Sequence[ResultColumn], notice: str | None) -> bytes:
        names, types = [column.name for column in columns], [str(column.type) for column in columns]
        told: Json = {"queryId": query, "columnNames": names, "columnTypes": types}
        return orjson.dumps(told | ({"notice": notice} if notice else {})) + b"\n"

    def rows(self, rows: pa.Table, columns: Sequence[ResultColumn]) -> bytes:
        parts = [orjson.dumps(row) for row in self._parts(rows, columns)]
        return b"\n".join(parts) + b"\n" if parts else b""

    def _parts(self, rows: pa.Table, columns: Sequence[ResultColumn]) -> Sequence[Any]:
        values, gone = json_rows(rows, columns), tombstones_of(rows, columns)
        if gone is None:
            return list(values)
        kept = ({"tombstone": row} if is_gone else row for row, is_gone in zip(values, gone, strict=True))
        return [part for part in kept if self._tombstones or not isinstance(part, dict)]

    def progress(self, time: int) -> bytes:
        return orjson.dumps({"progress": time}) + b"\n"

    def error(self, body: Json) -> bytes:
        return orjson.dumps(body) + b"\n"

    def end(self, message: str | None) -> bytes:
        del message
        return b""


class Arrayed(Delimited):
    """The same parts as one JSON array."""

    media_type = Form.ARRAY.value

    def header(self, query: str | None, columns: Sequence[ResultColumn], notice: str | None) -> bytes:
        return b"[" + super().header(query, columns, notice).rstrip()

    def rows(self, rows: pa.Table, columns: Sequence[ResultColumn]) -> bytes:
        return b"".join(b",\n" + orjson.dumps(row) for row in self._parts(rows, columns))

    def progress(self, time: int) -> bytes:
        return b",\n" + super().progress(time).rstrip()

    def error(self, body: Json) -> bytes:
        return b",\n" + orjson.dumps(body)

    def end(self, message: str | None) -> bytes:
        del message
        return b"]\n"


class Streamed:
    """ksqlDB's streamed rows, in which a tombstone has a place."""

    media_type = Form.STREAMED.value

    def header(self, query: str | None, columns: Sequence[ResultColumn], notice: str | None) -> bytes:
        schema = ", ".join(f"{quote(column.name)} {column.type}" for column in columns)
        told: Json = {"queryId": query or "none", "schema": schema} | ({"notice": notice} if notice else {})
        return b"[" + orjson.dumps({"header": told})

    def rows(self, rows: pa.Table, columns: Sequence[ResultColumn]) -> bytes:
        values, gone = json_rows(rows, columns), tombstones_of(rows, columns)
        if gone is None:
            return b"".join(part({"row": {"columns": row}}) for row in values)
        return b"".join(
            part({"row": {"columns": row, "tombstone": True} if is_gone else {"columns": row}})
            for row, is_gone in zip(values, gone, strict=True)
        )

    def progress(self, time: int) -> bytes:
        return part({"progress": time})

    def error(self, body: Json) -> bytes:
        return part({"errorMessage": body})

    def end(self, message: str | None) -> bytes:
        return (part({"finalMessage": message}) if message else b"") + b"]\n"


def part(told: Json) -> bytes:
    return b",\n" + orjson.dumps(told)


def tombstones_of(rows: pa.Table, columns: Sequence[ResultColumn]) -> list[bool] | None:
    """Which rows are tombstones, None when none can be."""
    return rows.column(len(columns)).to_pylist() if rows.num_columns > len(columns) else None


def framing_for(form: Form, request_properties: Mapping[str, str]) -> Framing:
    tombstones = request_properties.get(TOMBSTONES, "true").lower() != "false"
    match form:
        case Form.DELIMITED:
            return Delimited(tombstones=tombstones)
        case Form.ARRAY:
            return Arrayed(tombstones=tombstones)
        case Form.STREAMED:
            return Streamed()
