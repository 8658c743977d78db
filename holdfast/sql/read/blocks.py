"""The parts of a pull query's SQL."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.runtime.expressions.casts import cast
from holdfast.runtime.expressions.physical import Dialect
from holdfast.types import Column, SqlType


@dataclass(frozen=True, slots=True)
class Block:
    """A complete SELECT, whose columns are named `r0`, `r1`, …"""

    sql: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class CommonBlock:
    """A query of a WITH clause: its name in the generated SQL, and its columns."""

    alias: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Sort:
    """A sort key of ORDER BY."""

    text: str
    descending: bool
    nulls_first: bool

    def __str__(self) -> str:
        order, nulls = "DESC" if self.descending else "ASC", "FIRST" if self.nulls_first else "LAST"
        return f"{self.text} {order} NULLS {nulls}"


def tail(order: Sequence[Sort], limit: int | None, offset: int | None) -> str:
    """The ORDER BY, LIMIT and OFFSET clauses that apply."""
    text = f" ORDER BY {', '.join(map(str, order))}" if order else ""
    text += f" LIMIT {limit}" if limit is not None else ""
    return text + (f" OFFSET {offset}" if offset else "")


def cast_columns(block: Block, types: Sequence[SqlType], dialect: Dialect, alias: str) -> str:
    """The block with its columns cast to other types."""
    items = []
    for i, (column, type_) in enumerate(zip(block.columns, types, strict=True)):
        name = f"{alias}.r{i}"
        text = name if column.type == type_ else f"({cast(name, column.type, type_, dialect)})"
        items.append(f"{text} AS r{i}")
    return f"SELECT {', '.join(items)} FROM ({block.sql}) AS {alias}"


def output_columns(count: int, alias: str) -> str:
    return ", ".join(f"{alias}.r{i}" for i in range(count))
