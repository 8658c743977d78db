"""An index on a plain view: the continuous query that maintains the view's rows."""

from collections.abc import Iterator
from dataclasses import replace

from holdfast.catalog.objects import IndexedView, View
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import Position, WrongObjectKind
from holdfast.names import show
from holdfast.runtime.expressions.tree import Binary, Call, ColumnRef, Expression, IntegerLiteral, Operator
from holdfast.sql.query.continuous import BoundQuery, bind_query, result_window
from holdfast.sql.query.inline_views import explain_views, inlined
from holdfast.sql.query.joins import is_stream
from holdfast.sql.query.relation import Relation
from holdfast.sql.read.indexed_view import column_names, groups_tables, select_all
from holdfast.sql.syntax import statements as sql

HIDDEN = "VIEW_KEY"
"""The name of a key column that the view does not select."""


def bind_indexed_view(view: View, catalog: Catalog, position: Position | None) -> tuple[IndexedView, BoundQuery]:
    """The indexed view and the query that maintains it. Raises if no query can maintain it."""
    select = select_all(view, position)
    merged = inlined(select, catalog)
    with explain_views(select, catalog):
        query = bind_query(_with_keys(_without_empty_groups(merged, catalog), catalog), catalog)
    if is_stream(query.input) and not query.aggregates:
        raise WrongObjectKind(
            f'an index cannot be on "{view.name}", which is a view of a stream',
            detail="A stream without GROUP BY has no current rows.",
            hint=f"Read its changes: SELECT * FROM {show(view.name)} EMIT CHANGES;",
            position=position,
        )
    indexed = IndexedView(
        name=view.name,
        schema=query.schema,
        window=result_window(query),
        view=view.name,
        columns=column_names(merged),
        of_groups=groups_tables(merged, catalog),
    )
    return indexed, query


def _without_empty_groups(merged: sql.Select, catalog: Catalog) -> sql.Select:
    """Filter out empty groups: an aggregation over tables keeps them, a pull query does not return them."""
    if not groups_tables(merged, catalog):
        return merged
    not_empty = Binary(Operator.GREATER, Call("COUNT", (), star=True), IntegerLiteral(0))
    having = not_empty if merged.having is None else Binary(Operator.AND, merged.having, not_empty)
    return replace(merged, having=having)


def _with_keys(merged: sql.Select, catalog: Catalog) -> sql.Select:
    """Add the key columns that the view does not select; they identify its rows."""
    selected = [item.expression for item in merged.items if isinstance(item, sql.SelectExpression)]
    taken, added = set(column_names(merged)), []
    for expression in _keys(merged, catalog):
        if expression not in selected:
            name = next(n for i in range(999) if (n := f"{HIDDEN}{i or ''}") not in taken)
            taken.add(name)
            added.append(sql.SelectExpression(expression, name, merged.position))
    return replace(merged, items=(*merged.items, *added))


def _keys(merged: sql.Select, catalog: Catalog) -> Iterator[Expression]:
    """The columns of the result's key. None for a join: the view itself must select them."""
    if merged.group_by:
        yield from merged.group_by
    elif not merged.joins:
        source = Relation.of(merged, catalog).source
        yield from (ColumnRef(column.name, source.alias) for column in source.object.schema.key)
