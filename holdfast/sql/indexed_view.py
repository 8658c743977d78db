"""A plain view as its indexes have it: a table that a query which is answered once can read instead."""

from holdfast.catalog.objects import Index, IndexedView, Stream, View
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import Position
from holdfast.sql import statements as sql
from holdfast.sql.inlining import inlined


def indexed_view(view: View, catalog: Catalog) -> IndexedView | None:
    """The view as its indexes have it; None without one that has all its columns."""
    indexes = catalog.indexes_on(view.name)
    if not indexes:
        return None
    merged = inlined(everything(view), catalog)
    columns = shown(merged)
    first = next((index for index in indexes if _has(index, columns)), None)
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


def everything(view: View, position: Position | None = None) -> sql.Select:
    return sql.Select(items=(sql.SelectStar(None, position),), relation=sql.Relation(view.name, view.name, position))


def shown(merged: sql.Select) -> tuple[str, ...]:
    """The names of its columns."""
    return tuple(item.alias or "" for item in merged.items if isinstance(item, sql.SelectExpression))


def groups_tables(merged: sql.Select, catalog: Catalog) -> bool:
    read = (merged.relation, *(join.relation for join in merged.joins))
    return bool(merged.group_by) and not any(isinstance(catalog.find(each.full_name), Stream) for each in read)


def _has(index: Index, columns: tuple[str, ...]) -> bool:
    return all(index.schema.find(name) is not None for name in columns)
