"""Access paths to the rows of a table: by its key, the windows of a key, through an index, or all of them.

A path can serve a query if it is readable at the query's time. An index has all columns of its table, so it can serve
times that the table's own history no longer covers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from holdfast.catalog.objects import Index, IndexedView, Table
from holdfast.names import CollectionId, ObjectName
from holdfast.runtime.expressions.tree import ColumnRef, Expression
from holdfast.runtime.store.port import GroupRead, Relation, SqlReader, Store, Time
from holdfast.serving.pull.constants import constants_of, named_groups
from holdfast.serving.pull.window_range import WindowRange, window_range
from holdfast.sql.plan_text import expression_text


class ReadStore(Store, SqlReader, Protocol):
    """A store that evaluates SQL over its collections."""

    @property
    def max_result_bytes(self) -> int:
        """The size of the largest result; a larger one is a `ResultTooLarge`."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """The groups of an index that a query's conditions name."""

    index: Index
    groups: pa.Table


@dataclass(frozen=True, slots=True)
class Access:
    """How the rows of a table are read. Without a lookup, all rows: of `index` if set, otherwise of the table.

    With `windows`, only those of some keys are read.
    """

    table: Table
    index: Index | None = None
    lookup: Lookup | None = None
    by_key: bool = False
    windows: WindowRange | None = None

    @property
    def collection(self) -> CollectionId:
        return CollectionId(self.index.name if self.index is not None else self.table.name)

    def relation(self, at: Time) -> Relation:
        if self.windows is not None:
            return self.windows.read(self.collection, at)
        if self.index is None or not self.index.expressions:
            return self.collection, at
        return GroupRead(self.collection, at, None if self.lookup is None else self.lookup.groups)

    def rows(self, store: Store, at: Time) -> pa.Table | None:
        """The rows of an index on expressions, or of some keys; None for all rows of the table or its default index."""
        relation = self.relation(at)
        return store.read_groups(relation) if isinstance(relation, GroupRead) else None

    def __str__(self) -> str:
        name = self.table.view if isinstance(self.table, IndexedView) else self.table.name
        if self.index is None and self.windows is not None:
            return f'by the key and {self.windows} of table "{name}"'
        if self.index is None:
            return f'by the key of table "{name}"' if self.by_key else f'all rows of table "{name}"'
        if self.lookup is not None or self.by_key:
            return f'index "{self.index.name}" on "{name}", looked up by {", ".join(self.index.by)}'
        text = f'all rows of index "{self.index.name}" on "{name}"'
        return text if isinstance(self.table, IndexedView) else f"{text}, which goes further back than the table"


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths to the rows of a table that satisfy conditions.

    `windows` are those that the conditions name by their keys. `refused` has the indexes in which the conditions cannot
    be looked up, and why.
    """

    table: Table
    by_key: bool
    windows: WindowRange | None
    lookups: tuple[Lookup, ...]
    indexes: tuple[Index, ...]
    refused: tuple[tuple[Index, str], ...]

    def at(self, readable: Sequence[ObjectName]) -> Access:
        """The path with the fewest rows, of those that are readable at the query's time."""
        indexes = [index for index in self.indexes if index.name in readable]
        table_readable = self.table.name in readable and not isinstance(self.table, IndexedView)
        if table_readable and self.by_key:
            return Access(self.table, by_key=True)
        found = [lookup for lookup in self.lookups if lookup.index in indexes]
        if found:
            best = max(found, key=lambda lookup: len(lookup.index.expressions))
            if not table_readable or not self._windows_are_fewer(best):
                return Access(self.table, best.index, best)
        if table_readable and self.windows is not None:
            return Access(self.table, windows=self.windows)
        default = next((index for index in indexes if not index.expressions), None)
        if table_readable:
            return Access(self.table)
        if default is not None:
            return Access(self.table, default, by_key=self.by_key)
        return Access(self.table, indexes[0]) if indexes else Access(self.table)

    def _windows_are_fewer(self, lookup: Lookup) -> bool:
        """Whether the windows of a key are probably fewer rows than what an index finds."""
        return self.windows is not None and len(lookup.index.expressions) <= self.windows.keys.num_columns


def all_rows(table: Table, indexes: Sequence[Index]) -> Access:
    """All rows of a table; those of a view are in its index."""
    return Access(table, next((index for index in indexes if index.name == table.name), None))


def names_key(table: Table, conditions: Sequence[Expression]) -> bool:
    """Whether the conditions compare every key column with constants."""
    return all(constants_of(expression_text(ColumnRef(c.name)), conditions) is not None for c in table.schema.key)


def paths_to(
    table: Table, conditions: Sequence[Expression], indexes: Sequence[Index], store: ReadStore, *, by_key: bool
) -> Paths:
    """The paths to rows for which all conditions are true."""
    lookups: list[Lookup] = []
    usable: list[Index] = []
    refused: list[tuple[Index, str]] = []
    layouts = store.collections()
    for index in indexes:
        if index.on != table.name:
            continue
        layout = layouts.get(CollectionId(index.name))
        if layout is None:
            refused.append((index, "it is still being created"))
        elif index.schema != table.schema or index.window != table.window:
            refused.append((index, "it lacks columns of the table; drop it and create it again"))
        else:
            usable.append(index)
            found = named_groups(index.expressions, conditions, layout, store) if index.expressions else None
            if isinstance(found, pa.Table):
                lookups.append(Lookup(index, found))
            elif index.expressions:
                refused.append((index, found or ""))
            elif not by_key:
                refused.append((index, "the WHERE does not name the key by constants"))
    windows = window_range(table, conditions, layouts, store)
    return Paths(table, by_key, windows, tuple(lookups), tuple(usable), tuple(refused))
