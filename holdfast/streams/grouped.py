"""Grouped records, and their aggregates."""

import builtins
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from holdfast.client.stores.windowed import Windowed
from holdfast.errors import NotSupported, TopologyError
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression
from holdfast.sql.syntax.statements import ObjectKind
from holdfast.streams import aggregates
from holdfast.streams.aggregates import Aggregate
from holdfast.streams.callables import Callables
from holdfast.streams.materialized import Materialized
from holdfast.streams.python_functions import PythonFunction, aggregate_function, reduce_function
from holdfast.streams.query_nodes import AggregateNode
from holdfast.streams.serdes import Row, Serde
from holdfast.streams.topology_rows import VALUE, Field, TopologyRows, free_name, key_format, row_format, single_format
from holdfast.streams.windows import SessionWindows, TimeWindows
from holdfast.streams.workspace import Workspace

if TYPE_CHECKING:
    from holdfast.streams.table import KTable

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")

BUILT_IN: Mapping[Any, Callable[[], Aggregate[Any]]] = {
    builtins.max: aggregates.max,
    builtins.min: aggregates.min,
    builtins.sum: aggregates.sum,
    operator.add: aggregates.sum,
}
"""Functions of Python that are aggregates of SQL."""


@dataclass(frozen=True, slots=True)
class Grouped(Generic[K, V]):
    """Rows grouped by expressions. `K` is the type of the keys of a result."""

    workspace: Workspace
    relation: TopologyRows
    keys: tuple[Field, ...]
    windows: TimeWindows | SessionWindows | None = None

    def count(self, materialized: Materialized[Any, int] | None = None) -> "KTable[K, int]":
        """The number of rows of each group."""
        return self.aggregate(aggregates.count(), materialized)

    def reduce(self, reducer: Any, materialized: Materialized[Any, V] | None = None) -> "KTable[K, V]":
        """The values of each group combined two by two: by `max`, `min`, `operator.add`, or an annotated function."""
        if isinstance(reducer, Aggregate):
            return self.aggregate(reducer, materialized)
        built_in = BUILT_IN.get(reducer) if callable(reducer) else None
        value = self._single_value("reduce")
        if built_in is not None:
            return self._aggregated({VALUE: _over(built_in().tree, value)}, (), materialized, single=True)
        if not callable(reducer) or not getattr(reducer, "__annotations__", None):
            raise NotSupported(
                "reduce needs a function with annotations",
                detail="It is sent to the server with its types; a lambda has none.",
                hint="Write aggregate(aggregates.sum()), reduce(max), or def add(one: int, other: int) -> int.",
            )
        function = reduce_function(reducer)
        return self._aggregated({VALUE: Call(function.name, (value,))}, (function,), materialized, single=True)

    @overload
    def aggregate(
        self, aggregate: Aggregate[A], materialized: Materialized[Any, Any] | None = None
    ) -> "KTable[K, A]": ...
    @overload
    def aggregate(
        self, aggregate: Mapping[str, Aggregate[Any] | type], materialized: Materialized[Any, Any] | None = None
    ) -> "KTable[K, Row]": ...
    @overload
    def aggregate(self, aggregate: type, materialized: Materialized[Any, Any] | None = None) -> "KTable[K, Any]": ...
    def aggregate(self, aggregate: Any, materialized: Materialized[Any, Any] | None = None) -> "KTable[K, Any]":
        """An aggregate of each group, or a mapping of column names to aggregates.

        Aggregates are those of `aggregates`, or classes with `partial`, `merge` and `result`, which are sent to the
        server.
        """
        functions: list[PythonFunction] = []
        if isinstance(aggregate, Mapping):
            calls = {name: self._call(each, functions) for name, each in aggregate.items()}
            return self._aggregated(calls, tuple(functions), materialized, single=False)
        calls = {VALUE: self._call(aggregate, functions)}
        return self._aggregated(calls, tuple(functions), materialized, single=True)

    def _call(self, aggregate: Any, functions: list[PythonFunction]) -> Expression:
        if isinstance(aggregate, Aggregate):
            call = aggregate.tree
            single = call.arguments == (aggregates.VALUE,)
            return _over(call, self._single_value(call.name)) if single else call
        if isinstance(aggregate, type):
            function = aggregate_function(aggregate)
            functions.append(function)
            callables = Callables(self.relation)
            return callables.call(function)
        raise TopologyError(
            f"{aggregate!r} is not an aggregate",
            hint='Use one of aggregates, such as aggregates.sum("amount"), or a class with partial, merge and result.',
        )

    def _single_value(self, what: str) -> Expression:
        if len(self.relation.values) != 1:
            names = ", ".join(each.name for each in self.relation.values)
            raise TopologyError(
                f"{what} needs a column: values have several",
                detail=f"They are {names}.",
                hint='Name it: aggregates.sum("amount"), or project the value with map_values before.',
            )
        return ColumnRef(self.relation.values[0].name)

    def _aggregated(
        self,
        calls: Mapping[str, Expression],
        functions: tuple[PythonFunction, ...],
        materialized: Materialized[Any, Any] | None,
        *,
        single: bool,
    ) -> "KTable[Any, Any]":
        materialized = materialized or Materialized()
        relation = self.relation.with_functions(*functions)
        name = materialized.store_name or self.workspace.name("aggregate")
        results = tuple(
            Field(free_name(each, self.keys), relation.resolve(call), relation.type_of(call))
            for each, call in calls.items()
        )
        if materialized.store_retention is not None:
            self._check_retention(name, materialized.store_retention)
        value_format = single_format(results[0].type) if single else row_format(relation.value_format, results)
        node = AggregateNode(
            name=name,
            kind=ObjectKind.TABLE,
            key=tuple((each.name, each.type) for each in self.keys),
            values=tuple((each.name, each.type) for each in results),
            key_format=key_format(self.keys) if self.keys != relation.key else relation.key_format,
            value_format=value_format,
            window=self.windows.key_window if self.windows is not None else None,
            topic=name if materialized.logged else None,
            required=materialized.store_name is not None,
            relation=relation,
            group_by=self.keys,
            results=results,
            windows=self.windows,
            retention=materialized.store_retention,
        )
        _apply_serdes(node, materialized)
        self.workspace.add(node)
        table: KTable[Any, Any] = self.workspace.table(self.workspace, TopologyRows.of(node))
        return table

    def _check_retention(self, name: str, retention: timedelta) -> None:
        if self.windows is None:
            raise TopologyError(
                f'store "{name}" has no windows to drop',
                detail="A retention is how long windows are retained; the groups have none.",
                hint="Add windowed_by(TimeWindows.of(…)) before the aggregation.",
            )
        self.windows.check_retention(name, retention)


class KGroupedStream(Grouped[K, V]):
    """The records of a stream, grouped."""

    @overload
    def windowed_by(self, windows: TimeWindows) -> "TimeWindowedKStream[Windowed[K], V]": ...
    @overload
    def windowed_by(self, windows: SessionWindows) -> "SessionWindowedKStream[Windowed[K], V]": ...
    def windowed_by(self, windows: Any) -> Any:
        """Also group by the windows of the records' times."""
        match windows:
            case TimeWindows():
                return TimeWindowedKStream(self.workspace, self.relation, self.keys, windows)
            case SessionWindows():
                return SessionWindowedKStream(self.workspace, self.relation, self.keys, windows)
            case _:
                raise TopologyError(
                    f"{windows!r} is not a window",
                    hint="Write TimeWindows.of(timedelta(minutes=5)) or SessionWindows.with_gap(timedelta(minutes=5)).",
                )


class TimeWindowedKStream(Grouped[K, V]):
    """The records of a stream, grouped by key and time window."""


class SessionWindowedKStream(Grouped[K, V]):
    """The records of a stream, grouped by key and session."""


class KGroupedTable(Grouped[K, V]):
    """The rows of a table, grouped: a changed row leaves its group and enters another."""


def _over(call: Call, value: Expression) -> Call:
    return replace(call, arguments=(value,))


def _apply_serdes(node: AggregateNode, materialized: Materialized[Any, Any]) -> None:
    """The formats of the serdes, for the topic of a logged table."""
    for serde, columns, side in (
        (materialized.key_serde, node.key, "key"),
        (materialized.value_serde, node.values, "value"),
    ):
        if serde is None:
            continue
        _check_serde(serde, [type_ for _, type_ in columns], node.name, side)
        if side == "key":
            node.key_format = serde.format
        else:
            node.value_format = serde.format


def _check_serde(serde: Serde[Any], types: list[Any], store: str, side: str) -> None:
    own = [type_ for _, type_ in serde.columns]
    if own != types:
        raise TopologyError(
            f'the {side} serde of store "{store}" does not fit its {side}',
            detail=f"The {side} is {', '.join(map(str, types))}, the serde is for {', '.join(map(str, own))}.",
            hint=f"Leave the {side} serde out, or cast the {side} with map_values.",
        )
