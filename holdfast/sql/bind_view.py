"""CREATE VIEW and DROP VIEW; a view is the text of its query, read again wherever the view is."""

from holdfast.catalog.snapshot import Catalog
from holdfast.errors import DependentObjects, DuplicateObject, NotSupported, UnknownObject
from holdfast.names import ObjectName
from holdfast.sql import statements as sql
from holdfast.sql.bind_read import bind_read
from holdfast.sql.bound import BoundCreateView, BoundDropView, BoundNothing
from holdfast.sql.inlining import check_view
from holdfast.sql.views import defined, reads_stream, relations_of


def bind_create_view(statement: sql.CreateView, catalog: Catalog) -> BoundCreateView | BoundNothing:
    """Its query is bound, so that a view that cannot be read is not made."""
    name, position = statement.name.text, statement.name.position
    if statement.if_not_exists and name in catalog.views:
        return BoundNothing(f'view "{name}" already exists')
    if name in catalog.views:
        raise DuplicateObject(
            f'view "{name}" already exists',
            hint="Drop it first, or write CREATE VIEW IF NOT EXISTS.",
            position=position,
        )
    catalog.check_free(name, position=position)
    if statement.query.as_of is not None:
        raise NotSupported(
            "AS OF cannot be used in a view",
            hint="Write it in the query that reads the view.",
            position=statement.query.as_of.position,
        )
    if reads_stream(statement.query, catalog):
        check_view(statement, catalog)
    else:
        bind_read(defined(statement), catalog)
    found = (catalog.find(each) or catalog.views.get(ObjectName(each)) for each in relations_of(statement.query))
    return BoundCreateView(name=ObjectName(name), sources=tuple(sorted({each.name for each in found if each})))


def bind_drop_view(statement: sql.DropView, catalog: Catalog) -> BoundDropView | BoundNothing:
    name = ObjectName(statement.name.text)
    if name in catalog.views:
        refuse_dependent_views(f'view "{name}"', name, catalog, statement)
        catalog.check_indexes(catalog.views[name], cascade=statement.cascade, position=statement.name.position)
        return BoundDropView(name=name)
    if statement.if_exists:
        return BoundNothing(f'view "{name}" does not exist')
    raise UnknownObject(name, kind="view", known=sorted(catalog.views), position=statement.name.position)


def refuse_dependent_views(what: str, name: str, catalog: Catalog, statement: sql.Drop | sql.DropView) -> None:
    """Keep what a view reads."""
    readers = sorted(view.name for view in catalog.views.values() if name in view.sources)
    if readers:
        raise DependentObjects(
            f"cannot drop {what} because views depend on it",
            detail=f"Read by {', '.join(readers)}.",
            hint=f"Drop them first: DROP VIEW {readers[0]};",
            position=statement.name.position,
        )
