"""Arrow at the border of a store: the schemas of `port`, and the cast to them."""

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from holdfast.errors import StoreError
from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.store.port import Layout
from holdfast.types import Scalar, SqlType

PLAIN_KEYS = (Scalar.INTEGER, Scalar.BIGINT, Scalar.STRING)


def is_plain_key(layout: Layout) -> bool:
    """True when the one key column is its own encoding; it must not be null then."""
    return len(layout.key) == 1 and layout.key[0] in PLAIN_KEYS


def extends(layout: Layout, other: Layout) -> bool:
    """True when a layout is another one with further value columns, or none; it may also be the first with groups."""
    same_groups = (other.group, other.ordered) in ((0, None), (layout.group, layout.ordered))
    return layout.key == other.key and same_groups and layout.value[: len(other.value)] == other.value


def names(prefix: str, types: Sequence[SqlType]) -> list[str]:
    return [f"{prefix}{i}" for i in range(len(types))]


def _fields(prefix: str, types: Sequence[SqlType]) -> list[pa.Field]:
    return [pa.field(name, arrow_type(type_)) for name, type_ in zip(names(prefix, types), types, strict=True)]


_TS = pa.field("ts", pa.int64())
_PRESENT = pa.field("present", pa.bool_())


@lru_cache(maxsize=1024)
def key_schema(layout: Layout) -> pa.Schema:
    return pa.schema(_fields("k", layout.key))


@lru_cache(maxsize=1024)
def group_layout(layout: Layout) -> Layout:
    """The layout of a grouped collection's or state's groups alone."""
    return Layout(layout.key[: layout.group], ())


@lru_cache(maxsize=1024)
def part_layout(layout: Layout) -> Layout:
    """The layout of what a grouped collection arranges: without the columns of the group."""
    return Layout(layout.key[layout.group :], layout.value)


def part_rows(rows: pa.Table, layout: Layout) -> pa.Table:
    """Rows of a grouped collection without the columns of the group."""
    schema = rows_schema(part_layout(layout))
    return rows.select(range(layout.group, rows.num_columns)).rename_columns(schema.names)


def span_schema(layout: Layout, spans: pa.Table) -> pa.Schema:
    """Spans of time over those columns of a state that they have."""
    chosen = [field for field in list(rows_schema(layout))[:-1] if field.name in spans.column_names]
    return pa.schema([*chosen, pa.field("after", pa.int64()), pa.field("upto", pa.int64())])


@lru_cache(maxsize=1024)
def rows_schema(layout: Layout, *, value: str = "c") -> pa.Schema:
    return pa.schema([*_fields("k", layout.key), *_fields(value, layout.value), _TS])


@lru_cache(maxsize=1024)
def expired_schema(layout: Layout) -> pa.Schema:
    return pa.schema([*key_schema(layout), _TS])


@lru_cache(maxsize=1024)
def upsert_schema(layout: Layout) -> pa.Schema:
    return pa.schema([*rows_schema(layout), _PRESENT])


@lru_cache(maxsize=1024)
def outbox_schema(layout: Layout) -> pa.Schema:
    return pa.schema([_PRESENT, *rows_schema(layout)])


@lru_cache(maxsize=1024)
def delta_schema(layout: Layout) -> pa.Schema:
    fields = _fields("k", layout.key)
    for side in "ba":
        present, ts = pa.field(f"{side}_present", pa.bool_()), pa.field(f"{side}_ts", pa.int64())
        fields += [present, *_fields(side, layout.value), ts]
    return pa.schema(fields)


@lru_cache(maxsize=1024)
def changes_schema(layout: Layout) -> pa.Schema:
    return pa.schema([pa.field("time", pa.uint64()), *delta_schema(layout)])


def fit(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with exactly the schema's columns, cast; refused when one is missing or does not fit."""
    if table.schema.equals(schema):
        return table
    there = table.column_names
    missing = [name for name in schema.names if name not in there]
    if missing:
        raise StoreError(f"rows lack the columns {', '.join(missing)}", detail=f"They have {there}.")
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise StoreError("rows do not have the types of their columns", detail=f"{problem}.") from problem
