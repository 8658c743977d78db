"""A few rows as JSON text, and the SQL that reads it: every value arrives as it is, at any depth.

Leaves are texts or whole numbers. A MAP is an array of objects with `k` and `v`, since its keys may be of any type.
"""

from base64 import b64encode

import orjson
import pyarrow as pa
import pyarrow.compute as pc


def rows_json(rows: pa.Table) -> str:
    """Rows as arrays of values, as `rows_sql` reads them."""
    columns = [
        [value for chunk in rows.column(name).chunks for value in _plain(chunk).to_pylist()]
        for name in rows.column_names
    ]
    return orjson.dumps(list(zip(*columns, strict=True))).decode()


def rows_sql(schema: pa.Schema, text: str) -> str:
    """The SELECT of the rows that a text has, in one partition."""
    columns = ", ".join(f"{_column(f'r[{i}]', field.type)} AS {field.name}" for i, field in enumerate(schema))
    rows = f"SELECT explode(from_json({text}, 'array<array<string>>')) AS r FROM range(0, 1, 1, 1)"
    return f"SELECT {columns} FROM ({rows})"


# ---- to text


def _plain(array: pa.Array) -> pa.Array:
    """The array with leaves that JSON can hold."""
    type_ = array.type
    if pa.types.is_map(type_):
        entries = pa.StructArray.from_arrays([_plain(array.keys), _plain(array.items)], ["k", "v"])
        return _list(array, entries)
    if pa.types.is_list(type_):
        return _list(array, _plain(array.values))
    if pa.types.is_struct(type_):
        names = [field.name for field in type_]
        return pa.StructArray.from_arrays([_plain(part) for part in array.flatten()], names, mask=array.is_null())
    if pa.types.is_binary(type_):
        return pa.array([None if v is None else b64encode(v).decode() for v in array.to_pylist()], pa.string())
    if pa.types.is_timestamp(type_):
        return array.cast(pa.timestamp("us")).cast(pa.int64())
    if pa.types.is_date32(type_):
        return array.cast(pa.int32())
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return pc.cast(array, pa.string())
    return array


def _list(array: pa.Array, values: pa.Array) -> pa.Array:
    """A list over the same places; where the array is null, one that is null."""
    lists = pa.ListArray.from_arrays(array.offsets, values)
    return pc.if_else(array.is_valid(), lists, pa.scalar(None, lists.type))


# ---- from text


def _column(text: str, type_: pa.DataType) -> str:
    return _typed(f"from_json({text}, '{_texts(type_)}')" if pa.types.is_nested(type_) else text, type_)


def _texts(type_: pa.DataType) -> str:
    """The Spark type of a nested value whose leaves are texts."""
    if pa.types.is_map(type_):
        return f"array<struct<k:{_texts(type_.key_type)},v:{_texts(type_.item_type)}>>"
    if pa.types.is_list(type_):
        return f"array<{_texts(type_.value_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{','.join(f'{field.name}:{_texts(field.type)}' for field in type_)}>"
    return "string"


def _typed(value: str, type_: pa.DataType, depth: int = 0) -> str:
    item = f"x{depth}"
    if pa.types.is_map(type_):
        key, own = (_typed(f"{item}.{n}", t, depth + 1) for n, t in (("k", type_.key_type), ("v", type_.item_type)))
        return f"map_from_entries(transform({value}, {item} -> struct({key}, {own})))"
    if pa.types.is_list(type_):
        return f"transform({value}, {item} -> {_typed(item, type_.value_type, depth + 1)})"
    if pa.types.is_struct(type_):
        parts = ", ".join(f"'{field.name}', {_typed(f'{item}.{field.name}', field.type, depth + 1)}" for field in type_)
        # Over an array of one, the value is computed once for all fields.
        return f"transform(array({value}), {item} -> IF({item} IS NULL, NULL, named_struct({parts})))[0]"
    return _leaf(value, type_)


def _leaf(text: str, type_: pa.DataType) -> str:
    if pa.types.is_string(type_):
        return text
    if pa.types.is_binary(type_):
        return f"unbase64({text})"
    if pa.types.is_timestamp(type_):
        return f"CAST(timestamp_micros(CAST({text} AS BIGINT)) AS TIMESTAMP_NTZ)"
    if pa.types.is_date32(type_):
        return f"date_from_unix_date(CAST({text} AS INT))"
    if pa.types.is_decimal(type_):
        return f"CAST({text} AS DECIMAL({type_.precision},{type_.scale}))"
    return f"CAST({text} AS {_NAMES[type_]})"


_NAMES = {pa.bool_(): "BOOLEAN", pa.int32(): "INT", pa.int64(): "BIGINT", pa.float64(): "DOUBLE"}
