"""Pull queries for one row by its key: prepared once, executed in batches.

Most of the cost of such a query is parsing, binding and planning. Here it is bound once, and one read serves all keys
that clients request at the same time.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from holdfast.catalog.objects import CatalogObject, Table
from holdfast.names import CollectionId
from holdfast.runtime import physical_columns as col
from holdfast.runtime.compiler.inference import type_of
from holdfast.runtime.expressions.physical import Dialect, arrow_type
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import Binary, ColumnRef, Expression, IntegerLiteral, Operator, StringLiteral
from holdfast.runtime.store.port import KeyRead, Time
from holdfast.serving.projection import Projection
from holdfast.serving.pull.paths import ReadStore
from holdfast.serving.pull.table import as_declared
from holdfast.serving.results import ResultColumn
from holdfast.serving.time.read_times import Times
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.walk import conjuncts
from holdfast.types import Scalar, SqlType

Key = tuple[str | int, ...]
"""A value for each key column."""
Constant = StringLiteral | IntegerLiteral

COMPARABLE: Mapping[SqlType, tuple[SqlType, ...]] = {
    Scalar.STRING: (Scalar.STRING,),
    Scalar.INTEGER: (Scalar.INTEGER,),
    Scalar.BIGINT: (Scalar.INTEGER, Scalar.BIGINT),
}
"""Key types, and the types of constants that an index compares with them without a cast."""

PLAIN = (Scalar.BOOLEAN, Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE, Scalar.STRING)
"""Types whose values the store returns in the form that JSON uses, except for non-finite doubles."""


@dataclass(frozen=True, slots=True)
class KeyRows:
    """The rows of some keys, all as of one time. `positions` has the row index of each key that has a row.

    Rows of numbers, strings and booleans only are Python tuples; others are Arrow.
    """

    columns: tuple[ResultColumn, ...]
    rows: pa.Table | list[tuple[Any, ...]]
    positions: Mapping[Key, int]
    time: Time
    notice: str | None = None
    encoded: dict[Hashable, list[bytes]] = field(default_factory=dict, compare=False, repr=False)


class KeyLookup:
    """A prepared SELECT from a table by its key."""

    def __init__(self, bound: BoundSelect, constants: Sequence[Constant], store: ReadStore) -> None:
        """`constants` has one constant per key column, in order."""
        assert isinstance(bound.relation, Table)
        self.constants = tuple(constants)
        self._table = bound.relation
        self._store, self._collection = store, CollectionId(bound.relation.name)
        self._projection = Projection(bound)
        self.columns = self._projection.columns
        keys = range(len(self.constants))
        items = self._projection.items(self._projection.scope(), Dialect.DUCKDB)
        self._select = f"SELECT {', '.join([*items, *(f'{col.key(i)} AS q{i}' for i in keys)])} FROM t"
        self._plain = all(column.type in PLAIN for column in self.columns)
        types = store.collections()[self._collection].key
        self._keys = pa.schema([(col.key(i), arrow_type(type_)) for i, type_ in enumerate(types)])

    @property
    def key(self) -> Key:
        """The key in the query's text."""
        return tuple(constant.value for constant in self.constants)

    def read(self, keys: Sequence[Key], times: Times) -> KeyRows:
        """The rows of keys at the latest final time."""
        distinct = list(dict.fromkeys(keys))
        readable = times.latest(self._table)
        values = [
            pa.array(column, field.type) for column, field in zip(zip(*distinct, strict=True), self._keys, strict=True)
        ]
        key_read = KeyRead(self._collection, readable.time, pa.Table.from_arrays(values, schema=self._keys))
        if self._plain:
            tuples = self._store.evaluate_tuples(self._select, {"t": key_read})
            count = len(self.columns)
            positions = {row[count:]: i for i, row in enumerate(tuples)}
            return KeyRows(self.columns, [row[:count] for row in tuples], positions, readable.time, readable.notice)
        found = self._store.evaluate(self._select, {"t": key_read})
        names = [f"q{i}" for i in range(len(self.constants))]
        positions = {key: i for i, key in enumerate(zip(*(found.column(n).to_pylist() for n in names), strict=True))}
        rows = as_declared(found.drop_columns(names), self._projection)
        return KeyRows(self.columns, rows, positions, readable.time, readable.notice)


def key_lookup(bound: BoundSelect, store: ReadStore) -> KeyLookup | None:
    """The query as a lookup, if its only condition is the key."""
    relation = bound.relation
    if not isinstance(relation, Table) or bound.where is None or bound.limit is not None:
        return None
    if bound.as_of is not None:
        return None
    if Projection(bound).dialect is not Dialect.DUCKDB:
        return None
    layout = store.collections().get(CollectionId(relation.name))
    if layout is None or layout.key != tuple(column.type for column in relation.schema.key):
        return None
    constants: dict[str, Constant] = {}
    for condition in conjuncts(bound.where):
        comparison = _key_comparison(condition, relation)
        if comparison is None or comparison[0] in constants:
            return None
        constants[comparison[0]] = comparison[1]
    if constants.keys() != {column.name for column in relation.schema.key}:
        return None
    return KeyLookup(bound, [constants[column.name] for column in relation.schema.key], store)


def _key_comparison(condition: Expression, relation: CatalogObject) -> tuple[str, Constant] | None:
    """The key column and the constant of `column = constant`, if the condition has that form."""
    match condition:
        case Binary(operator=Operator.EQUAL, left=ColumnRef(name=name), right=constant):
            pass
        case Binary(operator=Operator.EQUAL, left=constant, right=ColumnRef(name=name)):
            pass
        case _:
            return None
    column = next((column for column in relation.schema.key if column.name == name), None)
    if column is None or not isinstance(constant, StringLiteral | IntegerLiteral):
        return None
    return (name, constant) if type_of(constant, Scope.of([])) in COMPARABLE.get(column.type, ()) else None
