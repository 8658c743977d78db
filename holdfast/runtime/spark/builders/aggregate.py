"""Aggregations: Spark computes one partial row per group, the store merges it into the group's state.

The columns of the state are those of each aggregate function in order, then one for each carried column that a
later step reads: its value in the group's latest record.

Over a table, a group has two partials: one of the rows added to it, one of the rows removed from it. The store first
undoes the removed rows, then merges the added ones.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from holdfast.errors import PlanError
from holdfast.runtime import physical_columns as col
from holdfast.runtime.compiler.calls import bind_aggregate
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.physical import Dialect, duckdb_type
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.tree import Call, ColumnRef
from holdfast.runtime.fragment import BAD, SKIPPED, TS, Fragment, key_columns, partial_columns
from holdfast.runtime.functions.declaration import AggregateForm
from holdfast.runtime.functions.registry import function
from holdfast.runtime.physical_columns import Side
from holdfast.runtime.plan.steps import AggregateStep, StreamWindowedAggregate, TableAggregate
from holdfast.runtime.spark.expression_compiler import ExpressionCompiler
from holdfast.runtime.spark.relation import StreamRelation, TableRelation, pseudo_scope, window_scope
from holdfast.runtime.store.port import Layout, Merge
from holdfast.types import Column, Scalar, SqlType

Texts = Sequence[str]


@dataclass(frozen=True, slots=True)
class Part:
    """One result column of the aggregation, and the state columns that it is computed from, numbered from `first`."""

    column: Column
    types: tuple[SqlType, ...]
    partial: tuple[str, ...]
    initial: tuple[str, ...]
    merge: Callable[[Texts, Texts], tuple[str, ...]]
    undo: Callable[[Texts, Texts], tuple[str, ...]]
    result: Callable[[Texts, Dialect], str]
    first: int
    merged_before: Callable[[Texts, Texts], tuple[str, ...] | None] = lambda _state, _partial: None
    result_in_duckdb: bool = True

    def numbered(self, prefix: str, shift: int = 0) -> list[str]:
        return [f"{prefix}{self.first + shift + i}" for i in range(len(self.types))]

    def merged(self) -> tuple[str, ...]:
        """The state merged with a partial."""
        return self.merge(self.numbered("s"), self.numbered("p"))

    def updated(self, width: int) -> tuple[str, ...]:
        """The state after undoing the removed rows and merging the added ones.

        The partials of removed rows are `width` columns after those of added rows; flags after both say whether there
        are any.
        """
        state = self.numbered("s")
        undone = _if(col.partial(2 * width + 1), self.undo(state, self.numbered("p", width)), state)
        return _if(col.partial(2 * width), self.merge(undone, self.numbered("p")), undone)

    def result_over(self, dialect: Dialect, prefix: str) -> str:
        """The result's SQL over state columns named `prefix0`, `prefix1`, …"""
        return self.result(self.numbered(prefix), dialect)


@dataclass(frozen=True, slots=True)
class AggregateMerge:
    """The merge of grouped rows into a state. With `undoes` they come from a table: `lost` marks removed rows.

    With `reports_skips`, rows without a group are reported; for windows, the stage that stores stream time does that.
    `partition` is the part of the state that is no result: the partition of a window's last rows.
    """

    source: StreamRelation
    parts: tuple[Part, ...]
    undoes: bool = False
    reports_skips: bool = True
    partition: Part | None = None

    @property
    def stored(self) -> tuple[Part, ...]:
        """All parts of the state."""
        return self.parts if self.partition is None else (*self.parts, self.partition)

    @property
    def layout(self) -> Layout:
        types = tuple(type_ for part in self.stored for type_ in part.types)
        return Layout(self.source.key_types, types)

    def with_partition(self) -> "AggregateMerge":
        """The same aggregation, whose state also has the partition of each window."""
        part = Part(
            column=Column("ROWPARTITION", Scalar.INTEGER),
            types=(Scalar.INTEGER,),
            partial=("max(clk)",),
            initial=("CAST(NULL AS INTEGER)",),
            merge=lambda _state, partial: tuple(partial),
            undo=lambda _state, partial: tuple(partial),
            result=lambda state, _dialect: state[0],
            first=len(self.layout.value),
        )
        return replace(self, partition=part)

    @property
    def keys(self) -> list[str]:
        return self.source.keys

    @property
    def merge(self) -> Merge:
        initial = tuple(sql for part in self.stored for sql in part.initial)
        if not self.undoes:
            return Merge(initial=initial, merged=tuple(sql for part in self.stored for sql in part.merged()))
        merged = tuple(sql for part in self.stored for sql in part.updated(len(initial)))
        return Merge(initial=initial, merged=merged, partial=self._partial_types)

    @property
    def order(self) -> str | None:
        """The column that partials are sorted by before the merge: groups that only lose rows come first."""
        return col.partial(2 * len(self.layout.value)) if self.undoes else None

    @property
    def _partial_types(self) -> tuple[SqlType, ...]:
        types = self.layout.value
        return (*types, *types, Scalar.BOOLEAN, Scalar.BOOLEAN) if self.undoes else types

    @property
    def value(self) -> tuple[Column, ...]:
        return tuple(part.column for part in self.parts)

    def fragment(self) -> Fragment:
        """The SELECT of the partials, one row per group: `k0.., p0.., ts, bad`, and `skipped` if it reports skips."""
        columns = key_columns(self.layout.key)
        columns += partial_columns(self._partial_types)
        if self.undoes:
            return Fragment(self._added_and_removed(), (*columns, TS))
        by = [*self.keys, "bad"]
        if not self.reports_skips:
            return Fragment(self._partials(by), (*columns, TS, BAD))
        return Fragment(self._partials(by, "count(*) AS skipped"), (*columns, TS, BAD, SKIPPED), reports_skips=True)

    @property
    def merged_by_spark(self) -> bool:
        """Whether Spark merges the partials with the state, because the store cannot."""
        return any(part.merged_before(["s"], ["p"]) for part in self.parts)

    def merged_fragment(self, partials: str, before: str) -> Fragment:
        """The partials of a view; those that the store cannot merge are merged with the state in the view `before`."""
        chosen = [f"h.{name}" for name in self.keys]
        for part in self.stored:
            partial = part.numbered("h.p")
            texts = part.merged_before(part.numbered("r.c"), partial) or partial
            chosen += [f"{text} AS {col.partial(part.first + i)}" for i, text in enumerate(texts)]
        same = " AND ".join(f"h.{name} <=> r.{name}" for name in self.keys)
        sql = f"SELECT {', '.join(chosen)}, h.ts FROM {partials} h LEFT JOIN {before} r ON {same}"
        return Fragment(sql, self.fragment().good.columns)

    def _partials(self, by: Texts, *more: str) -> str:
        partials = [sql for part in self.stored for sql in part.partial]
        chosen = [*by, *(f"{sql} AS {col.partial(i)}" for i, sql in enumerate(partials)), "max(ts) AS ts", *more]
        return f"SELECT {', '.join(chosen)} FROM ({self.source.sql}) GROUP BY {', '.join(by)}"

    def _added_and_removed(self) -> str:
        """The partials of the rows added to and removed from each group, and whether there are any."""
        width = len(self.layout.value)
        chosen = self.keys
        for start, which in ((0, "NOT lost"), (width, "lost")):
            chosen += [
                f"first({col.partial(i)}) FILTER (WHERE {which}) AS {col.partial(start + i)}" for i in range(width)
            ]
        chosen += [
            f"bool_or(NOT lost) AS {col.partial(2 * width)}",
            f"bool_or(lost) AS {col.partial(2 * width + 1)}",
            "max(ts) AS ts",
        ]
        rows = self._partials([*self.keys, "lost"])
        return f"SELECT {', '.join(chosen)} FROM ({rows}) GROUP BY {', '.join(self.keys)}"

    def scope(self, dialect: Dialect, prefix: str, ts: str) -> Scope:
        """The aggregation's result columns over state columns with a prefix."""
        return Scope.of(
            [
                *(ScopeColumn(c.name, c.type, col.key(i)) for i, c in enumerate(self.source.key)),
                *(window_scope(len(self.source.key), self.value) if self.source.window is not None else ()),
                *(ScopeColumn(p.column.name, p.column.type, p.result_over(dialect, prefix)) for p in self.parts),
                *(ScopeColumn(c.name, c.type, ts) for c in pseudo_scope(self.source.key + self.value)),
            ]
        )

    def relation(self, view: str) -> TableRelation:
        """The result as a delta, over the state's delta in a view."""
        projected = self.keys
        for side in Side:
            prefix = side.value
            results = [f"{p.result_over(Dialect.SPARK, prefix)} AS {prefix}r{i}" for i, p in enumerate(self.parts)]
            projected += [side.present, *results, side.row_time]
        inner = f"SELECT {', '.join(projected)} FROM {view}"
        outer = self.keys
        for side in Side:
            prefix = side.value
            outer += [side.present, *(f"{prefix}r{i} AS {side.column(i)}" for i in range(len(self.parts)))]
            outer += [side.row_time]
        return TableRelation(
            f"SELECT {', '.join(outer)} FROM ({inner})", self.source.key, self.value, self.source.window
        )


def build_aggregate(
    step: AggregateStep, source: StreamRelation, used: Iterable[str], compiler: ExpressionCompiler
) -> AggregateMerge:
    """`used` are the columns that later steps read; carried columns that none of them reads are not stored."""
    undoes = isinstance(step, TableAggregate)
    parts: list[Part] = []
    first = 0
    for index, text in enumerate(step.aggregation_functions):
        part = _function(text, f"KSQL_AGG_VARIABLE_{index}", source, first, compiler, undoes=undoes)
        parts.append(part)
        first += len(part.types)
    wanted = set(used)
    for name in step.non_aggregate_columns:
        if name in wanted and name not in {c.name for c in source.key}:
            parts.append(_carried(name, source, first))
            first += 1
    return AggregateMerge(source, tuple(parts), undoes, reports_skips=not isinstance(step, StreamWindowedAggregate))


def depends_on_order(step: AggregateStep, compiler: ExpressionCompiler) -> bool:
    """Whether an aggregate depends on the order of records."""
    calls = (_call(text) for text in step.aggregation_functions)
    forms = (form for call in calls for form in function(call.name, compiler.release).forms)
    return any(isinstance(form, AggregateForm) and form.needs_records for form in forms)


def _call(text: str) -> Call:
    call = parse_expression(text)
    if not isinstance(call, Call):
        raise PlanError(f"{text} is not a call of an aggregate function")
    return call


def _function(
    text: str, name: str, source: StreamRelation, first: int, compiler: ExpressionCompiler, *, undoes: bool
) -> Part:
    call = _call(text)
    bound = bind_aggregate(
        call,
        source.scope(),
        release=compiler.release,
        undoes=undoes,
        limit=compiler.limit(call.name),
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
        result_in_duckdb=Dialect.DUCKDB in bound.form.result_sql,
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
