"""Ways to the rows that a query wants of a table: by its key, through an index, or through all of them.

A path serves a query at a time when the path is readable then. An index has all the columns of its table: where the
table's own history does not reach back far enough, the rows can still be those of an index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

import pyarrow as pa

from holdfast.catalog.objects import Index, IndexedView, Table
from holdfast.names import CollectionId, ObjectName
from holdfast.planner.texts import expression_text
from holdfast.runtime.expressions.physical import Dialect, arrow_type, duckdb_type
from holdfast.runtime.expressions.references import references
from holdfast.runtime.expressions.render import render, renderable
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
from holdfast.runtime.expressions.typing import type_of
from holdfast.runtime.store.port import Layout, Part, Relation, SqlReader, Store, Time
from holdfast.types import Decimal, Scalar, SqlType

MOST_GROUPS = 1_000
"""Combinations of constants that are looked up; with more of them, all rows are read."""

NOTHING = Scope.of([])
PLAIN = (StringLiteral, IntegerLiteral, BooleanLiteral)
EXACT = (Scalar.INTEGER, Scalar.BIGINT)


class ReadStore(Store, SqlReader, Protocol):
    """What reads need of a store."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """The groups of an index that the conditions of a query name."""

    index: Index
    groups: pa.Table


@dataclass(frozen=True, slots=True)
class Access:
    """How the rows of a table are read. Without a lookup, all of them: of an index if there is one, else its own."""

    table: Table
    index: Index | None = None
    lookup: Lookup | None = None
    by_key: bool = False

    @property
    def collection(self) -> CollectionId:
        return CollectionId(self.index.name if self.index is not None else self.table.name)

    def relation(self, at: Time) -> Relation:
        if self.index is None or not self.index.expressions:
            return self.collection, at
        return Part(self.collection, at, None if self.lookup is None else self.lookup.groups)

    def rows(self, store: Store, at: Time) -> pa.Table | None:
        """The rows of an index; None when they are the table's own, or as many."""
        relation = self.relation(at)
        return store.find(relation) if isinstance(relation, Part) else None

    def __str__(self) -> str:
        name = self.table.view if isinstance(self.table, IndexedView) else self.table.name
        if self.index is None:
            return f'by the key of table "{name}"' if self.by_key else f'all rows of table "{name}"'
        if self.lookup is not None or self.by_key:
            return f'index "{self.index.name}" on "{name}", looked up by {", ".join(self.index.by)}'
        whole = f'all rows of index "{self.index.name}" on "{name}"'
        return whole if isinstance(self.table, IndexedView) else f"{whole}, which goes further back than the table"


@dataclass(frozen=True, slots=True)
class Paths:
    """The ways to a table's rows that satisfy conditions, whatever else is asked of them.

    `refused` says of each index that cannot be looked up by the conditions why it cannot.
    """

    table: Table
    by_key: bool
    lookups: tuple[Lookup, ...]
    indexes: tuple[Index, ...]
    refused: tuple[tuple[Index, str], ...]

    def at(self, readable: Sequence[ObjectName]) -> Access:
        """The best of those that are readable at the query's time: the fewest rows first."""
        there = [index for index in self.indexes if index.name in readable]
        own = self.table.name in readable and not isinstance(self.table, IndexedView)
        if own and self.by_key:
            return Access(self.table, by_key=True)
        found = [lookup for lookup in self.lookups if lookup.index in there]
        if found:
            best = max(found, key=lambda lookup: len(lookup.index.expressions))
            return Access(self.table, best.index, best)
        default = next((index for index in there if not index.expressions), None)
        if own:
            return Access(self.table)
        if default is not None:
            return Access(self.table, default, by_key=self.by_key)
        return Access(self.table, there[0]) if there else Access(self.table)


def all_rows(table: Table, indexes: Sequence[Index]) -> Access:
    """All rows of a table; those of a view are in the index that it is read by."""
    return Access(table, next((index for index in indexes if index.name == table.name), None))


def names_key(table: Table, conditions: Sequence[Expression]) -> bool:
    """Whether all columns of the key are compared with constants."""
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
            refused.append((index, "it is not there yet"))
        elif index.schema != table.schema or index.window != table.window:
            refused.append((index, "the table has columns that it lacks; drop it and create it again"))
        else:
            usable.append(index)
            found = _groups(index, conditions, layout, store) if index.expressions else None
            if isinstance(found, pa.Table):
                lookups.append(Lookup(index, found))
            elif index.expressions:
                refused.append((index, found or ""))
            elif not by_key:
                refused.append((index, "the WHERE does not name the key by constants"))
    return Paths(table, by_key, tuple(lookups), tuple(usable), tuple(refused))


def _groups(index: Index, conditions: Sequence[Expression], layout: Layout, reader: SqlReader) -> pa.Table | str:
    """The groups that the conditions name; or why they name none."""
    wanted: list[list[object]] = []
    for text, type_ in zip(index.expressions, layout.key, strict=False):
        constants = _constants(text, conditions)
        if constants is None:
            return f"the WHERE does not compare {text} with constants"
        other = next((c for c in constants if not _fits(type_of(c, NOTHING), type_)), None)
        if other is not None:
            return f"{text} is {type_} and compared with {type_of(other, NOTHING)}, which no place in it answers"
        wanted.append(_values(constants, type_, reader))
    rows = list(product(*wanted))
    if len(rows) > MOST_GROUPS:
        return f"the WHERE has {len(rows)} combinations of constants, more than {MOST_GROUPS}"
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(wanted)
    types = [arrow_type(type_) for type_ in layout.key[: len(wanted)]]
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.table({f"k{i}": array for i, array in enumerate(arrays)})


def _constants(text: str, conditions: Sequence[Expression]) -> Sequence[Expression] | None:
    """What an expression is compared with by `=` or IN, in the first condition that does."""
    for condition in conditions:
        match condition:
            case Binary(operator=Operator.EQUAL, left=left, right=right):
                for one, other in ((left, right), (right, left)):
                    if _is_constant(other) and expression_text(one) == text:
                        return (other,)
            case InList(operand=operand, items=items, negated=False):
                if all(map(_is_constant, items)) and expression_text(operand) == text:
                    return items
    return None


def _is_constant(expression: Expression) -> bool:
    """One that the store can evaluate; such an expression gives the same each time."""
    return not references(expression) and renderable(expression, NOTHING, Dialect.DUCKDB)


def _fits(constant: SqlType, type_: SqlType) -> bool:
    """Whether a constant that equals a value of the type is that value after a cast: what is not exact equals none."""
    if constant == type_:
        return True
    numbers = constant in EXACT or isinstance(constant, Decimal)
    if type_ in EXACT or isinstance(type_, Decimal):
        return numbers or (type_ is Scalar.INTEGER and constant is Scalar.DOUBLE)
    return type_ is Scalar.DOUBLE and numbers


def _values(constants: Sequence[Expression], type_: SqlType, reader: SqlReader) -> list[object]:
    """The constants as values of the type; those that it cannot have are left out, as they equal none of it."""
    if all(isinstance(c, PLAIN) and type_of(c, NOTHING) == type_ for c in constants):
        return list(dict.fromkeys(c.value for c in constants if isinstance(c, PLAIN)))
    # As an index has it, 0.0 is in the place of -0.0.
    zero = " + 0e0" if type_ is Scalar.DOUBLE else ""
    wanted = duckdb_type(type_)
    texts = [f"TRY_CAST({render(c, NOTHING, Dialect.DUCKDB)} AS {wanted}){zero}" for c in constants]
    found = reader.evaluate_over(f"SELECT {', '.join(f'{text} AS v{i}' for i, text in enumerate(texts))}", {})
    values = [found.column(i)[0].as_py() for i in range(len(constants))]
    return list(dict.fromkeys(value for value in values if value is not None))
