"""Physical columns in DuckDB: declarations, lists of names in SQL, and the encoded key."""

from collections.abc import Iterable, Sequence

from holdfast.runtime.expressions.physical import duckdb_type
from holdfast.runtime.store.port import Layout
from holdfast.runtime.store.schemas import group_layout, is_plain_key, names
from holdfast.types import Scalar, SqlType, Struct, is_scalar

MAX_BIGINT = 2**63 - 1

# For tables whose rows are found and changed one by one. DuckDB run-length encodes numbers, and walks the runs of a row
# group to change one of them: 1,000 random updates took 300 ms instead of 15. It reads the dictionary of a segment to
# know one of its texts: 1,000 random rows took 26 ms instead of 11.
_PLAIN = " USING COMPRESSION uncompressed"


def listed(*groups: Iterable[str]) -> str:
    return ", ".join(name for group in groups for name in group)


def renamed(table: str, old: Iterable[str], new: Iterable[str]) -> list[str]:
    return [f"{table}.{a} AS {b}" for a, b in zip(old, new, strict=True)]


def declared(prefix: str, types: Sequence[SqlType], *, plain: bool = False) -> list[str]:
    """Declarations of columns; `plain` ones are not compressed, as far as DuckDB can."""
    return [
        column(name, duckdb_type(type_), plain=plain and not isinstance(type_, Struct))
        for name, type_ in zip(names(prefix, types), types, strict=True)
    ]


def column(name: str, type_: str, *, plain: bool = False) -> str:
    return f"{name} {type_}{_PLAIN if plain else ''}"


# -- the encoded key ---------------------------------------------------------------------------------


def key_type(layout: Layout) -> str:
    return duckdb_type(layout.key[0]) if is_plain_key(layout) else "VARCHAR"


def key_sql(layout: Layout, expressions: Sequence[str]) -> str:
    """The encoded key of some key columns: themselves when one plain column, else a JSON array of texts."""
    typed = [f"CAST({e} AS {duckdb_type(t)})" for e, t in zip(expressions, layout.key, strict=True)]
    if is_plain_key(layout):
        return typed[0]
    return f"CAST(json_array({', '.join(map(_key_part, typed, layout.key))}) AS VARCHAR)"


ORDERED = "concat(g)"
"""The indexed expression over the groups of an ordered layout: DuckDB uses an index for both bounds of a range only if
they are those of an expression."""


def group_type(layout: Layout) -> str:
    return key_type(group_layout(layout)) if layout.ordered is None else "VARCHAR"


def plain_group_sql(layout: Layout) -> str:
    """The encoded group of a row's key columns."""
    return key_sql(group_layout(layout), names("k", layout.key[: layout.group]))


def group_sql(layout: Layout) -> str:
    """The same; of an ordered layout, with the ordered column as text that sorts as its numbers. It begins with the
    length of the group, so that no text of one group is between those of another."""
    group = plain_group_sql(layout)
    if layout.ordered is None:
        return group
    text = f"CAST({group} AS VARCHAR)"
    number = f"k{layout.ordered}"
    sortable = (
        f"CASE WHEN {number} < 0 THEN '-' || printf('%019d', {number} & {MAX_BIGINT}) "
        f"ELSE printf('%019d', {number}) END"
    )
    return f"length({text}) || ' ' || {text} || ' ' || {sortable}"


def group_range(group: object, first: int | None, last: int | None) -> tuple[str, str]:
    """The least and the greatest text of `group_sql`, for bounds of the ordered column."""
    text = f"{len(str(group))} {group} "
    return text + ("-" if first is None else _sortable(first)), text + ("~" if last is None else _sortable(last))


def _sortable(number: int) -> str:
    return f"-{number + MAX_BIGINT + 1:019d}" if number < 0 else f"{number:019d}"


def _key_part(expression: str, type_: SqlType) -> str:
    if type_ is Scalar.BYTES:
        return f"hex({expression})"
    return f"CAST({expression if is_scalar(type_) else f'to_json({expression})'} AS VARCHAR)"
