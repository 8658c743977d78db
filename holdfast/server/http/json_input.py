"""Reads JSON objects sent by a client as rows of a stream or a table.

Column names match as in SQL: case-insensitively, unless back-quoted. A value has the form in which the server sends
values of its type (`holdfast.serving.json_values`). An integer is accepted for any numeric type; a number with a
fraction only for a DOUBLE, or for a DECIMAL with enough scale for its digits.
"""

import json
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal as Number
from decimal import InvalidOperation
from typing import Any

import orjson
import pyarrow as pa

from holdfast.catalog.objects import CatalogObject, MaterializedView, Table
from holdfast.errors import BindError, NotSupported, TypeMismatch, UnknownColumn
from holdfast.runtime.expressions.physical import arrow_type, field_name
from holdfast.sql.bind.insert import materialized
from holdfast.types import Array, Column, Decimal, Map, Role, Scalar, SqlType, Struct

ROWTIME = Column("ROWTIME", Scalar.BIGINT)
INTEGER_LIMITS = {Scalar.INTEGER: 1 << 31, Scalar.BIGINT: 1 << 63}
NON_FINITE = {"NaN", "Infinity", "-Infinity"}

Row = dict[str, Any]
"""The values of a row by column name."""


class ValueMismatch(Exception):
    """A value does not fit its type."""


class JsonRowReader:
    """Reads rows for one stream or table."""

    def __init__(self, target: CatalogObject) -> None:
        if target.read_only:
            raise BindError(f'{target.KIND} "{target.name}" is read only', detail="It was created as a SOURCE.")
        if isinstance(target, MaterializedView):
            raise materialized(target)
        self.target = target
        self._columns = {column.name: column for column in (*target.schema.columns, ROWTIME)}
        self._folded: dict[str, Column | None] = {}
        for column in self._columns.values():
            # Names that differ only in case must be quoted.
            folded = column.name.upper()
            self._folded[folded] = None if folded in self._folded else column
        self._exact = any(_has_decimal(column.type) for column in target.schema.columns)

    def read(self, line: bytes) -> Row:
        """Read one line; raises an error if it does not match the columns."""
        try:
            loaded = (
                json.loads(line, parse_float=Number, parse_constant=_reject_constant)
                if self._exact
                else orjson.loads(line)
            )
        except (ValueError, RecursionError) as cause:
            raise BindError(f"a row is not JSON: {cause}") from None
        if not isinstance(loaded, dict):
            raise BindError("a row is not a JSON object")
        row: Row = {}
        for name, value in loaded.items():
            column = self._column(name)
            if column.name in row:
                raise BindError(f'column "{column.name}" occurs twice')
            row[column.name] = self._value(column, value)
        if isinstance(self.target, Table):
            for key in self.target.schema.key:
                if row.get(key.name) is None:
                    raise BindError(f'the primary key "{key.name}" of table "{self.target.name}" needs a value')
        return row

    def table(self, rows: Sequence[Row], now_ms: int) -> pa.Table:
        """The rows in the form that the service expects: `present, k0.., c0.., ts`."""
        values: dict[str, pa.Array] = {"present": pa.repeat(pa.scalar(True), len(rows))}
        schema = self.target.schema
        for prefix, columns in (("k", schema.key), ("c", schema.value)):
            for i, column in enumerate(columns):
                column_values = [row.get(column.name) for row in rows]
                values[f"{prefix}{i}"] = pa.array(column_values, arrow_type(column.type))
        times = [row.get(ROWTIME.name) for row in rows]
        values["ts"] = pa.array([now_ms if time is None else time for time in times], pa.int64())
        return pa.table(values)

    def _column(self, name: str) -> Column:
        if len(name) > 2 and name[0] == name[-1] == "`":
            found = self._columns.get(name[1:-1].replace("``", "`"))
        else:
            found = self._folded.get(name.upper()) or self._columns.get(name)
        if found is None:
            raise UnknownColumn(name, relation=self.target.name, known=[c.name for c in self.target.schema.columns])
        if found.role is Role.HEADERS:
            raise NotSupported("HEADERS columns cannot be written")
        return found

    def _value(self, column: Column, value: Any) -> Any:
        try:
            return None if value is None else arrow_value(value, column.type)
        except ValueMismatch:
            shown = json.dumps(value, default=str, ensure_ascii=False)
            raise TypeMismatch(f'column "{column.name}" is {column.type} and cannot take {shown[:200]}') from None


def arrow_value(value: Any, type_: SqlType) -> Any:
    """A non-null JSON value as an Arrow value of the type; raises `ValueMismatch`."""
    match type_:
        case Scalar():
            return READERS[type_](value)
        case Decimal(precision, scale):
            return _decimal(value, precision, scale)
        case Array(element):
            return [None if part is None else arrow_value(part, element) for part in _instance(value, list)]
        case Map(key, inner):
            entries = _instance(value, dict).items()
            return [(_key(name, key), None if part is None else arrow_value(part, inner)) for name, part in entries]
        case Struct(fields):
            return _struct(_instance(value, dict), [(field.name, field.type) for field in fields])


def _struct(value: Mapping[str, Any], fields: Sequence[tuple[str, SqlType]]) -> dict[str, Any]:
    folded = {name.strip("`") if name.startswith("`") else name.upper(): part for name, part in value.items()}
    found: dict[str, Any] = {}
    for i, (name, type_) in enumerate(fields):
        part = folded.pop(name, folded.pop(name.upper(), None))
        found[field_name(i)] = None if part is None else arrow_value(part, type_)
    if folded:
        raise ValueMismatch
    return found


def _instance(value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueMismatch
    return value


def _integer(limit: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        number: int = _instance(value, int)
        if not -limit <= number < limit:
            raise ValueMismatch
        return number

    return read


def _double(value: Any) -> float:
    if isinstance(value, str) and value in NON_FINITE:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Number):
        raise ValueMismatch
    try:
        return float(value)
    except OverflowError:
        raise ValueMismatch from None


def _decimal(value: Any, precision: int, scale: int) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | float | Number | str):
        raise ValueMismatch
    try:
        number = Number(str(value))
        if not number.is_finite() or number != round(number, scale) or abs(number) >= Number(10) ** (precision - scale):
            raise ValueMismatch
        return round(number, scale)
    except InvalidOperation:
        raise ValueMismatch from None


def _parsed(parse: Callable[[str], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        try:
            return parse(_instance(value, str))
        except (ValueError, NotBase64):
            raise ValueMismatch from None

    return read


def _milliseconds(text: str) -> int:
    parsed = time.fromisoformat(text)
    return ((parsed.hour * 60 + parsed.minute) * 60 + parsed.second) * 1000 + parsed.microsecond // 1000


def _timestamp(text: str) -> datetime:
    parsed = datetime.fromisoformat(text)
    return (parsed - parsed.utcoffset()).replace(tzinfo=None) if parsed.tzinfo else parsed  # type: ignore[operator]


def _key(text: str, type_: SqlType) -> Any:
    """A map's key: in JSON, all keys are strings."""
    match type_:
        case Scalar.STRING:
            return text
        case Scalar.BOOLEAN if text in ("true", "false"):
            return text == "true"
        case Scalar.INTEGER | Scalar.BIGINT | Scalar.DOUBLE:
            try:
                return arrow_value(json.loads(text), type_)
            except ValueError:
                raise ValueMismatch from None
        case _:
            return arrow_value(text, type_)


READERS: Mapping[Scalar, Callable[[Any], Any]] = {
    Scalar.BOOLEAN: lambda value: _instance(value, bool),
    **{type_: _integer(limit) for type_, limit in INTEGER_LIMITS.items()},
    Scalar.DOUBLE: _double,
    Scalar.STRING: lambda value: _instance(value, str),
    Scalar.BYTES: _parsed(lambda text: b64decode(text, validate=True)),
    Scalar.DATE: _parsed(date.fromisoformat),
    Scalar.TIME: _parsed(_milliseconds),
    Scalar.TIMESTAMP: _parsed(_timestamp),
}


def _has_decimal(type_: SqlType) -> bool:
    match type_:
        case Decimal():
            return True
        case Array(element):
            return _has_decimal(element)
        case Map(key, value):
            return _has_decimal(key) or _has_decimal(value)
        case Struct(fields):
            return any(_has_decimal(field.type) for field in fields)
        case _:
            return False


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
