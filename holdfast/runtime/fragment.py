"""Fragments of a Spark job, and the one query that runs many of them.

Fragments have different columns; as branches of one UNION ALL their columns share slots by type, so that thirty
queries are about as wide as the widest of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime import physical_columns as col
from holdfast.runtime.expressions.physical import arrow_type, spark_type
from holdfast.types import HEADERS, SqlType


@dataclass(frozen=True, slots=True)
class FragmentColumn:
    """A column of a fragment's result: its name and its Spark and Arrow types."""

    name: str
    spark: str
    arrow: pa.DataType


TS = FragmentColumn(col.ROW_TIME, "BIGINT", pa.int64())
PRESENT = FragmentColumn(col.PRESENT, "BOOLEAN", pa.bool_())
PART = FragmentColumn(col.PARTITION, "INT", pa.int32())
OFF = FragmentColumn(col.OFFSET, "BIGINT", pa.int64())
BAD = FragmentColumn(col.BAD, "INT", pa.int32())
LATE = FragmentColumn(col.LATE, "BIGINT", pa.int64())
"""The number of late rows; the tick counts them and drops the column."""
SKIPPED = FragmentColumn(col.SKIPPED, "BIGINT", pa.int64())
"""The number of rows that a bad row represents; the tick drops the column."""
HDR = FragmentColumn(col.HEADERS, spark_type(HEADERS), arrow_type(HEADERS))


def column(name: str, type_: SqlType) -> FragmentColumn:
    return FragmentColumn(name, spark_type(type_), arrow_type(type_))


def key_columns(types: Iterable[SqlType]) -> list[FragmentColumn]:
    return [column(col.key(i), type_) for i, type_ in enumerate(types)]


def value_columns(types: Iterable[SqlType]) -> list[FragmentColumn]:
    return [column(col.value(i), type_) for i, type_ in enumerate(types)]


def partial_columns(types: Iterable[SqlType]) -> list[FragmentColumn]:
    return [column(col.partial(i), type_) for i, type_ in enumerate(types)]


@dataclass(frozen=True, slots=True)
class Fragment:
    """A SELECT over views with the result columns `columns`.

    With `reports_skips`, skipped rows are reported to the user; a result row counts as one, or as the number in its
    column `skipped`. `late_by` names the columns with the partition, if known, and the stream time of late rows.
    """

    sql: str
    columns: tuple[FragmentColumn, ...]
    reports_skips: bool = False
    late_by: tuple[str | None, str] = (None, col.ROW_TIME)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(column.name, column.arrow) for column in self.columns])

    @property
    def good(self) -> "Fragment":
        """The fragment without the columns that the tick drops: `bad`, `late` and `skipped`."""
        return Fragment(self.sql, tuple(column for column in self.columns if column not in (BAD, LATE, SKIPPED)))


@dataclass(frozen=True, slots=True)
class Union:
    """Fragments as one SELECT: `tag`, then the slots."""

    sql: str
    fragments: tuple[Fragment, ...]
    slots: tuple[Mapping[str, str], ...]

    def split(self, result: pa.Table) -> list[pa.Table]:
        """The rows of each fragment, under its own column names and types."""
        if len(self.fragments) == 1:
            return [self._rows_of(0, result)]
        tags = result.column("tag")
        return [self._rows_of(i, result.filter(pc.equal(tags, i))) for i in range(len(self.fragments))]

    def _rows_of(self, index: int, rows: pa.Table) -> pa.Table:
        fragment, slots = self.fragments[index], self.slots[index]
        arrays = [rows.column(slots[column.name]).cast(column.arrow) for column in fragment.columns]
        return pa.Table.from_arrays(arrays, schema=fragment.schema)


def union(fragments: Sequence[Fragment]) -> Union:
    """Combine fragments into one SELECT."""
    assigned = [_assign(fragment) for fragment in fragments]
    types: dict[str, str] = {}
    for fragment, slots in zip(fragments, assigned, strict=True):
        for column in fragment.columns:
            types.setdefault(slots[column.name], column.spark)
    branches = []
    for tag, (fragment, slots) in enumerate(zip(fragments, assigned, strict=True)):
        by_slot = {slot: name for name, slot in slots.items()}
        chosen = [
            f"{by_slot[slot]} AS {slot}" if slot in by_slot else f"CAST(NULL AS {type_}) AS {slot}"
            for slot, type_ in types.items()
        ]
        branches.append(f"SELECT {tag} AS tag, {', '.join(chosen)} FROM ({fragment.sql})")
    return Union(" UNION ALL ".join(branches), tuple(fragments), tuple(assigned))


def _assign(fragment: Fragment) -> dict[str, str]:
    used: dict[str, int] = {}
    slots = {}
    for column in fragment.columns:
        kind = "".join(c if c.isalnum() else "_" for c in column.spark.lower())
        number = used.get(kind, 0)
        used[kind] = number + 1
        slots[column.name] = f"s_{kind}_{number}"
    return slots
