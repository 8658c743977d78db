"""The query of a view, parsed from its definition."""

from collections.abc import Iterator

from holdfast.catalog.objects import Stream, View
from holdfast.catalog.snapshot import Catalog
from holdfast.names import ObjectName
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.parse import parse
from holdfast.sql.syntax.walk import walk


def view_query(view: View, catalog: Catalog) -> sql.Select:
    """The query of a view from the catalog."""
    return defined(created_view(view, catalog))


def created_view(view: View, catalog: Catalog) -> sql.CreateView:
    """The statement that created a view."""
    created = parse(view.definition, catalog.types)[0].statement
    assert isinstance(created, sql.CreateView)
    return created


def defined(created: sql.CreateView) -> sql.Select:
    """The query of a CREATE VIEW, with the column names of the view."""
    if not created.columns:
        return created.query
    name = created.name
    return sql.Select(
        items=(sql.SelectStar(None, name.position),),
        relation=sql.RelationReference(name.text, name.text, name.position),
        tables=(sql.CommonTable(name, created.columns, created.query),),
        position=name.position,
    )


def reads_stream(select: sql.Select, catalog: Catalog) -> bool:
    """Whether a query reads a stream, directly or through a view."""
    for name in relations_of(select):
        view = catalog.views.get(ObjectName(name))
        if isinstance(catalog.find(name), Stream) or (
            view is not None and reads_stream(created_view(view, catalog).query, catalog)
        ):
            return True
    return False


def relations_of(select: sql.Select) -> Iterator[str]:
    """The names of all relations that a query and its subqueries read, including those of its WITH clause."""
    for table in select.tables:
        yield from relations_of(table.query)
    for part in select.unions:
        yield from relations_of(part.query)
    for relation in (select.relation, *(join.relation for join in select.joins)):
        if relation.query is not None:
            yield from relations_of(relation.query)
        else:
            yield relation.full_name
    expressions = [item.expression for item in select.items if isinstance(item, sql.SelectExpression)]
    expressions += [each for each in (select.where, select.having) if each is not None]
    expressions += [*select.group_by, *(item.expression for item in select.order_by)]
    expressions += [join.condition for join in select.joins]
    for expression in expressions:
        for node in walk(expression):
            if isinstance(node, sql.QueryRef) and node.query is not None:
                yield from relations_of(node.query)
