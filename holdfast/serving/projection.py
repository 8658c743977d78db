"""The select list and WHERE of a query over one relation, as SQL over columns by position."""

from dataclasses import dataclass

import pyarrow as pa

from holdfast.catalog.objects import CatalogObject, Stream
from holdfast.runtime import physical_columns as col
from holdfast.runtime.compiler.inference import type_of
from holdfast.runtime.compiler.sql import render, render_filter, renderable
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.references import references
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.tree import (
    Binary,
    ColumnRef,
    DecimalLiteral,
    DoubleLiteral,
    Expression,
    InList,
    IntegerLiteral,
    Operator,
    StringLiteral,
)
from holdfast.runtime.physical_columns import Side
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.spark.engine import Engine, Round
from holdfast.serving.results import ResultColumn
from holdfast.sql.query.relation import WINDOW_BOUNDS
from holdfast.sql.read.select import BoundSelect
from holdfast.types import Column, Scalar

START = Column("WINDOWSTART", WINDOW_BOUNDS["WINDOWSTART"])
CONSTANTS = (StringLiteral, IntegerLiteral, DecimalLiteral, DoubleLiteral)


@dataclass(frozen=True, slots=True)
class Projection:
    """A bound SELECT over one relation."""

    bound: BoundSelect

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return tuple(ResultColumn(c.name, c.type) for c in self.bound.columns)

    @property
    def dialect(self) -> Dialect:
        """The store's dialect if every expression is proven to give equal results there; otherwise Spark's."""
        scope = self.scope()
        expressions = [c.expression for c in self.bound.columns] + ([self.bound.where] if self.bound.where else [])
        proven = all(renderable(expression, scope, Dialect.DUCKDB) for expression in expressions)
        return Dialect.DUCKDB if proven else Dialect.SPARK

    def plain_columns(self) -> list[str] | None:
        """The selected columns of the relation, if the query selects nothing but columns and has no WHERE."""
        if self.bound.where is not None:
            return None
        scope = self.scope()
        expressions = [column.expression for column in self.bound.columns]
        refs = [expression for expression in expressions if isinstance(expression, ColumnRef)]
        return [scope.find(ref).sql for ref in refs] if len(refs) == len(expressions) else None

    def scope(self, side: Side | None = None) -> Scope:
        """The columns of the relation; in a delta, those of a `side`."""
        value, row_time = (col.value, col.ROW_TIME) if side is None else (side.column, side.row_time)
        relation = self.bound.relation
        columns = [ScopeColumn(c.name, c.type, col.key(i)) for i, c in enumerate(relation.schema.key)]
        columns += [ScopeColumn(c.name, c.type, value(i)) for i, c in enumerate(relation.schema.row)]
        if relation.window is not None:
            first = len(relation.schema.key)
            columns += [ScopeColumn(c, type_, col.key(first + i)) for i, (c, type_) in enumerate(WINDOW_BOUNDS.items())]
        pseudo = [ScopeColumn("ROWTIME", Scalar.BIGINT, row_time)]
        if isinstance(relation, Stream):
            pseudo += [
                ScopeColumn("ROWPARTITION", Scalar.INTEGER, col.PARTITION),
                ScopeColumn("ROWOFFSET", Scalar.BIGINT, col.OFFSET),
            ]
        names = {column.name for column in columns}
        return Scope.of([*columns, *(c for c in pseudo if c.name not in names)], relation=relation.name)

    def items(self, scope: Scope, dialect: Dialect, name: str = "r") -> list[str]:
        rendered = (render(c.expression, scope, dialect) for c in self.bound.columns)
        return [f"{sql} AS {name}{i}" for i, sql in enumerate(rendered)]

    def key_items(self, scope: Scope, dialect: Dialect) -> list[str]:
        """The select list of a deleted row: only expressions over key columns have a value."""
        keys = {column.name for column in self.bound.relation.schema.key} | set(WINDOW_BOUNDS)
        items = []
        for i, column in enumerate(self.bound.columns):
            known = references(column.expression) <= keys
            items.append(f"{render(column.expression, scope, dialect)} AS r{i}" if known else f"NULL AS r{i}")
        return items

    def condition(self, scope: Scope, dialect: Dialect) -> str:
        return render_filter(self.bound.where, scope, dialect) if self.bound.where else "true"

    def select(self, relation: str, dialect: Dialect, *, limit: int | None = None) -> str:
        """The SELECT over `relation`."""
        scope = self.scope()
        where = self.condition(scope, dialect)
        tail = f" LIMIT {limit}" if limit is not None else ""
        return f"SELECT {', '.join(self.items(scope, dialect))} FROM {relation} WHERE {where}{tail}"

    def named_keys(self) -> list[list[str]] | None:
        """The keys that the WHERE compares with constants, as SQL; None if it does not restrict the key that way."""
        relation, where = self.bound.relation, self.bound.where
        if where is None:
            return None
        by_column: list[list[str]] = []
        for column in relation.schema.key:
            values = _values(column.name, where, relation)
            if values is None:
                return None
            by_column.append(values)
        if relation.window is not None:
            return self._named_windows(by_column)
        if len(by_column) == 1:
            return [[value] for value in by_column[0]]
        return [[values[0] for values in by_column]] if all(len(values) == 1 for values in by_column) else None

    def _named_windows(self, by_column: list[list[str]]) -> list[list[str]] | None:
        """The keys with their windows: the end of a time window follows from its start."""
        relation, where = self.bound.relation, self.bound.where
        size = None if relation.window is None else value_of(relation.window.size)
        if where is None or size is None or any(len(values) != 1 for values in by_column):
            return None
        starts = _values(START.name, where, relation)
        if starts is None:
            return None
        key = [values[0] for values in by_column]
        return [[*key, start, f"TRY(CAST({start} AS BIGINT) + {size.millis})"] for start in starts]


def _values(column: str, where: Expression, relation: CatalogObject) -> list[str] | None:
    """The constants with which a conjunct compares a column."""
    match where:
        case Binary(operator=Operator.AND, left=left, right=right):
            return _values(column, left, relation) or _values(column, right, relation)
        case Binary(operator=Operator.EQUAL, left=ColumnRef(name=name), right=constant) if name == column:
            return _constants([constant], column, relation)
        case Binary(operator=Operator.EQUAL, left=constant, right=ColumnRef(name=name)) if name == column:
            return _constants([constant], column, relation)
        case InList(operand=ColumnRef(name=name), items=items, negated=False) if name == column:
            return _constants(list(items), column, relation)
        case _:
            return None


def _constants(items: list[Expression], column: str, relation: CatalogObject) -> list[str] | None:
    """The constants as SQL if they have the column's type: others need a cast, for which an index cannot be used."""
    declared = START if column == START.name and relation.window is not None else relation.schema.find(column)
    no_columns = Scope.of([])
    if declared is None or not all(isinstance(item, CONSTANTS) for item in items):
        return None
    if declared.type is Scalar.DOUBLE:  # 0.0 equals -0.0, but they are different keys.
        return None
    types = {type_of(item, no_columns) for item in items}
    widened = declared.type is Scalar.BIGINT and types <= {Scalar.INTEGER, Scalar.BIGINT}
    if types != {declared.type} and not widened:
        return None
    return [render(item, no_columns, Dialect.DUCKDB) for item in items]


def on_spark(engine: Engine, projection: Projection, rows: pa.Table, limit: int | None = None) -> pa.Table:
    """Evaluate on Spark, for functions that are not proven equal in the store's dialect."""
    return engine.read(projection.select("client_rows", Dialect.SPARK, limit=limit), Round({"client_rows": rows}, {}))
