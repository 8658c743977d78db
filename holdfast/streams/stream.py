"""Streams of records."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from holdfast.errors import TopologyError
from holdfast.runtime.expressions.tree import Not
from holdfast.streams import joins
from holdfast.streams.callables import Callables
from holdfast.streams.expressions import Expr
from holdfast.streams.grouped import KGroupedStream
from holdfast.streams.nodes import TopologyNode
from holdfast.streams.produced import Produced
from holdfast.streams.serdes import Row
from holdfast.streams.topology_rows import TopologyRows
from holdfast.streams.windows import JoinWindows
from holdfast.streams.workspace import Workspace

if TYPE_CHECKING:
    from holdfast.streams.table import KTable

K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")
J = TypeVar("J")

Predicate = Expr[bool] | Callable[..., Any]


class KStream(Generic[K, V]):
    """Records, none of which replaces another."""

    def __init__(self, workspace: Workspace, rows: Callable[[], TopologyRows]) -> None:
        self._workspace, self._rows = workspace, rows

    @property
    def _relation(self) -> TopologyRows:
        return self._rows()

    def _stream(self, relation: TopologyRows) -> "KStream[Any, Any]":
        return KStream(self._workspace, lambda: relation)

    # -- records

    def filter(self, predicate: Predicate) -> "KStream[K, V]":
        """The records for which a condition is true: `col("amount") > 5`, a lambda over it, or a function."""
        callables = Callables(self._relation)
        condition = callables.expression(predicate)
        return self._stream(callables.with_functions().filtered(condition))

    def filter_not(self, predicate: Predicate) -> "KStream[K, V]":
        """The records for which a condition is false."""
        callables = Callables(self._relation)
        condition = Not(callables.expression(predicate))
        return self._stream(callables.with_functions().filtered(condition))

    @overload
    def map_values(self, mapper: Mapping[str, Any]) -> "KStream[K, Row]": ...
    @overload
    def map_values(self, mapper: Expr[W]) -> "KStream[K, W]": ...
    @overload
    def map_values(self, mapper: Callable[..., Expr[W]]) -> "KStream[K, W]": ...
    @overload
    def map_values(self, mapper: Callable[..., Mapping[str, Any]]) -> "KStream[K, Row]": ...
    @overload
    def map_values(self, mapper: Callable[..., W]) -> "KStream[K, W]": ...
    def map_values(self, mapper: Any) -> "KStream[K, Any]":
        """The records with other values: a mapping of column names to expressions, or one expression."""
        return self._stream(map_values(self._relation, mapper))

    def select_key(self, key: Any) -> "KStream[Any, V]":
        """The records with another key: an expression, or a mapping for a key of several columns."""
        relation, columns = key_columns(self._relation, key)
        return self._stream(relation.with_key(columns))

    # -- groups and joins

    def group_by_key(self) -> KGroupedStream[K, V]:
        """The records grouped by their key."""
        relation = self._relation
        if not relation.key:
            raise TopologyError("the records have no key", hint="Group them by an expression: group_by(…).")
        return KGroupedStream(self._workspace, relation, relation.key)

    def group_by(self, key: Any) -> KGroupedStream[Any, V]:
        """The records grouped by an expression, or by a mapping for a key of several columns."""
        relation, columns = key_columns(self._relation, key)
        return KGroupedStream(self._workspace, relation, relation.key_fields(columns))

    @overload
    def join(
        self, other: "KStream[K, J]", joiner: Any = None, windows: JoinWindows | None = None, *, on: Any = None
    ) -> "KStream[K, Any]": ...
    @overload
    def join(self, other: "KTable[K, J]", joiner: Any = None, *, on: Any = None) -> "KStream[K, Any]": ...
    def join(
        self, other: Any, joiner: Any = None, windows: JoinWindows | None = None, *, on: Any = None
    ) -> "KStream[K, Any]":
        """Pairs of records of two streams within `windows`, or records with the row that a table has for their key.

        `joiner` takes both values and returns a mapping or an expression: `lambda order, user: {…}`. With `on`, an
        expression over this stream is compared with the other's key, and becomes the key of the result.
        """
        return self._join("JOIN", other, joiner, windows, on)

    def left_join(
        self, other: Any, joiner: Any = None, windows: JoinWindows | None = None, *, on: Any = None
    ) -> "KStream[K, Any]":
        """As `join`, with all records of this stream; values of the other are NULL where there is none."""
        return self._join("LEFT JOIN", other, joiner, windows, on)

    def outer_join(self, other: "KStream[K, J]", joiner: Any, windows: JoinWindows) -> "KStream[K, Any]":
        """Pairs of records of two streams, and the records of each without a match."""
        return self._join("FULL OUTER JOIN", other, joiner, windows, None)

    def _join(self, join_type: str, other: Any, joiner: Any, windows: JoinWindows | None, on: Any) -> "KStream[K, Any]":
        left, right = self._relation, other._relation
        return self._stream(joins.stream_join(self._workspace, join_type, left, right, joiner, windows, on))

    # -- results

    def to(self, topic: str, produced: Produced[K, V] | None = None) -> None:
        """Write the records to a topic, exactly once; of the changes of a table, a deletion is a null value."""
        self._workspace.write(self._relation, topic, produced or Produced(), name=None)

    def _node(self) -> TopologyNode:
        return self._workspace.node(self._relation)


def map_values(relation: TopologyRows, mapper: Any) -> TopologyRows:
    """The relation with other values."""
    callables = Callables(relation)
    columns = callables.columns(mapper)
    changed = callables.with_functions()
    return changed.with_values(columns) if isinstance(columns, Mapping) else changed.with_value(columns)


def key_columns(relation: TopologyRows, key: Any) -> tuple[TopologyRows, list[tuple[str, Any]]]:
    """The expressions of a new key, with their names if it has several columns."""
    callables = Callables(relation)
    columns = callables.columns(key)
    named = list(columns.items()) if isinstance(columns, Mapping) else [("", columns)]
    return callables.with_functions(), named
