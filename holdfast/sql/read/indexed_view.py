"""A plain view as stored in its indexes: a table that pull queries can read instead of the view's query."""

from holdfast.catalog.objects import Index, IndexedView, Stream, View
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import Position
from holdfast.sql.query.inline_views import inlined
from holdfast.sql.syntax import statements as sql


def indexed_view(view: View, catalog: Catalog) -> IndexedView | None:
    """The view as stored in its first index that has all its columns; None without one."""
    indexes = catalog.indexes_on(view.name)
    if not indexes:
        return None
    merged = inlined(select_all(view), catalog)
    columns = column_names(merged)
    first = next((index for index in indexes if _has_columns(index, columns)), None)
    if first is None:
        return None
    return IndexedView(
        name=first.name,
        schema=first.schema,
        window=first.window,
        query=first.query,
        view=view.name,
        columns=columns,
        of_groups=groups_tables(merged, catalog),
    )


def select_all(view: View, position: Position | None = None) -> sql.Select:
    return sql.Select(
        items=(sql.SelectStar(None, position),), relation=sql.RelationReference(view.name, view.name, position)
    )


def column_names(merged: sql.Select) -> tuple[str, ...]:
    """The names of the query's columns."""
    return tuple(item.alias or "" for item in merged.items if isinstance(item, sql.SelectExpression))


def groups_tables(merged: sql.Select, catalog: Catalog) -> bool:
    relations = (merged.relation, *(join.relation for join in merged.joins))
    return bool(merged.group_by) and not any(isinstance(catalog.find(each.full_name), Stream) for each in relations)


def _has_columns(index: Index, columns: tuple[str, ...]) -> bool:
    return all(index.schema.find(name) is not None for name in columns)
