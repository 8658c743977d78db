"""What a builder passes to the next one: a SELECT with columns named by position, and their SQL names.

The start and the end of the window of a windowed key are the last two of its `k0..`.
A stream's SELECT gives `k0..`, `c0..`, `present` (false for a record without a value), `ts`, `part`, `off`, `bad`,
and `hdr`, the record's headers, as long as each row comes from one record.
A table's SELECT gives a delta: `k0..`, then `b_present, b0.., b_ts` and `a_present, a0.., a_ts`, the row of a key
before and after the tick.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from holdfast.runtime import physical_columns as col
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.fragment import (
    BAD,
    HDR,
    OFF,
    PART,
    PRESENT,
    TS,
    Fragment,
    FragmentColumn,
    column,
    key_columns,
    value_columns,
)
from holdfast.runtime.physical_columns import Side
from holdfast.runtime.plan.windows import WindowInfo
from holdfast.types import Column, Scalar, SqlType

REST = (col.PRESENT, col.ROW_TIME, col.PARTITION, col.OFFSET, col.BAD)
"""The columns of a stream's row besides its key and value; followed by `hdr` if it has headers."""


WINDOW_TYPES = (Scalar.BIGINT, Scalar.BIGINT)


@dataclass(frozen=True, slots=True)
class StreamRelation:
    """Rows of a stream. When `ordered`, they also have `at`, the greatest timestamp so far in their partition."""

    sql: str
    key: tuple[Column, ...]
    value: tuple[Column, ...]
    headers: bool = False
    window: WindowInfo | None = None
    ordered: bool = False

    def scope(self) -> Scope:
        return Scope.of(
            [
                *key_scope(self.key, self.value),
                *(window_scope(len(self.key), self.value) if self.window is not None else ()),
                *(ScopeColumn(c.name, c.type, col.value(i)) for i, c in enumerate(self.value)),
                *pseudo_scope(self.key + self.value, stream=True),
            ]
        )

    def over(self, view: str) -> "StreamRelation":
        """The same rows, read from the view in which a stage saved them."""
        return replace(self, sql=f"SELECT *, 0 AS bad FROM {view}")

    @property
    def rest(self) -> tuple[str, ...]:
        """The columns besides the key and value."""
        return (*self.rest_without_headers, col.HEADERS) if self.headers else self.rest_without_headers

    @property
    def rest_without_headers(self) -> tuple[str, ...]:
        """The columns besides the key and value, without `hdr`."""
        return (*REST, "at") if self.ordered else REST

    @property
    def partition(self) -> str:
        """The first sort key of rows, before the offset. When `ordered`, rows at a lower time come first."""
        return "struct(at, part)" if self.ordered else "part"

    @property
    def key_types(self) -> tuple[SqlType, ...]:
        return physical_key(self.key, self.window)

    @property
    def keys(self) -> list[str]:
        return col.keys(len(self.key_types))

    @property
    def values(self) -> list[str]:
        return col.values(len(self.value))


@dataclass(frozen=True, slots=True)
class TableRelation:
    """Changes of a table's keys."""

    sql: str
    key: tuple[Column, ...]
    value: tuple[Column, ...]
    window: WindowInfo | None = None

    def scope(self, side: Side) -> Scope:
        prefix = side.value
        return Scope.of(
            [
                *key_scope(self.key, self.value),
                *(window_scope(len(self.key), self.value) if self.window is not None else ()),
                *(ScopeColumn(c.name, c.type, side.column(i)) for i, c in enumerate(self.value)),
                *pseudo_scope(self.key + self.value, prefix=f"{prefix}_"),
            ]
        )

    @property
    def key_types(self) -> tuple[SqlType, ...]:
        return physical_key(self.key, self.window)

    @property
    def keys(self) -> list[str]:
        return col.keys(len(self.key_types))


Relation = StreamRelation | TableRelation


def physical_key(key: Iterable[Column], window: WindowInfo | None) -> tuple[SqlType, ...]:
    """The types of a key's columns, with those of its window."""
    types = tuple(c.type for c in key)
    return types if window is None else (*types, *WINDOW_TYPES)


def ordered_by_time(source: StreamRelation) -> StreamRelation:
    """Order rows across partitions, as those of a key can be in several; each partition keeps its own order."""
    so_far = "max(IF(bad = 0, ts, NULL)) OVER (PARTITION BY part ORDER BY off ROWS UNBOUNDED PRECEDING)"
    return replace(source, sql=f"SELECT *, {so_far} AS at FROM ({source.sql})", ordered=True)


def saved_stream(source: StreamRelation) -> Fragment:
    """The rows of a stream, to be saved."""
    columns = key_columns(source.key_types)
    columns += value_columns(c.type for c in source.value)
    columns += [PRESENT, TS, PART, OFF, BAD, *([HDR] if source.headers else ())]
    return Fragment(source.sql, tuple(columns), reports_skips=True)


def saved_table(source: TableRelation) -> Fragment:
    """The changes of a table, to be saved."""
    columns = key_columns(source.key_types)
    for side in Side:
        columns.append(FragmentColumn(side.present, PRESENT.spark, PRESENT.arrow))
        columns += [column(side.column(i), c.type) for i, c in enumerate(source.value)]
        columns.append(column(side.row_time, Scalar.BIGINT))
    return Fragment(source.sql, tuple(columns))


def key_scope(key: Iterable[Column], value: Iterable[Column]) -> list[ScopeColumn]:
    """The key columns, except those that a value column hides: before an aggregation, plans have some as both."""
    taken = {c.name for c in value}
    return [ScopeColumn(c.name, c.type, col.key(i)) for i, c in enumerate(key) if c.name not in taken]


def window_scope(first: int, value: Iterable[Column]) -> list[ScopeColumn]:
    """WINDOWSTART and WINDOWEND, the key columns from number `first` on."""
    taken = {c.name for c in value}
    named = [
        ScopeColumn(name, Scalar.BIGINT, col.key(first + i)) for i, name in enumerate(("WINDOWSTART", "WINDOWEND"))
    ]
    return [c for c in named if c.name not in taken]


def pseudo_scope(columns: Iterable[Column], *, stream: bool = False, prefix: str = "") -> list[ScopeColumn]:
    """ROWTIME, ROWPARTITION and ROWOFFSET, unless a column has the name: old plans project ROWTIME as a column."""
    if stream:
        # NULL for a record without a value: in ksqlDB they are part of the value.
        named = [
            ScopeColumn("ROWTIME", Scalar.BIGINT, "IF(present, ts, NULL)"),
            ScopeColumn("ROWPARTITION", Scalar.INTEGER, "IF(present, part, NULL)"),
            ScopeColumn("ROWOFFSET", Scalar.BIGINT, "IF(present, off, NULL)"),
        ]
    else:
        named = [
            ScopeColumn("ROWTIME", Scalar.BIGINT, f"{prefix}ts"),
            ScopeColumn("ROWPARTITION", Scalar.INTEGER, "CAST(NULL AS INT)"),
            ScopeColumn("ROWOFFSET", Scalar.BIGINT, "CAST(NULL AS BIGINT)"),
        ]
    taken = {c.name for c in columns}
    return [c for c in named if c.name not in taken]
