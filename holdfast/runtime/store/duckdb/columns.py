"""Physical columns: their names, their DuckDB declarations, their Arrow schemas, and the encoded key."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from holdfast.errors import StoreError
from holdfast.runtime.expressions.physical import arrow_type, duckdb_type
from holdfast.runtime.store.port import Layout
from holdfast.types import Scalar, SqlType, is_scalar

PLAIN_KEYS = (Scalar.INTEGER, Scalar.BIGINT, Scalar.STRING)

# DuckDB would run-length encode these where it saves space, and must then walk the runs of a row group to
# change one row: 1,000 random updates took 300 ms instead of 15.
_RUN_LENGTH_PRONE = (Scalar.BOOLEAN, Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE, Scalar.TIME, Scalar.DATE)
_UPDATABLE = " USING COMPRESSION uncompressed"


def names(prefix: str, types: Sequence[SqlType]) -> list[str]:
    return [f"{prefix}{i}" for i in range(len(types))]


def listed(*groups: Iterable[str]) -> str:
    return ", ".join(name for group in groups for name in group)


def renamed(table: str, old: Iterable[str], new: Iterable[str]) -> list[str]:
    return [f"{table}.{a} AS {b}" for a, b in zip(old, new, strict=True)]


def declared(prefix: str, types: Sequence[SqlType], *, updatable: bool = False) -> list[str]:
    return [
        f"{name} {duckdb_type(type_)}{_UPDATABLE if updatable and type_ in _RUN_LENGTH_PRONE else ''}"
        for name, type_ in zip(names(prefix, types), types, strict=True)
    ]


def updatable_number(name: str, type_: str) -> str:
    return f"{name} {type_}{_UPDATABLE}"


# -- the encoded key ---------------------------------------------------------------------------------


def key_type(layout: Layout) -> str:
    return duckdb_type(layout.key[0]) if _is_plain(layout) else "VARCHAR"


def key_sql(layout: Layout, expressions: Sequence[str]) -> str:
    """The encoded key of the given key columns: themselves when one plain column, else a JSON array of texts."""
    typed = [f"CAST({e} AS {duckdb_type(t)})" for e, t in zip(expressions, layout.key, strict=True)]
    if _is_plain(layout):
        return typed[0]
    return f"CAST(json_array({', '.join(map(_key_part, typed, layout.key))}) AS VARCHAR)"


def _is_plain(layout: Layout) -> bool:
    return len(layout.key) == 1 and layout.key[0] in PLAIN_KEYS


def _key_part(expression: str, type_: SqlType) -> str:
    if type_ is Scalar.BYTES:
        return f"hex({expression})"
    return f"CAST({expression if is_scalar(type_) else f'to_json({expression})'} AS VARCHAR)"


# -- Arrow -------------------------------------------------------------------------------------------


def _fields(prefix: str, types: Sequence[SqlType]) -> list[pa.Field]:
    return [pa.field(name, arrow_type(type_)) for name, type_ in zip(names(prefix, types), types, strict=True)]


_TS = pa.field("ts", pa.int64())
_PRESENT = pa.field("present", pa.bool_())


def key_schema(layout: Layout) -> pa.Schema:
    return pa.schema(_fields("k", layout.key))


def rows_schema(layout: Layout, *, value: str = "c") -> pa.Schema:
    return pa.schema([*_fields("k", layout.key), *_fields(value, layout.value), _TS])


def upsert_schema(layout: Layout) -> pa.Schema:
    return pa.schema([*rows_schema(layout), _PRESENT])


def outbox_schema(layout: Layout) -> pa.Schema:
    return pa.schema([_PRESENT, *rows_schema(layout)])


def delta_schema(layout: Layout) -> pa.Schema:
    fields = _fields("k", layout.key)
    for side in "ba":
        present, ts = pa.field(f"{side}_present", pa.bool_()), pa.field(f"{side}_ts", pa.int64())
        fields += [present, *_fields(side, layout.value), ts]
    return pa.schema(fields)


def changes_schema(layout: Layout) -> pa.Schema:
    return pa.schema([pa.field("time", pa.uint64()), *delta_schema(layout)])


def fit(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with exactly the schema's columns, cast; refused when one is missing or does not fit."""
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise StoreError(f"rows lack the columns {', '.join(missing)}", detail=f"They have {table.column_names}.")
    if table.schema.equals(schema):
        return table
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise StoreError("rows do not have the types of their columns", detail=f"{problem}.") from problem
