"""The parts that the SQL of a reading query is put together from."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.runtime.expressions.casts import cast
from holdfast.runtime.expressions.physical import Dialect
from holdfast.types import Column, SqlType


@dataclass(frozen=True, slots=True)
class Block:
    """A whole SELECT, whose columns are called `r0`, `r1`, …"""

    sql: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class CommonBlock:
    """A query of a WITH clause: the name that the SQL has for it, and its columns."""

    place: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Sort:
    """A text to sort by."""

    text: str
    descending: bool
    nulls_first: bool

    def __str__(self) -> str:
        order, nulls = "DESC" if self.descending else "ASC", "FIRST" if self.nulls_first else "LAST"
        return f"{self.text} {order} NULLS {nulls}"


def tail(order: Sequence[Sort], limit: int | None, offset: int | None) -> str:
    """ORDER BY, LIMIT and OFFSET, as far as they are wanted."""
    text = f" ORDER BY {', '.join(map(str, order))}" if order else ""
    text += f" LIMIT {limit}" if limit is not None else ""
    return text + (f" OFFSET {offset}" if offset else "")


def cast_columns(block: Block, types: Sequence[SqlType], dialect: Dialect, place: str) -> str:
    """The block with its columns in other types."""
    items = []
    for i, (column, type_) in enumerate(zip(block.columns, types, strict=True)):
        name = f"{place}.r{i}"
        text = name if column.type == type_ else f"({cast(name, column.type, type_, dialect)})"
        items.append(f"{text} AS r{i}")
    return f"SELECT {', '.join(items)} FROM ({block.sql}) AS {place}"


def listed(count: int, place: str) -> str:
    return ", ".join(f"{place}.r{i}" for i in range(count))
