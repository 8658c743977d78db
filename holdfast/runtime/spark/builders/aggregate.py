"""Aggregations: Spark computes one partial row per group, the store merges it into the group's state.

The columns of the state are those of each aggregate function in order, then one for each carried column that a
later step still reads: its value in the group's latest record.

Over a table, a group has two partials: of the rows that it got and of those that it lost. The store first takes back
what the lost rows had given, then adds the others.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from holdfast.errors import PlanError
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.physical import Dialect, duckdb_type
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.tree import Call, ColumnRef
from holdfast.runtime.functions.bound import bind_aggregate
from holdfast.runtime.functions.declaration import AggregateForm
from holdfast.runtime.functions.registry import function
from holdfast.runtime.plan.steps import StreamAggregate, StreamWindowedAggregate, TableAggregate
from holdfast.runtime.spark.fragment import BAD, SKIPPED, TS, Fragment, column
from holdfast.runtime.spark.meaning import Meaning
from holdfast.runtime.spark.relation import (
    Side,
    StreamRelation,
    TableRelation,
    pseudo_columns,
    window_columns,
)
from holdfast.runtime.store.port import Layout, Merge
from holdfast.types import Column, Scalar, SqlType

Texts = Sequence[str]


@dataclass(frozen=True, slots=True)
class Part:
    """One result column of the aggregation and the state columns, from number `first` on, that it is made of."""

    column: Column
    types: tuple[SqlType, ...]
    partial: tuple[str, ...]
    initial: tuple[str, ...]
    merge: Callable[[Texts, Texts], tuple[str, ...]]
    undo: Callable[[Texts, Texts], tuple[str, ...]]
    result: Callable[[Texts, Dialect], str]
    first: int
    merged_before: Callable[[Texts, Texts], tuple[str, ...] | None] = lambda _state, _partial: None
    shown_by_store: bool = True

    def numbered(self, prefix: str, shift: int = 0) -> list[str]:
        return [f"{prefix}{self.first + shift + i}" for i in range(len(self.types))]

    def merged(self) -> tuple[str, ...]:
        """The state after a partial."""
        return self.merge(self.numbered("s"), self.numbered("p"))

    def exchanged(self, width: int) -> tuple[str, ...]:
        """The state after what was lost, `width` columns behind what was got; flags say whether there is any."""
        state = self.numbered("s")
        without = _if(f"p{2 * width + 1}", self.undo(state, self.numbered("p", width)), state)
        return _if(f"p{2 * width}", self.merge(without, self.numbered("p")), without)

    def result_over(self, dialect: Dialect, prefix: str) -> str:
        """The result's SQL over state columns that are called `prefix0`, `prefix1`, …"""
        return self.result(self.numbered(prefix), dialect)


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A grouped stream on its way into a state; of a grouped table, `undoes`, each row says whether it is `lost`.

    It `tells` of rows that are in no group, unless the stage that keeps the time of its windows does.
    """

    source: StreamRelation
    parts: tuple[Part, ...]
    undoes: bool = False
    tells: bool = True

    @property
    def layout(self) -> Layout:
        types = tuple(type_ for part in self.parts for type_ in part.types)
        return Layout(self.source.key_types, types)

    @property
    def keys(self) -> list[str]:
        return self.source.keys

    @property
    def merge(self) -> Merge:
        initial = tuple(sql for part in self.parts for sql in part.initial)
        if not self.undoes:
            return Merge(initial=initial, merged=tuple(sql for part in self.parts for sql in part.merged()))
        merged = tuple(sql for part in self.parts for sql in part.exchanged(len(initial)))
        return Merge(initial=initial, merged=merged, partial=self._partial_types)

    @property
    def order(self) -> str | None:
        """The partials' column whose order they are merged in: groups that only lose rows come first."""
        return f"p{2 * len(self.layout.value)}" if self.undoes else None

    @property
    def _partial_types(self) -> tuple[SqlType, ...]:
        types = self.layout.value
        return (*types, *types, Scalar.BOOLEAN, Scalar.BOOLEAN) if self.undoes else types

    @property
    def value(self) -> tuple[Column, ...]:
        return tuple(part.column for part in self.parts)

    def fragment(self) -> Fragment:
        """The SELECT of the partials: `k0.., p0.., ts, bad`, one row per group, `skipped` if it tells."""
        columns = [column(f"k{i}", t) for i, t in enumerate(self.layout.key)]
        columns += [column(f"p{i}", t) for i, t in enumerate(self._partial_types)]
        if self.undoes:
            return Fragment(self._exchanges(), (*columns, TS))
        by = [*self.keys, "bad"]
        if not self.tells:
            return Fragment(self._partials(by), (*columns, TS, BAD))
        return Fragment(self._partials(by, "count(*) AS skipped"), (*columns, TS, BAD, SKIPPED), tells=True)

    @property
    def merged_by_spark(self) -> bool:
        """Whether the state is asked for before the partials are handed over."""
        return any(part.merged_before(["s"], ["p"]) for part in self.parts)

    def merged_fragment(self, partials: str, before: str) -> Fragment:
        """The partials of a view with the state that was there before, where the store cannot merge."""
        chosen = [f"h.{name}" for name in self.keys]
        for part in self.parts:
            partial = part.numbered("h.p")
            texts = part.merged_before(part.numbered("r.c"), partial) or partial
            chosen += [f"{text} AS p{part.first + i}" for i, text in enumerate(texts)]
        same = " AND ".join(f"h.{name} <=> r.{name}" for name in self.keys)
        sql = f"SELECT {', '.join(chosen)}, h.ts FROM {partials} h LEFT JOIN {before} r ON {same}"
        return Fragment(sql, self.fragment().good.columns)

    def _partials(self, by: Texts, *more: str) -> str:
        partials = [sql for part in self.parts for sql in part.partial]
        chosen = [*by, *(f"{sql} AS p{i}" for i, sql in enumerate(partials)), "max(ts) AS ts", *more]
        return f"SELECT {', '.join(chosen)} FROM ({self.source.sql}) GROUP BY {', '.join(by)}"

    def _exchanges(self) -> str:
        """What each group got, what it lost, and whether there is any of either."""
        width = len(self.layout.value)
        chosen = self.keys
        for start, which in ((0, "NOT lost"), (width, "lost")):
            chosen += [f"first(p{i}) FILTER (WHERE {which}) AS p{start + i}" for i in range(width)]
        chosen += [f"bool_or(NOT lost) AS p{2 * width}", f"bool_or(lost) AS p{2 * width + 1}", "max(ts) AS ts"]
        rows = self._partials([*self.keys, "lost"])
        return f"SELECT {', '.join(chosen)} FROM ({rows}) GROUP BY {', '.join(self.keys)}"

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


AggregateStep = StreamAggregate | StreamWindowedAggregate | TableAggregate


def build_aggregate(step: AggregateStep, source: StreamRelation, used: Iterable[str], meaning: Meaning) -> Aggregation:
    """`used` are the columns that later steps read; carried columns that none reads are not kept."""
    undoes = isinstance(step, TableAggregate)
    parts: list[Part] = []
    first = 0
    for index, text in enumerate(step.aggregation_functions):
        part = _function(text, f"KSQL_AGG_VARIABLE_{index}", source, first, meaning, undoes=undoes)
        parts.append(part)
        first += len(part.types)
    wanted = set(used)
    for name in step.non_aggregate_columns:
        if name in wanted and name not in {c.name for c in source.key}:
            parts.append(_carried(name, source, first))
            first += 1
    return Aggregation(source, tuple(parts), undoes, tells=not isinstance(step, StreamWindowedAggregate))


def by_order(step: AggregateStep, meaning: Meaning) -> bool:
    """Whether some aggregate goes by the order of records."""
    calls = (_call(text) for text in step.aggregation_functions)
    forms = (form for call in calls for form in function(call.name, meaning.release).forms)
    return any(isinstance(form, AggregateForm) and form.needs_records for form in forms)


def _call(text: str) -> Call:
    call = parse_expression(text)
    if not isinstance(call, Call):
        raise PlanError(f"{text} is not a call of an aggregate function")
    return call


def _function(text: str, name: str, source: StreamRelation, first: int, meaning: Meaning, *, undoes: bool) -> Part:
    call = _call(text)
    bound = bind_aggregate(
        call,
        source.scope(),
        release=meaning.release,
        undoes=undoes,
        limit=meaning.limit(call.name),
        part=source.partition,
    )
    return Part(
        column=Column(name, bound.returns),
        types=bound.state,
        partial=bound.partial(),
        initial=bound.initial(),
        merge=bound.merge,
        undo=bound.undo,
        result=bound.result,
        first=first,
        merged_before=bound.merged_before,
        shown_by_store=Dialect.DUCKDB in bound.form.result_sql,
    )


def _carried(name: str, source: StreamRelation, first: int) -> Part:
    """The value of a column in the latest record of the group."""
    found = source.scope().find(ColumnRef(name))
    return Part(
        column=Column(name, found.type),
        types=(found.type,),
        partial=(f"max_by({found.sql}, struct({source.partition}, off))",),
        initial=(f"CAST(NULL AS {duckdb_type(found.type)})",),
        merge=lambda _state, partial: tuple(partial),
        undo=lambda _state, partial: tuple(partial),
        result=lambda state, _dialect: state[0],
        first=first,
    )


def _if(condition: str, then: Texts, otherwise: Texts) -> tuple[str, ...]:
    return tuple(f"CASE WHEN {condition} THEN {a} ELSE {b} END" for a, b in zip(then, otherwise, strict=True))
