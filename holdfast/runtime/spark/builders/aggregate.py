"""Aggregations: Spark computes one partial row per group, the store merges it into the group's state.

The columns of the state are those of each aggregate function in order, then one for each carried column that a
later step still reads: its value in the group's latest record.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from holdfast.errors import PlanError
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.physical import Dialect, duckdb_type
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.tree import Call, ColumnRef
from holdfast.runtime.functions.bound import bind_aggregate
from holdfast.runtime.plan.steps import StreamAggregate, StreamWindowedAggregate
from holdfast.runtime.spark.fragment import BAD, TS, Fragment, column
from holdfast.runtime.spark.meaning import Meaning
from holdfast.runtime.spark.relation import (
    Side,
    StreamRelation,
    TableRelation,
    pseudo_columns,
    window_columns,
)
from holdfast.runtime.store.port import Layout, Merge
from holdfast.types import Column, SqlType


@dataclass(frozen=True, slots=True)
class Part:
    """One result column of the aggregation and the state columns, from number `first` on, that it is made of."""

    column: Column
    types: tuple[SqlType, ...]
    partial: tuple[str, ...]
    initial: tuple[str, ...]
    merged: tuple[str, ...]
    result: Callable[[Sequence[str], Dialect], str]
    first: int

    def result_over(self, dialect: Dialect, prefix: str) -> str:
        """The result's SQL over state columns that are called `prefix0`, `prefix1`, …"""
        return self.result(_numbered(prefix, self.first, len(self.types)), dialect)


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A grouped stream on its way into a state."""

    source: StreamRelation
    parts: tuple[Part, ...]

    @property
    def layout(self) -> Layout:
        types = tuple(type_ for part in self.parts for type_ in part.types)
        return Layout(self.source.key_types, types)

    @property
    def keys(self) -> list[str]:
        return self.source.keys

    @property
    def merge(self) -> Merge:
        return Merge(
            initial=tuple(sql for part in self.parts for sql in part.initial),
            merged=tuple(sql for part in self.parts for sql in part.merged),
        )

    @property
    def value(self) -> tuple[Column, ...]:
        return tuple(part.column for part in self.parts)

    def fragment(self) -> Fragment:
        """The SELECT of the partials: `k0.., p0.., ts, bad`, one row per group."""
        keys = self.keys
        partials = [sql for part in self.parts for sql in part.partial]
        chosen = [*keys, *(f"{sql} AS p{i}" for i, sql in enumerate(partials)), "max(ts) AS ts", "max(bad) AS bad"]
        sql = f"SELECT {', '.join(chosen)} FROM ({self.source.sql}) GROUP BY {', '.join(keys)}"
        layout = self.layout
        columns = [column(f"k{i}", t) for i, t in enumerate(layout.key)]
        columns += [column(f"p{i}", t) for i, t in enumerate(layout.value)]
        return Fragment(sql, (*columns, TS, BAD))

    def scope(self, dialect: Dialect, prefix: str, ts: str) -> Scope:
        """The aggregation's result columns over state columns with a prefix."""
        return Scope.of(
            [
                *(ScopeColumn(c.name, c.type, f"k{i}") for i, c in enumerate(self.source.key)),
                *(window_columns(len(self.source.key), self.value) if self.source.window is not None else ()),
                *(ScopeColumn(p.column.name, p.column.type, p.result_over(dialect, prefix)) for p in self.parts),
                *(ScopeColumn(c.name, c.type, ts) for c in pseudo_columns(self.source.key + self.value)),
            ]
        )

    def relation(self, view: str) -> TableRelation:
        """The result as a delta, over the state's delta in a view."""
        projected = self.keys
        for side in Side:
            prefix = side.value
            results = [f"{p.result_over(Dialect.SPARK, prefix)} AS {prefix}r{i}" for i, p in enumerate(self.parts)]
            projected += [f"{prefix}_present", *results, f"{prefix}_ts"]
        inner = f"SELECT {', '.join(projected)} FROM {view}"
        outer = self.keys
        for side in Side:
            prefix = side.value
            outer += [f"{prefix}_present", *(f"{prefix}r{i} AS {prefix}{i}" for i in range(len(self.parts)))]
            outer += [f"{prefix}_ts"]
        return TableRelation(
            f"SELECT {', '.join(outer)} FROM ({inner})", self.source.key, self.value, self.source.window
        )


def build_stream_aggregate(
    step: StreamAggregate | StreamWindowedAggregate, source: StreamRelation, used: Iterable[str], meaning: Meaning
) -> Aggregation:
    """`used` are the columns that later steps read; carried columns that none reads are not kept."""
    scope = source.scope()
    parts: list[Part] = []
    first = 0
    for index, text in enumerate(step.aggregation_functions):
        part = _function(text, f"KSQL_AGG_VARIABLE_{index}", scope, first, meaning)
        parts.append(part)
        first += len(part.types)
    wanted = set(used)
    for name in step.non_aggregate_columns:
        if name in wanted and name not in {c.name for c in source.key}:
            parts.append(_carried(name, scope, first))
            first += 1
    return Aggregation(source, tuple(parts))


def _function(text: str, name: str, scope: Scope, first: int, meaning: Meaning) -> Part:
    call = parse_expression(text)
    if not isinstance(call, Call):
        raise PlanError(f"{text} is not a call of an aggregate function")
    bound = bind_aggregate(call, scope, release=meaning.release)
    count = len(bound.state)
    return Part(
        column=Column(name, bound.returns),
        types=bound.state,
        partial=bound.partial(),
        initial=bound.initial(),
        merged=bound.merge(_numbered("s", first, count), _numbered("p", first, count)),
        result=bound.result,
        first=first,
    )


def _carried(name: str, scope: Scope, first: int) -> Part:
    """The value of a column in the latest record of the group."""
    found = scope.find(ColumnRef(name))
    return Part(
        column=Column(name, found.type),
        types=(found.type,),
        partial=(f"max_by({found.sql}, struct(part, off))",),
        initial=(f"CAST(NULL AS {duckdb_type(found.type)})",),
        merged=(f"p{first}",),
        result=lambda state, _dialect: state[0],
        first=first,
    )


def _numbered(prefix: str, first: int, count: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(first, first + count)]
