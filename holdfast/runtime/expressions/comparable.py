"""Comparable forms of values with MAPs, for which Spark has neither order nor equality."""

from holdfast.runtime.expressions.physical import field_name
from holdfast.types import Array, Map, SqlType, Struct


def has_map(type_: SqlType) -> bool:
    match type_:
        case Map():
            return True
        case Array(element):
            return has_map(element)
        case Struct(fields):
            return any(has_map(field.type) for field in fields)
        case _:
            return False


def comparable(sql: str, type_: SqlType, depth: int = 0) -> str:
    """Spark SQL that is equal for equal values: a map becomes its entries, sorted by key."""
    if not has_map(type_):
        return sql
    name = f"m{depth}_"
    match type_:
        case Map(_, value):
            inner = comparable(f"{name}.value", value, depth + 1)
            entry = f"named_struct('k', {name}.key, 'v', {inner})"
            return f"transform(array_sort(map_entries({sql}), {_by_key(depth)}), {name} -> {entry})"
        case Array(element):
            return f"transform({sql}, {name} -> {comparable(name, element, depth + 1)})"
        case Struct(fields):
            parts = (
                f"'{field_name(i)}', {comparable(f'({sql}).{field_name(i)}', field.type, depth + 1)}"
                for i, field in enumerate(fields)
            )
            return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({', '.join(parts)}) END"
        case _:
            raise AssertionError(type_)


def sorted_maps(sql: str, type_: SqlType, depth: int = 0) -> str:
    """Spark SQL of the same value, with the entries of all maps sorted by key."""
    if not has_map(type_):
        return sql
    name = f"m{depth}_"
    match type_:
        case Map(_, value):
            entry = f"struct({name}.key, {sorted_maps(f'{name}.value', value, depth + 1)})"
            return f"map_from_entries(transform(array_sort(map_entries({sql}), {_by_key(depth)}), {name} -> {entry}))"
        case Array(element):
            return f"transform({sql}, {name} -> {sorted_maps(name, element, depth + 1)})"
        case Struct(fields):
            parts = (
                f"'{field_name(i)}', {sorted_maps(f'({sql}).{field_name(i)}', field.type, depth + 1)}"
                for i, field in enumerate(fields)
            )
            return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({', '.join(parts)}) END"
        case _:
            raise AssertionError(type_)


def _by_key(depth: int) -> str:
    a, b = f"a{depth}_", f"b{depth}_"
    return f"({a}, {b}) -> CASE WHEN {a}.key < {b}.key THEN -1 WHEN {a}.key > {b}.key THEN 1 ELSE 0 END"
