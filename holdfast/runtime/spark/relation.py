"""What a builder hands to the next one: a SELECT with columns by position, and the SQL names they go by.

The start and the end of the window of a windowed key are the last two of its `k0..`.
A stream's SELECT gives `k0..`, `c0..`, `present` (false for a record without a value), `ts`, `part`, `off`, `bad`,
and `hdr`, its record's headers, as long as the steps can say which record that is.
A table's gives a delta: `k0..`, then `b_present, b0.., b_ts` and `a_present, a0.., a_ts`, the row of a key before
and after the tick.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.plan.windows import WindowInfo
from holdfast.runtime.spark.fragment import BAD, HDR, OFF, PART, PRESENT, TS, Fragment, FragmentColumn, column
from holdfast.types import Column, Scalar, SqlType

REST = ("present", "ts", "part", "off", "bad")
"""What a row of a stream has beside its key and value; `hdr` behind it, where it carries a record's headers."""


WINDOW_TYPES = (Scalar.BIGINT, Scalar.BIGINT)


class Side(Enum):
    """Which row of a delta an expression reads; the value is the prefix of its columns."""

    BEFORE = "b"
    AFTER = "a"


@dataclass(frozen=True, slots=True)
class StreamRelation:
    """Rows of a stream. When `ordered`, they also have `at`, the time that their partition had reached with them."""

    sql: str
    key: tuple[Column, ...]
    value: tuple[Column, ...]
    headers: bool = False
    window: WindowInfo | None = None
    ordered: bool = False

    def scope(self) -> Scope:
        return Scope.of(
            [
                *key_columns(self.key, self.value),
                *(window_columns(len(self.key), self.value) if self.window is not None else ()),
                *(ScopeColumn(c.name, c.type, f"c{i}") for i, c in enumerate(self.value)),
                *pseudo_columns(self.key + self.value, stream=True),
            ]
        )

    def over(self, view: str) -> "StreamRelation":
        """The same rows, which a stage has held."""
        return replace(self, sql=f"SELECT *, 0 AS bad FROM {view}")

    @property
    def rest(self) -> tuple[str, ...]:
        """What a row has beside its key and value."""
        return (*self.bare, "hdr") if self.headers else self.bare

    @property
    def bare(self) -> tuple[str, ...]:
        """That, without headers."""
        return (*REST, "at") if self.ordered else REST

    @property
    def partition(self) -> str:
        """What rows come in the order of, before their offsets: of several partitions the one first that is behind."""
        return "struct(at, part)" if self.ordered else "part"

    @property
    def key_types(self) -> tuple[SqlType, ...]:
        return physical_key(self.key, self.window)

    @property
    def keys(self) -> list[str]:
        return [f"k{i}" for i in range(len(self.key_types))]

    @property
    def values(self) -> list[str]:
        return [f"c{i}" for i in range(len(self.value))]


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
                *key_columns(self.key, self.value),
                *(window_columns(len(self.key), self.value) if self.window is not None else ()),
                *(ScopeColumn(c.name, c.type, f"{prefix}{i}") for i, c in enumerate(self.value)),
                *pseudo_columns(self.key + self.value, prefix=f"{prefix}_"),
            ]
        )

    @property
    def key_types(self) -> tuple[SqlType, ...]:
        return physical_key(self.key, self.window)

    @property
    def keys(self) -> list[str]:
        return [f"k{i}" for i in range(len(self.key_types))]


Relation = StreamRelation | TableRelation


def physical_key(key: Iterable[Column], window: WindowInfo | None) -> tuple[SqlType, ...]:
    """The types of a key's columns, with those of its window."""
    types = tuple(c.type for c in key)
    return types if window is None else (*types, *WINDOW_TYPES)


def in_order_of_time(source: StreamRelation) -> StreamRelation:
    """The rows in one order where those of a key are in several partitions; each keeps the order of its own."""
    so_far = "max(IF(bad = 0, ts, NULL)) OVER (PARTITION BY part ORDER BY off ROWS UNBOUNDED PRECEDING)"
    return replace(source, sql=f"SELECT *, {so_far} AS at FROM ({source.sql})", ordered=True)


def held_stream(source: StreamRelation) -> Fragment:
    """A stream's rows, to be held."""
    columns = [column(f"k{i}", type_) for i, type_ in enumerate(source.key_types)]
    columns += [column(f"c{i}", c.type) for i, c in enumerate(source.value)]
    columns += [PRESENT, TS, PART, OFF, BAD, *([HDR] if source.headers else ())]
    return Fragment(source.sql, tuple(columns), tells=True)


def held_table(source: TableRelation) -> Fragment:
    """What changes of a table, to be held."""
    columns = [column(f"k{i}", type_) for i, type_ in enumerate(source.key_types)]
    for side in Side:
        columns.append(FragmentColumn(f"{side.value}_present", PRESENT.spark, PRESENT.arrow))
        columns += [column(f"{side.value}{i}", c.type) for i, c in enumerate(source.value)]
        columns.append(column(f"{side.value}_ts", Scalar.BIGINT))
    return Fragment(source.sql, tuple(columns))


def key_columns(key: Iterable[Column], value: Iterable[Column]) -> list[ScopeColumn]:
    """The key columns; before an aggregation a plan has some of them as value columns too, which then are meant."""
    taken = {c.name for c in value}
    return [ScopeColumn(c.name, c.type, f"k{i}") for i, c in enumerate(key) if c.name not in taken]


def window_columns(first: int, value: Iterable[Column]) -> list[ScopeColumn]:
    """WINDOWSTART and WINDOWEND, the key columns from number `first` on."""
    taken = {c.name for c in value}
    named = [ScopeColumn(name, Scalar.BIGINT, f"k{first + i}") for i, name in enumerate(("WINDOWSTART", "WINDOWEND"))]
    return [c for c in named if c.name not in taken]


def pseudo_columns(own: Iterable[Column], *, stream: bool = False, prefix: str = "") -> list[ScopeColumn]:
    """ROWTIME and its like, unless a column has the name already: old plans project ROWTIME as a column."""
    if stream:
        # A record without a value has none of these, as for ksqlDB they are part of the value.
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
    taken = {c.name for c in own}
    return [c for c in named if c.name not in taken]
