"""Tables: the latest value of each key."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar, overload

from holdfast.errors import NotSupported, TopologyError
from holdfast.runtime.expressions.tree import Not
from holdfast.streams import joins
from holdfast.streams.callables import Callables
from holdfast.streams.expressions import Expr
from holdfast.streams.grouped import KGroupedTable
from holdfast.streams.materialized import Materialized
from holdfast.streams.nodes import TopologyNode
from holdfast.streams.produced import Produced
from holdfast.streams.query_nodes import AggregateNode
from holdfast.streams.serdes import Row
from holdfast.streams.stream import KStream, Predicate, key_columns, map_values
from holdfast.streams.topology_rows import TopologyRows
from holdfast.streams.windows import Suppressed
from holdfast.streams.workspace import Workspace

K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")
J = TypeVar("J")

Store = Materialized[Any, Any]


class KTable(Generic[K, V]):
    """The latest value of each key; a record without a value deletes it."""

    def __init__(self, workspace: Workspace, relation: TopologyRows) -> None:
        self._workspace, self._relation = workspace, relation

    def _table(self, relation: TopologyRows, materialized: Store | None = None) -> "KTable[Any, Any]":
        if materialized is not None and (materialized.store_name is not None or materialized.logged):
            name = materialized.store_name or self._workspace.name("table")
            node = self._workspace.node(relation, name=name, topic=materialized.logged, required=True)
            relation = TopologyRows.of(node)
        return KTable(self._workspace, relation)

    @property
    def queryable_store_name(self) -> str | None:
        """The name of its store; None for a table without one of its own."""
        node = self._relation.node
        return node.name if node is not None else None

    # -- rows

    def filter(self, predicate: Predicate, materialized: Store | None = None) -> "KTable[K, V]":
        """The rows for which a condition is true. A row that no longer satisfies it is deleted."""
        callables = Callables(self._relation)
        condition = callables.expression(predicate)
        return self._table(callables.with_functions().filtered(condition), materialized)

    def filter_not(self, predicate: Predicate, materialized: Store | None = None) -> "KTable[K, V]":
        """The rows for which a condition is false."""
        callables = Callables(self._relation)
        condition = Not(callables.expression(predicate))
        return self._table(callables.with_functions().filtered(condition), materialized)

    @overload
    def map_values(self, mapper: Mapping[str, Any], materialized: Store | None = None) -> "KTable[K, Row]": ...
    @overload
    def map_values(self, mapper: Expr[W], materialized: Store | None = None) -> "KTable[K, W]": ...
    @overload
    def map_values(self, mapper: Callable[..., Expr[W]], materialized: Store | None = None) -> "KTable[K, W]": ...
    @overload
    def map_values(
        self, mapper: Callable[..., Mapping[str, Any]], materialized: Store | None = None
    ) -> "KTable[K, Row]": ...
    @overload
    def map_values(self, mapper: Callable[..., W], materialized: Store | None = None) -> "KTable[K, W]": ...
    def map_values(self, mapper: Any, materialized: Store | None = None) -> "KTable[K, Any]":
        """The rows with other values: a mapping of column names to expressions, or one expression."""
        return self._table(map_values(self._relation, mapper), materialized)

    # -- groups and joins

    def group_by(self, key: Any) -> KGroupedTable[Any, V]:
        """The rows grouped by an expression, or by a mapping for a key of several columns."""
        relation, columns = key_columns(self._relation, key)
        return KGroupedTable(self._workspace, relation, relation.key_fields(columns))

    def join(
        self, other: "KTable[Any, J]", joiner: Any = None, materialized: Store | None = None, *, on: Any = None
    ) -> "KTable[K, Any]":
        """The rows of both tables with the same key.

        `joiner` takes both values and returns a mapping or an expression. With `on`, an expression over this table is
        compared with the other's key, and the result keeps the key of this table.
        """
        return self._join("JOIN", other, joiner, materialized, on)

    def left_join(
        self, other: "KTable[Any, J]", joiner: Any = None, materialized: Store | None = None, *, on: Any = None
    ) -> "KTable[K, Any]":
        """As `join`, with all rows of this table; values of the other are NULL where there is none."""
        return self._join("LEFT JOIN", other, joiner, materialized, on)

    def outer_join(self, other: "KTable[K, J]", joiner: Any, materialized: Store | None = None) -> "KTable[K, Any]":
        """The rows of either table; values are NULL where one has none."""
        return self._join("FULL OUTER JOIN", other, joiner, materialized, None)

    def _join(
        self, join_type: str, other: "KTable[Any, J]", joiner: Any, materialized: Store | None, on: Any
    ) -> "KTable[K, Any]":
        joined = joins.table_join(self._workspace, join_type, self._relation, other._relation, joiner, on)
        return self._table(joined, materialized)

    # -- windows

    def suppress(self, suppressed: Suppressed, name: str | None = None) -> "KTable[K, V]":
        """Only the final result of each window, when it closes."""
        node = self._relation.node
        if not isinstance(suppressed, Suppressed):
            raise TopologyError(f"{suppressed!r} is not Suppressed", hint="Write Suppressed.until_window_closes().")
        if not isinstance(node, AggregateNode) or node.windows is None:
            raise NotSupported(
                "only the windows of an aggregation can be suppressed until they close",
                detail="Other tables do not know when a window accepts no more records.",
                hint="Suppress right after windowed_by(…) and the aggregation, before filter and map_values.",
            )
        final = replace(
            node, name=name or self._workspace.name("suppress"), final=True, topic=None, required=bool(name)
        )
        self._workspace.add(final)
        return KTable(self._workspace, TopologyRows.of(final))

    # -- results

    def to_stream(self) -> KStream[K, V]:
        """The changes of the table as records; the table has a topic if anything but `to` reads them."""
        return TableChangeStream(self._workspace, self._relation)

    def _node(self) -> TopologyNode:
        return self._workspace.node(self._relation)


class TableChangeStream(KStream[K, V]):
    """The changes of a table. To write them to a topic takes no stream of them, which anything else reads."""

    def __init__(self, workspace: Workspace, table: TopologyRows) -> None:
        super().__init__(workspace, lambda: TopologyRows.of(workspace.changes(workspace.node(table))))
        self._table = table

    def to(self, topic: str, produced: Produced[K, V] | None = None) -> None:
        self._workspace.write(self._table, topic, produced or Produced(), name=None)
