"""The columns of a view: those of a `SELECT *` from it."""

from holdfast.catalog.objects import View
from holdfast.catalog.snapshot import Catalog
from holdfast.sql.query.inline_views import inlined
from holdfast.sql.query.projection import bind_projection
from holdfast.sql.query.relation import Relation
from holdfast.sql.query.view_definition import reads_stream
from holdfast.sql.read.indexed_view import select_all
from holdfast.sql.read.pull import bind_read
from holdfast.types import Column, Schema


def view_schema(view: View, catalog: Catalog) -> Schema:
    """The schema of a view. It has no key, because its rows need not be unique."""
    select = select_all(view)
    if not reads_stream(select, catalog):
        return Schema(bind_read(select, catalog).columns)
    merged = inlined(select, catalog)
    columns = bind_projection(merged.items, Relation.of(merged, catalog))
    return Schema(tuple(Column(column.name, column.type) for column in columns))
