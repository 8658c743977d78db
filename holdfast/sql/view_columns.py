"""The columns of a view: those that a SELECT of everything in it has."""

from holdfast.catalog.objects import View
from holdfast.catalog.snapshot import Catalog
from holdfast.sql.bind_read import bind_read
from holdfast.sql.indexed_view import everything
from holdfast.sql.inlining import inlined
from holdfast.sql.projection import bind_projection
from holdfast.sql.relation import Relation
from holdfast.sql.views import reads_stream
from holdfast.types import Column, Schema


def view_schema(view: View, catalog: Catalog) -> Schema:
    """A view has no key: what it reads may be in it several times."""
    select = everything(view)
    if not reads_stream(select, catalog):
        return Schema(bind_read(select, catalog).columns)
    merged = inlined(select, catalog)
    columns = bind_projection(merged.items, Relation.of(merged, catalog))
    return Schema(tuple(Column(column.name, column.type) for column in columns))
