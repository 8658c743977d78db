"""Binds queries that read: those that one relation's rows do not answer one by one."""

from collections.abc import Iterator
from functools import partial

from holdfast.catalog.objects import Table
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import WrongObjectKind
from holdfast.names import ObjectName
from holdfast.runtime.expressions.physical import Dialect, NotRenderable
from holdfast.runtime.expressions.tree import Expression
from holdfast.sql import statements as sql
from holdfast.sql.aggregation import aggregates
from holdfast.sql.bound_read import BoundRead
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
    """A query that is answered once; by Spark, when the store's dialect has no proven form of a part of it."""
    try:
        return compiled(select, catalog, Dialect.DUCKDB)
    except NotRenderable:
        return compiled(select, catalog, Dialect.SPARK)


def compiled(select: sql.Select, catalog: Catalog, dialect: Dialect) -> BoundRead:
    """The query as the SQL of one dialect; `NotRenderable` where that has no proven form of it."""
    compiler = ReadCompiler(partial(_find, catalog), dialect)
    block = compiler.query(select)
    tables = {table.name: table for table in compiler.relations.values()}
    return BoundRead(
        sql=block.sql,
        dialect=dialect,
        columns=block.columns,
        relations=tuple(compiler.relations.items()),
        as_of=bind_as_of(select.as_of),
        indexes=tuple(index for table in tables.values() for index in catalog.indexes_on(table.name)),
        conditions=compiler.conditions,
    )


def reads_view(select: sql.Select, catalog: Catalog) -> bool:
    return any(name in catalog.views for name in relations_of(select))


def _find(catalog: Catalog, written: sql.Relation) -> Table | sql.Select:
    if written.full_name in catalog.views:
        return view_query(catalog.views[ObjectName(written.full_name)], catalog)
    found = catalog.relation(written.full_name, position=written.position)
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
