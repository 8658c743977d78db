"""Pull queries that do more than filter and project one relation: joins, groups, subqueries, views."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from holdfast.catalog.objects import Index, IndexedView, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import WrongObjectKind
from holdfast.names import ObjectName
from holdfast.runtime.expressions.physical import Dialect, NotRenderable
from holdfast.runtime.expressions.tree import Expression
from holdfast.sql.literals.moment import BoundAsOf, bind_as_of
from holdfast.sql.query.aggregation import aggregates
from holdfast.sql.query.view_definition import relations_of, view_query
from holdfast.sql.read.compile import ReadCompiler
from holdfast.sql.read.indexed_view import indexed_view
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.walk import walk
from holdfast.types import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundRead:
    """A pull query, which reads all of its relations at one time.

    `sql` returns the columns as `r0`, `r1`, … and refers to tables by their names in `relations`; their columns have
    the names of the store. The `dialect` is the store's if the whole query is proven to give equal results there, else
    Spark's.
    """

    sql: str
    dialect: Dialect
    columns: tuple[Column, ...]
    relations: tuple[tuple[str, Table], ...]
    as_of: BoundAsOf | None = None
    indexes: tuple[Index, ...] = ()
    """The indexes on its relations."""
    conditions: Mapping[str, tuple[Expression, ...]] = field(default_factory=dict)
    """By relation: the conditions that all rows used by the query satisfy."""
    indexed: "BoundRead | None" = None
    """The same query over the indexes of the views that it reads; None without such indexes."""

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple({table.name: table for _, table in self.relations}.values())


def computes(select: sql.Select) -> bool:
    """Whether a query does more than filter and project the rows of one relation."""
    if select.tables or select.unions or select.joins or select.group_by or select.order_by:
        return True
    if select.distinct or select.offset or select.having is not None or select.relation.query is not None:
        return True
    if any(clause.name == "GROUP BY ()" for clause in select.clauses):
        return True
    return any(
        aggregates(expression) or any(isinstance(node, sql.QueryRef) for node in walk(expression))
        for expression in _expressions(select)
    )


def bind_read(select: sql.Select, catalog: Catalog) -> BoundRead:
    """Bind a pull query, and if it reads views with indexes, also its variant over those indexes."""
    indexed = (
        _bound(select, catalog, _Finder(catalog, indexed=True))
        if _reads_indexed(relations_of(select), catalog)
        else None
    )
    try:
        return replace(_bound(select, catalog, _Finder(catalog)), indexed=indexed)
    except WrongObjectKind:
        # A view of a stream has rows only in its indexes.
        if indexed is None:
            raise
        return indexed


def _bound(select: sql.Select, catalog: Catalog, find: "_Finder") -> BoundRead:
    """Compile for the store, or for Spark if the store's dialect has no proven form of some part of the query."""
    try:
        return compiled(select, catalog, Dialect.DUCKDB, find)
    except NotRenderable:
        return compiled(select, catalog, Dialect.SPARK, find)


def compiled(select: sql.Select, catalog: Catalog, dialect: Dialect, find: "_Finder | None" = None) -> BoundRead:
    """The query in one SQL dialect; raises `NotRenderable` if the dialect has no proven form of it."""
    compiler = ReadCompiler(find or _Finder(catalog), dialect)
    block = compiler.query(select)
    tables = {table.name: table for table in compiler.relations.values()}
    return BoundRead(
        sql=block.sql,
        dialect=dialect,
        columns=block.columns,
        relations=tuple(compiler.relations.items()),
        as_of=bind_as_of(select.as_of),
        indexes=tuple(index for table in tables.values() for index in _indexes(table, catalog)),
        conditions=compiler.conditions,
    )


def reads_view(select: sql.Select, catalog: Catalog) -> bool:
    return any(name in catalog.views for name in relations_of(select))


def _reads_indexed(names: Iterable[str], catalog: Catalog) -> bool:
    """Whether one of the relations is a view that has an index, or that reads such a view."""
    views = [view for name in names if (view := catalog.views.get(ObjectName(name))) is not None]
    return any(catalog.indexes_on(view.name) or _reads_indexed(view.sources, catalog) for view in views)


def _indexes(table: Table, catalog: Catalog) -> Iterator[Index]:
    """The indexes with the rows of a table; those of an indexed view, under the name by which it is read."""
    if not isinstance(table, IndexedView):
        yield from catalog.indexes_on(table.name)
        return
    for index in catalog.indexes_on(table.view):
        if index.schema == table.schema:
            yield replace(index, on=table.name)


@dataclass(frozen=True, slots=True)
class _Finder:
    """Looks up the relations of a FROM clause. A view is its query or, with `indexed`, the table in its index."""

    catalog: Catalog
    indexed: bool = False

    def __call__(self, reference: sql.RelationReference) -> Table | sql.Select:
        view = self.catalog.views.get(ObjectName(reference.full_name))
        if view is not None:
            indexed = indexed_view(view, self.catalog) if self.indexed else None
            return view_query(view, self.catalog) if indexed is None else indexed
        found = self.catalog.relation(reference.full_name, position=reference.position)
        if not isinstance(found, Table):
            raise WrongObjectKind(
                f'"{found.name}" is a stream and has no current rows',
                hint="Add EMIT CHANGES to follow it.",
                position=reference.position,
            )
        return found


def _expressions(select: sql.Select) -> Iterator[Expression]:
    for item in select.items:
        if isinstance(item, sql.SelectExpression):
            yield item.expression
        elif isinstance(item, sql.SelectFields):
            yield item.base
    if select.where is not None:
        yield select.where
