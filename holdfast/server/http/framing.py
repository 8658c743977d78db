"""The formats of result rows.

Delimited, the default of /query-stream: one JSON text per line.

    {"queryId": "...", "columnNames": ["ID", "TOTAL"], "columnTypes": ["STRING", "BIGINT"]}
    ["a", 1]
    ["a", null]                     the row of this key was deleted; only columns computed from the key have values
    {"@type": "generic_error", ...} the query failed; nothing follows

This is ksqlDB's format, except that ksqlDB leaves out deletes. Its clients know only rows and errors. A client requests
more with properties:

    holdfast.tombstones=true        {"tombstone": ["a", null]} in place of ["a", null]; with `false`, nothing
    holdfast.progress=true          {"progress": 1700000000000}: no change before this time is still to come.
                                    Tombstones are then marked, too, unless the request says otherwise.
                                    {"snapshot": 1700000000000} once, after the rows that the table of EMIT ALL had
                                    at this time; changes follow
                                    {"notice": "...", "current": false}: nothing follows until a table that stopped is
                                    {"notice": "...", "current": true}
                                    The header of a push query then has the ids of its "objects", too.

`application/json` is one array of the same parts. `application/vnd.ksql.v1+json`, also the format of /query, is an
array, too, in which ksqlDB itself marks tombstones:

    [{"header": {"queryId": "...", "schema": "`ID` STRING, `TOTAL` BIGINT"}},
    {"row": {"columns": ["a", 1]}},
    {"row": {"columns": ["a", null], "tombstone": true}},
    {"snapshot": 1699999999999},
    {"progress": 1700000000000},
    {"errorMessage": {"@type": "generic_error", ...}},
    {"finalMessage": "Limit Reached"}]
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.names import quote
from holdfast.server.http.json_columns import Wrap, wrapped
from holdfast.server.http.requests import RowFormat
from holdfast.server.problems import Json
from holdfast.serving.results import Notice, ResultColumn
from holdfast.sql.properties.session import check_property

TOMBSTONES = "holdfast.tombstones"
PROGRESS = "holdfast.progress"


class Tombstones(StrEnum):
    """How a deleted row is sent; the values of the property."""

    MARKED = "true"
    NULLS = "nulls"
    NONE = "false"


class Framing(Protocol):
    """Encodes the parts of one response."""

    media_type: str

    @property
    def key(self) -> Hashable:
        """Equal for framings that encode rows in the same way."""

    def header(
        self, query: str | None, columns: Sequence[ResultColumn], notice: str | None, objects: str | None = None
    ) -> bytes: ...

    def rows(self, rows: pa.Table, columns: Sequence[ResultColumn]) -> bytes: ...

    def encode_each(self, rows: Iterable[Sequence[Any]]) -> list[bytes]:
        """Encode rows of JSON values one by one; none of them is a tombstone."""

    def progress(self, time: int) -> bytes: ...

    def snapshot(self, time: int) -> bytes: ...

    def notice(self, notice: Notice) -> bytes: ...

    def error(self, body: Json) -> bytes: ...

    def end(self, message: str | None) -> bytes: ...


class Delimited:
    """One line per part."""

    media_type = RowFormat.DELIMITED.value
    _row, _tombstone = Wrap("[", "]\n"), Wrap('{"tombstone":[', "]}\n")

    def __init__(self, tombstones: Tombstones = Tombstones.NULLS) -> None:
        self._tombstones = tombstones

    @property
    def key(self) -> Hashable:
        return self.media_type, self._tombstones

    def header(
        self, query: str | None, columns: Sequence[ResultColumn], notice: str | None, objects: str | None = None
    ) -> bytes:
        names, types = [column.name for column in columns], [str(column.type) for column in columns]
        header: Json = {"queryId": query, "columnNames": names, "columnTypes": types}
        return orjson.dumps(header | present(notice=notice, objects=objects)) + b"\n"

    def rows(self, rows: pa.Table, columns: Sequence[ResultColumn]) -> bytes:
        match self._tombstones:
            case Tombstones.MARKED:
                return wrapped(rows, columns, self._row, self._tombstone)
            case Tombstones.NULLS:
                return wrapped(rows, columns, self._row, self._row)
            case Tombstones.NONE:
                return wrapped(without_tombstones(rows, columns), columns, self._row, self._row)

    def encode_each(self, rows: Iterable[Sequence[Any]]) -> list[bytes]:
        return [orjson.dumps(row) + b"\n" for row in rows]

    def progress(self, time: int) -> bytes:
        return orjson.dumps({"progress": time}) + b"\n"

    def snapshot(self, time: int) -> bytes:
        return orjson.dumps({"snapshot": time}) + b"\n"

    def notice(self, notice: Notice) -> bytes:
        return orjson.dumps(notice_part(notice)) + b"\n"

    def error(self, body: Json) -> bytes:
        return orjson.dumps(body) + b"\n"

    def end(self, message: str | None) -> bytes:
        del message
        return b""


class Arrayed(Delimited):
    """The same parts as one JSON array."""

    media_type = RowFormat.ARRAY.value
    _row, _tombstone = Wrap(",\n[", "]"), Wrap(',\n{"tombstone":[', "]}")

    def header(
        self, query: str | None, columns: Sequence[ResultColumn], notice: str | None, objects: str | None = None
    ) -> bytes:
        return b"[" + super().header(query, columns, notice, objects).rstrip()

    def encode_each(self, rows: Iterable[Sequence[Any]]) -> list[bytes]:
        return [b",\n" + orjson.dumps(row) for row in rows]

    def progress(self, time: int) -> bytes:
        return b",\n" + super().progress(time).rstrip()

    def snapshot(self, time: int) -> bytes:
        return b",\n" + super().snapshot(time).rstrip()

    def notice(self, notice: Notice) -> bytes:
        return b",\n" + super().notice(notice).rstrip()

    def error(self, body: Json) -> bytes:
        return b",\n" + orjson.dumps(body)

    def end(self, message: str | None) -> bytes:
        del message
        return b"]\n"


class Streamed:
    """ksqlDB's streamed rows, which mark tombstones."""

    media_type = RowFormat.STREAMED.value
    _row, _tombstone = Wrap(',\n{"row":{"columns":[', "]}}"), Wrap(',\n{"row":{"columns":[', '],"tombstone":true}}')

    @property
    def key(self) -> Hashable:
        return self.media_type

    def header(
        self, query: str | None, columns: Sequence[ResultColumn], notice: str | None, objects: str | None = None
    ) -> bytes:
        schema = ", ".join(f"{quote(column.name)} {column.type}" for column in columns)
        header: Json = {"queryId": query or "none", "schema": schema}
        return b"[" + orjson.dumps({"header": header | present(notice=notice, objects=objects)})

    def rows(self, rows: pa.Table, columns: Sequence[ResultColumn]) -> bytes:
        return wrapped(rows, columns, self._row, self._tombstone)

    def encode_each(self, rows: Iterable[Sequence[Any]]) -> list[bytes]:
        return [part({"row": {"columns": row}}) for row in rows]

    def progress(self, time: int) -> bytes:
        return part({"progress": time})

    def snapshot(self, time: int) -> bytes:
        return part({"snapshot": time})

    def notice(self, notice: Notice) -> bytes:
        return part(notice_part(notice))

    def error(self, body: Json) -> bytes:
        return part({"errorMessage": body})

    def end(self, message: str | None) -> bytes:
        return (part({"finalMessage": message}) if message else b"") + b"]\n"


def present(**fields: str | None) -> Json:
    return {name: value for name, value in fields.items() if value}


def notice_part(notice: Notice) -> Json:
    return {"notice": notice.message, "current": notice.current}


def part(content: Json) -> bytes:
    return b",\n" + orjson.dumps(content)


def without_tombstones(rows: pa.Table, columns: Sequence[ResultColumn]) -> pa.Table:
    return rows.filter(pc.invert(rows.column(len(columns)))) if rows.num_columns > len(columns) else rows


def wants_progress(options: Mapping[str, str]) -> bool:
    return options.get(PROGRESS, "").lower() == "true"


def framing_for(format_: RowFormat, options: Mapping[str, str]) -> Framing:
    default = Tombstones.MARKED if wants_progress(options) else Tombstones.NULLS
    for name in (TOMBSTONES, PROGRESS):
        if name in options:
            check_property(name, options[name])
    tombstones = Tombstones(options.get(TOMBSTONES, default).lower())
    match format_:
        case RowFormat.DELIMITED | RowFormat.ARROW:
            return Delimited(tombstones)
        case RowFormat.ARRAY:
            return Arrayed(tombstones)
        case RowFormat.STREAMED:
            return Streamed()
