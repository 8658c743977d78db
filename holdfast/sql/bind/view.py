"""CREATE VIEW and DROP VIEW. A view is the text of its query, bound again in each query that reads the view."""

from dataclasses import dataclass

from holdfast.catalog.commands import (
    CommandAction,
    CommandId,
    CommandType,
)
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import DependentObjects, DuplicateObject, NotSupported, UnknownObject
from holdfast.names import ObjectName
from holdfast.runtime.plan import ddl
from holdfast.sql.bind.ddl_kind import BoundPlan, DdlKind, Privilege
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.query.inline_views import check_view
from holdfast.sql.query.view_definition import defined, reads_stream, relations_of
from holdfast.sql.read.pull import bind_read
from holdfast.sql.syntax import statements as sql


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateView(BoundPlan):
    """A view to create; `sources` are the objects that it reads."""

    name: ObjectName
    sources: tuple[ObjectName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundDropView(BoundPlan):
    """A view to drop."""

    name: ObjectName


def bind_create_view(statement: sql.CreateView, catalog: Catalog) -> BoundCreateView | BoundNothing:
    """Also binds the view's query, so that a view that cannot be read is rejected."""
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
    """Raise if views read the object that is to be dropped."""
    readers = sorted(view.name for view in catalog.views.values() if name in view.sources)
    if readers:
        raise DependentObjects(
            f"cannot drop {what} because views depend on it",
            detail=f"It is read by {', '.join(readers)}.",
            hint=f"Drop them first: DROP VIEW {readers[0]};",
            position=statement.name.position,
        )


DDL = (
    DdlKind(
        statement=sql.CreateView,
        bound=BoundCreateView,
        bind=lambda statement, catalog, _: bind_create_view(statement, catalog),
        id=lambda bound: CommandId(CommandType.VIEW, bound.name, CommandAction.CREATE),
        message=lambda bound: f"View {bound.name} created.",
        privileges=(Privilege.CREATE, Privilege.SELECT),
        command=lambda bound, text: ddl.CreateView(view_name=bound.name, sources=bound.sources, definition=text),
    ),
    DdlKind(
        statement=sql.DropView,
        bound=BoundDropView,
        bind=lambda statement, catalog, _: bind_drop_view(statement, catalog),
        id=lambda bound: CommandId(CommandType.VIEW, bound.name, CommandAction.DROP),
        message=lambda bound: f"View {bound.name} dropped.",
        privileges=(Privilege.OWNER,),
        command=lambda bound, _: ddl.DropView(view_name=bound.name),
    ),
)
