"""Binds queries that read: those that one relation's rows do not answer one by one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from holdfast.catalog.objects import Index, IndexedView, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import WrongObjectKind
from holdfast.names import ObjectName
from holdfast.runtime.expressions.physical import Dialect, NotRenderable
from holdfast.runtime.expressions.tree import Expression
from holdfast.sql import statements as sql
from holdfast.sql.aggregation import aggregates
from holdfast.sql.bound_read import BoundRead
from holdfast.sql.indexed_view import indexed_view
from holdfast.sql.moments import bind_as_of
from holdfast.sql.read_compile import ReadCompiler
from holdfast.sql.views import relations_of, view_query
from holdfast.sql.walk import walk


def computes(select: sql.Select) -> bool:
    """Whether a query does more than choose and show rows of one relation."""
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
    """A query that is answered once, also over what is kept of the views that it reads."""
    kept = _bound(select, catalog, _Finder(catalog, kept=True)) if _reads_kept(relations_of(select), catalog) else None
    try:
        return replace(_bound(select, catalog, _Finder(catalog)), kept=kept)
    except WrongObjectKind:
        # A view of a stream has rows where they are kept, and nowhere else.
        if kept is None:
            raise
        return kept


def _bound(select: sql.Select, catalog: Catalog, find: "_Finder") -> BoundRead:
    """By Spark, when the store's dialect has no proven form of a part of it."""
    try:
        return compiled(select, catalog, Dialect.DUCKDB, find)
    except NotRenderable:
        return compiled(select, catalog, Dialect.SPARK, find)


def compiled(select: sql.Select, catalog: Catalog, dialect: Dialect, find: "_Finder | None" = None) -> BoundRead:
    """The query as the SQL of one dialect; `NotRenderable` where that has no proven form of it."""
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


def _reads_kept(names: Iterable[str], catalog: Catalog) -> bool:
    """Whether one of several relations is a view that has an index, or reads one."""
    views = [view for name in names if (view := catalog.views.get(ObjectName(name))) is not None]
    return any(catalog.indexes_on(view.name) or _reads_kept(view.sources, catalog) for view in views)


def _indexes(table: Table, catalog: Catalog) -> Iterator[Index]:
    """The indexes that have the rows of a table; those of a view stand for it under the name that it is read by."""
    if not isinstance(table, IndexedView):
        yield from catalog.indexes_on(table.name)
        return
    for index in catalog.indexes_on(table.view):
        if index.schema == table.schema:
            yield replace(index, on=table.name)


@dataclass(frozen=True, slots=True)
class _Finder:
    """What relations of a FROM are; views are their queries, or, if wanted, what indexes keep of them."""

    catalog: Catalog
    kept: bool = False

    def __call__(self, written: sql.Relation) -> Table | sql.Select:
        view = self.catalog.views.get(ObjectName(written.full_name))
        if view is not None:
            kept = indexed_view(view, self.catalog) if self.kept else None
            return view_query(view, self.catalog) if kept is None else kept
        found = self.catalog.relation(written.full_name, position=written.position)
        if not isinstance(found, Table):
            raise WrongObjectKind(
                f'"{found.name}" is a stream and has no current rows',
                hint="Add EMIT CHANGES to follow it.",
                position=written.position,
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
