"""Access paths to the rows of a table: by its key, the windows of a key, through an index, or all of them.

A path can serve a query if it is readable at the query's time. An index has all columns of its table, so it can serve
times that the table's own history no longer covers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

import pyarrow as pa

from holdfast.catalog.objects import Index, IndexedView, Table
from holdfast.names import CollectionId, ObjectName
from holdfast.runtime import physical_columns as col
from holdfast.runtime.compiler.inference import type_of
from holdfast.runtime.compiler.sql import render, renderable
from holdfast.runtime.expressions.physical import Dialect, arrow_type, duckdb_type
from holdfast.runtime.expressions.references import references
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import (
    Binary,
    BooleanLiteral,
    ColumnRef,
    Expression,
    InList,
    IntegerLiteral,
    Operator,
    StringLiteral,
)
from holdfast.runtime.store.port import GroupRead, Layout, Relation, SqlReader, Store, Time
from holdfast.sql.plan_text import expression_text
from holdfast.types import Decimal, Scalar, SqlType

MAX_GROUPS = 1_000
"""Limit of combinations of constants to look up; above it, all rows are read."""

NO_COLUMNS = Scope.of([])
PLAIN = (StringLiteral, IntegerLiteral, BooleanLiteral)
EXACT = (Scalar.INTEGER, Scalar.BIGINT)


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

    `windows_of` has keys of a windowed table without their windows: only their rows are read.
    """

    table: Table
    index: Index | None = None
    lookup: Lookup | None = None
    by_key: bool = False
    windows_of: pa.Table | None = None

    @property
    def collection(self) -> CollectionId:
        return CollectionId(self.index.name if self.index is not None else self.table.name)

    def relation(self, at: Time) -> Relation:
        if self.windows_of is not None:
            return GroupRead(self.collection, at, self.windows_of, with_group=True)
        if self.index is None or not self.index.expressions:
            return self.collection, at
        return GroupRead(self.collection, at, None if self.lookup is None else self.lookup.groups)

    def rows(self, store: Store, at: Time) -> pa.Table | None:
        """The rows of an index on expressions, or of some keys; None for all rows of the table or its default index."""
        relation = self.relation(at)
        return store.read_groups(relation) if isinstance(relation, GroupRead) else None

    def __str__(self) -> str:
        name = self.table.view if isinstance(self.table, IndexedView) else self.table.name
        if self.index is None and self.windows_of is not None:
            return f'all windows of the key in table "{name}"'
        if self.index is None:
            return f'by the key of table "{name}"' if self.by_key else f'all rows of table "{name}"'
        if self.lookup is not None or self.by_key:
            return f'index "{self.index.name}" on "{name}", looked up by {", ".join(self.index.by)}'
        text = f'all rows of index "{self.index.name}" on "{name}"'
        return text if isinstance(self.table, IndexedView) else f"{text}, which goes further back than the table"


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths to the rows of a table that satisfy conditions.

    `windows_of` has the keys that the conditions name of a windowed table, without their windows. `refused` has the
    indexes in which the conditions cannot be looked up, and why.
    """

    table: Table
    by_key: bool
    windows_of: pa.Table | None
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
        if table_readable and self.windows_of is not None:
            return Access(self.table, windows_of=self.windows_of)
        default = next((index for index in indexes if not index.expressions), None)
        if table_readable:
            return Access(self.table)
        if default is not None:
            return Access(self.table, default, by_key=self.by_key)
        return Access(self.table, indexes[0]) if indexes else Access(self.table)

    def _windows_are_fewer(self, lookup: Lookup) -> bool:
        """Whether the windows of a key are probably fewer rows than what an index finds."""
        return self.windows_of is not None and len(lookup.index.expressions) <= self.windows_of.num_columns


def all_rows(table: Table, indexes: Sequence[Index]) -> Access:
    """All rows of a table; those of a view are in its index."""
    return Access(table, next((index for index in indexes if index.name == table.name), None))


def names_key(table: Table, conditions: Sequence[Expression]) -> bool:
    """Whether the conditions compare every key column with constants."""
    return all(_constants(expression_text(ColumnRef(c.name)), conditions) is not None for c in table.schema.key)


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
            found = _groups(index.expressions, conditions, layout, store) if index.expressions else None
            if isinstance(found, pa.Table):
                lookups.append(Lookup(index, found))
            elif index.expressions:
                refused.append((index, found or ""))
            elif not by_key:
                refused.append((index, "the WHERE does not name the key by constants"))
    windows_of = _windows_of(table, conditions, store)
    return Paths(table, by_key, windows_of, tuple(lookups), tuple(usable), tuple(refused))


def _windows_of(table: Table, conditions: Sequence[Expression], store: ReadStore) -> pa.Table | None:
    """The keys that the conditions name, of a table whose rows are grouped by them."""
    layout = store.collections().get(CollectionId(table.name))
    if table.window is None or layout is None or not layout.group:
        return None
    if Scalar.DOUBLE in layout.key[: layout.group]:  # 0.0 equals -0.0, but they are different keys.
        return None
    names = [expression_text(ColumnRef(column.name)) for column in table.schema.key]
    found = _groups(names, conditions, layout, store)
    return found if isinstance(found, pa.Table) else None


def _groups(names: Sequence[str], conditions: Sequence[Expression], layout: Layout, reader: SqlReader) -> pa.Table | str:
    """The groups that the conditions on some expressions select, or why they cannot be looked up."""
    by_column: list[list[object]] = []
    for text, type_ in zip(names, layout.key, strict=False):
        constants = _constants(text, conditions)
        if constants is None:
            return f"the WHERE does not compare {text} with constants"
        unfit = next((c for c in constants if not _fits(type_of(c, NO_COLUMNS), type_)), None)
        if unfit is not None:
            return f"{text} is {type_} and compared with {type_of(unfit, NO_COLUMNS)}, which it cannot look up"
        by_column.append(_values(constants, type_, reader))
    rows = list(product(*by_column))
    if len(rows) > MAX_GROUPS:
        return f"the WHERE has {len(rows)} combinations of constants, more than {MAX_GROUPS}"
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(by_column)
    types = [arrow_type(type_) for type_ in layout.key[: len(by_column)]]
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.table({col.key(i): array for i, array in enumerate(arrays)})


def _constants(text: str, conditions: Sequence[Expression]) -> Sequence[Expression] | None:
    """The constants with which the first `=` or IN condition compares an expression."""
    for condition in conditions:
        match condition:
            case Binary(operator=Operator.EQUAL, left=left, right=right):
                for operand, constant in ((left, right), (right, left)):
                    if _is_constant(constant) and expression_text(operand) == text:
                        return (constant,)
            case InList(operand=operand, items=items, negated=False):
                if all(map(_is_constant, items)) and expression_text(operand) == text:
                    return items
    return None


def _is_constant(expression: Expression) -> bool:
    """Whether the store can evaluate the expression without a row. Such an expression is deterministic."""
    return not references(expression) and renderable(expression, NO_COLUMNS, Dialect.DUCKDB)


def _fits(constant: SqlType, type_: SqlType) -> bool:
    """Whether casting the constant to the type preserves equality: what the type cannot represent equals none of it."""
    if constant == type_:
        return True
    numbers = constant in EXACT or isinstance(constant, Decimal)
    if type_ in EXACT or isinstance(type_, Decimal):
        return numbers or (type_ is Scalar.INTEGER and constant is Scalar.DOUBLE)
    return type_ is Scalar.DOUBLE and numbers


def _values(constants: Sequence[Expression], type_: SqlType, reader: SqlReader) -> list[object]:
    """The constants as values of the type, without those that it cannot represent, as they equal none of its values."""
    if all(isinstance(c, PLAIN) and type_of(c, NO_COLUMNS) == type_ for c in constants):
        return list(dict.fromkeys(c.value for c in constants if isinstance(c, PLAIN)))
    # An index stores -0.0 as 0.0.
    zero = " + 0e0" if type_ is Scalar.DOUBLE else ""
    target = duckdb_type(type_)
    texts = [f"TRY_CAST({render(c, NO_COLUMNS, Dialect.DUCKDB)} AS {target}){zero}" for c in constants]
    found = reader.evaluate_over(f"SELECT {', '.join(f'{text} AS v{i}' for i, text in enumerate(texts))}", {})
    values = [found.column(i)[0].as_py() for i in range(len(constants))]
    return list(dict.fromkeys(value for value in values if value is not None))
