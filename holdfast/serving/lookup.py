"""Pull queries that ask for one row by its key, prepared once and answered many at a time.

Most of such a query is its parsing, its binding and the planning of its read: here it is bound once, and the keys that
clients ask for at the same time are found by one read.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from holdfast.catalog.objects import CatalogObject, Table
from holdfast.names import CollectionId
from holdfast.runtime.expressions.physical import Dialect, arrow_type
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import Binary, ColumnRef, Expression, IntegerLiteral, Operator, StringLiteral
from holdfast.runtime.expressions.typing import type_of
from holdfast.runtime.store.port import Named, Time
from holdfast.serving.paths import ReadStore
from holdfast.serving.projection import Projection
from holdfast.serving.pull import as_declared
from holdfast.serving.results import ResultColumn
from holdfast.serving.times import Times
from holdfast.sql.bound import BoundSelect
from holdfast.sql.walk import conjuncts
from holdfast.types import Scalar, SqlType

Key = tuple[str | int, ...]
"""A value for each key column."""
Constant = StringLiteral | IntegerLiteral

TAKEN: Mapping[SqlType, tuple[SqlType, ...]] = {
    Scalar.STRING: (Scalar.STRING,),
    Scalar.INTEGER: (Scalar.INTEGER,),
    Scalar.BIGINT: (Scalar.INTEGER, Scalar.BIGINT),
}
"""Types of keys, and of the constants that are compared with them as they are: without a cast, by the index."""

PLAIN = (Scalar.BOOLEAN, Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE, Scalar.STRING)
"""Types whose values the store gives as what they are in JSON; DOUBLE but for what is not finite."""


@dataclass(frozen=True, slots=True)
class KeyRows:
    """The rows of some keys, all as of one time; `places` says which row a key has, if it has one.

    Rows of numbers, texts and booleans are plain values, others Arrow's.
    """

    columns: tuple[ResultColumn, ...]
    rows: pa.Table | list[tuple[Any, ...]]
    places: Mapping[Key, int]
    time: Time
    notice: str | None = None
    encoded: dict[Hashable, list[bytes]] = field(default_factory=dict, compare=False, repr=False)


class KeyLookup:
    """A SELECT from a table in which only the key is left open."""

    def __init__(self, bound: BoundSelect, constants: Sequence[Constant], store: ReadStore) -> None:
        """`constants` are what the query compares the key columns with, in the order of the key."""
        assert isinstance(bound.relation, Table)
        self.constants = tuple(constants)
        self._table = bound.relation
        self._store, self._collection = store, CollectionId(bound.relation.name)
        self._projection = Projection(bound)
        self.columns = self._projection.columns
        keys = range(len(self.constants))
        items = self._projection.items(self._projection.scope(), Dialect.DUCKDB)
        self._select = f"SELECT {', '.join([*items, *(f'k{i} AS q{i}' for i in keys)])} FROM t"
        self._plain = all(column.type in PLAIN for column in self.columns)
        types = store.collections()[self._collection].key
        self._keys = pa.schema([(f"k{i}", arrow_type(type_)) for i, type_ in enumerate(types)])

    @property
    def key(self) -> Key:
        """The key that the query was written with."""
        return tuple(constant.value for constant in self.constants)

    def read(self, keys: Sequence[Key], times: Times) -> KeyRows:
        """The rows of keys at the latest final time."""
        wanted = list(dict.fromkeys(keys))
        readable = times.latest(self._table)
        asked = [pa.array(part, field.type) for part, field in zip(zip(*wanted, strict=True), self._keys, strict=True)]
        named = Named(self._collection, readable.time, pa.Table.from_arrays(asked, schema=self._keys))
        if self._plain:
            told = self._store.evaluate_tuples(self._select, {"t": named})
            count = len(self.columns)
            places = {row[count:]: place for place, row in enumerate(told)}
            return KeyRows(self.columns, [row[:count] for row in told], places, readable.time, readable.notice)
        found = self._store.evaluate(self._select, {"t": named})
        names = [f"q{i}" for i in range(len(self.constants))]
        places = {
            key: place for place, key in enumerate(zip(*(found.column(n).to_pylist() for n in names), strict=True))
        }
        rows = as_declared(found.drop_columns(names), self._projection)
        return KeyRows(self.columns, rows, places, readable.time, readable.notice)


def key_lookup(bound: BoundSelect, store: ReadStore) -> KeyLookup | None:
    """A query as a lookup, if all that it says of its rows is which key they have."""
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
    given: dict[str, Constant] = {}
    for condition in conjuncts(bound.where):
        named = _named_key(condition, relation)
        if named is None or named[0] in given:
            return None
        given[named[0]] = named[1]
    if given.keys() != {column.name for column in relation.schema.key}:
        return None
    return KeyLookup(bound, [given[column.name] for column in relation.schema.key], store)


def _named_key(condition: Expression, relation: CatalogObject) -> tuple[str, Constant] | None:
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
    return (name, constant) if type_of(constant, Scope.of([])) in TAKEN.get(column.type, ()) else None
