"""An index on a plain view: the continuous query that keeps the view's rows for it."""

from collections.abc import Iterator
from dataclasses import replace

from holdfast.catalog.objects import IndexedView, View
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import Position, WrongObjectKind
from holdfast.names import show
from holdfast.runtime.expressions.tree import Binary, Call, ColumnRef, Expression, IntegerLiteral, Operator
from holdfast.sql import statements as sql
from holdfast.sql.bind_create import schema_of
from holdfast.sql.bind_joins import is_stream
from holdfast.sql.bind_query import bind_query
from holdfast.sql.bound_query import BoundQuery
from holdfast.sql.indexed_view import everything, groups_tables, shown
from holdfast.sql.inlining import inlined, told_of_views
from holdfast.sql.relation import Relation
from holdfast.sql.windows import result_window

HIDDEN = "VIEW_KEY"
"""How a column of the key is called that the view does not show."""


def bind_kept_view(view: View, catalog: Catalog, position: Position | None) -> tuple[IndexedView, BoundQuery]:
    """The view as an index will have it, and the query that keeps it; refused when no steps serve it."""
    select = everything(view, position)
    merged = inlined(select, catalog)
    with told_of_views(select, catalog):
        query = bind_query(_with_keys(_of_groups_that_are(merged, catalog), catalog), catalog)
    if is_stream(query.input) and not query.aggregates:
        raise WrongObjectKind(
            f'an index cannot be on "{view.name}", which is a view of a stream',
            detail="A stream without GROUP BY has no current rows.",
            hint=f"Follow it: SELECT * FROM {show(view.name)} EMIT CHANGES;",
            position=position,
        )
    kept = IndexedView(
        name=view.name,
        schema=schema_of(query),
        window=result_window(query),
        view=view.name,
        columns=shown(merged),
        of_groups=groups_tables(merged, catalog),
    )
    return kept, query


def _of_groups_that_are(merged: sql.Select, catalog: Catalog) -> sql.Select:
    """Without the groups whose rows are all gone: an aggregation of tables keeps them, a query that reads has none."""
    if not groups_tables(merged, catalog):
        return merged
    there = Binary(Operator.GREATER, Call("COUNT", (), star=True), IntegerLiteral(0))
    return replace(merged, having=there if merged.having is None else Binary(Operator.AND, merged.having, there))


def _with_keys(merged: sql.Select, catalog: Catalog) -> sql.Select:
    """With the columns of the key that the view does not show: its rows are told apart by them."""
    already = [item.expression for item in merged.items if isinstance(item, sql.SelectExpression)]
    taken, added = set(shown(merged)), []
    for expression in _keys(merged, catalog):
        if expression not in already:
            name = next(n for i in range(999) if (n := f"{HIDDEN}{i or ''}") not in taken)
            taken.add(name)
            added.append(sql.SelectExpression(expression, name, merged.position))
    return replace(merged, items=(*merged.items, *added))


def _keys(merged: sql.Select, catalog: Catalog) -> Iterator[Expression]:
    """What the key of the result is made of; of a join, the view must show it."""
    if merged.group_by:
        yield from merged.group_by
    elif not merged.joins:
        source = Relation.of(merged, catalog).source
        yield from (ColumnRef(column.name, source.alias) for column in source.object.schema.key)
