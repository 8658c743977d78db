"""Rows to JSON, as SQL of the store's engine."""

from collections.abc import Sequence
from json import dumps

from holdfast.runtime.expressions.physical import Dialect, field_name, string_literal
from holdfast.runtime.serdes.side import RecordSide
from holdfast.types import Array, Decimal, Map, Scalar, SqlType, Struct


def json_sql(side: RecordSide) -> str:
    """The JSON text of a row; NULL for an unwrapped value that is NULL."""
    if side.unwrapped:
        return value_sql(side.physical[0], side.columns[0].type)
    return object_sql(
        [(column.name, name, column.type) for column, name in zip(side.columns, side.physical, strict=True)]
    )


def object_sql(members: Sequence[tuple[str, str, SqlType]], depth: int = 0) -> str:
    """An object of named values."""
    parts = []
    for position, (name, value, type_) in enumerate(members):
        comma = "," if position else ""
        label = string_literal(f"{comma}{dumps(name, ensure_ascii=False)}:", Dialect.DUCKDB)
        parts.append(f"{label} || {_or_null(value_sql(value, type_, depth))}")
    return "'{' || " + " || ".join([*parts, "'}'"])


def value_sql(value: str, type_: SqlType, depth: int = 0) -> str:
    """The text of one value; NULL for NULL."""
    match type_:
        case Scalar.BOOLEAN | Scalar.INTEGER | Scalar.BIGINT | Scalar.TIME | Decimal():
            return f"CAST({value} AS VARCHAR)"
        case Scalar.DOUBLE:
            other = f"CASE WHEN isnan({value}) THEN 'NaN' WHEN {value} > 0 THEN 'Infinity' ELSE '-Infinity' END"
            quoted = f"'\"' || {other} || '\"'"
            return (
                f"CASE WHEN isfinite({value}) THEN CAST({value} AS VARCHAR) WHEN {value} IS NOT NULL THEN {quoted} END"
            )
        case Scalar.STRING:
            return f"CAST(to_json({value}) AS VARCHAR)"
        case Scalar.BYTES:
            return f"'\"' || to_base64({value}) || '\"'"
        case Scalar.DATE:
            return f"CAST({value} - DATE '1970-01-01' AS VARCHAR)"
        case Scalar.TIMESTAMP:
            return f"CAST(epoch_ms({value}) AS VARCHAR)"
        case Array(element):
            item = f"x{depth}"
            return _joined(value, item, _or_null(value_sql(item, element, depth + 1)), "[", "]")
        case Map(key, item_type):
            entry = f"x{depth}"
            label = f"{value_sql(f'{entry}.key', key, depth + 1)} || ':'"
            item = _or_null(value_sql(f"{entry}.value", item_type, depth + 1))
            return _joined(f"map_entries({value})", entry, f"{label} || {item}", "{", "}")
        case Struct(fields):
            members = [(f.name, f"({value}).{field_name(i)}", f.type) for i, f in enumerate(fields)]
            return f"CASE WHEN {value} IS NOT NULL THEN {object_sql(members, depth)} END"


def _joined(items: str, name: str, text: str, first: str, last: str) -> str:
    return f"'{first}' || array_to_string(list_transform({items}, lambda {name}: {text}), ',') || '{last}'"


def _or_null(text: str) -> str:
    return f"coalesce({text}, 'null')"
