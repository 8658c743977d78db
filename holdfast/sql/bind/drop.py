"""DROP STREAM, DROP TABLE and DROP MATERIALIZED VIEW."""

from dataclasses import dataclass

from holdfast.catalog.commands import (
    DELETE_TOPIC,
    CommandAction,
    CommandId,
    CommandType,
)
from holdfast.catalog.objects import NO_PROPERTIES, CatalogObject
from holdfast.catalog.snapshot import Catalog, wrong_kind
from holdfast.errors import DependentObjects, NotSupported
from holdfast.runtime.plan import ddl
from holdfast.sql.bind.ddl_kind import BoundPlan, DdlKind, Privilege
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.bind.view import refuse_dependent_views
from holdfast.sql.syntax import statements as sql


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundDrop(BoundPlan):
    """An object to drop, with the query that writes it."""

    target: CatalogObject
    delete_topic: bool = False


def bind_drop(statement: sql.Drop, catalog: Catalog) -> BoundDrop | BoundNothing:
    name, position = statement.name.text, statement.name.position
    if statement.if_exists and catalog.find(name) is None:
        return BoundNothing(f'{statement.kind.lower()} "{name}" does not exist')
    found = catalog.object(name, kind=statement.kind.lower(), position=position)
    if statement.kind.lower() != found.KIND:
        raise wrong_kind(found, wanted=statement.kind.lower(), position=position)
    if statement.delete_topic and found.read_only:
        raise NotSupported(
            f'the topic of {found.KIND} "{name}" cannot be deleted',
            detail="It is a SOURCE, which is read-only.",
            hint="Leave out DELETE TOPIC.",
            position=position,
        )
    others = [f'{o.KIND} "{o.name}"' for o in catalog.objects.values() if o.topic == found.topic and o.name != name]
    if statement.delete_topic and others:
        raise DependentObjects(
            f'the topic of {found.KIND} "{name}" is used by other objects',
            detail=f"It is also the topic of {', '.join(others)}.",
            hint="Drop them first, or leave out DELETE TOPIC.",
            position=position,
        )
    catalog.check_drop(name, cascade=statement.cascade, position=position)
    refuse_dependent_views(f'{found.KIND} "{name}"', name, catalog, statement)
    return BoundDrop(target=found, delete_topic=statement.delete_topic)


DDL = (
    DdlKind(
        statement=sql.Drop,
        bound=BoundDrop,
        bind=lambda statement, catalog, _: bind_drop(statement, catalog),
        id=lambda bound: CommandId(CommandType.of(bound.target.KIND), bound.target.name, CommandAction.DROP),
        message=lambda bound: f"{bound.target.KIND.capitalize()} {bound.target.name} dropped.",
        privileges=(Privilege.OWNER,),
        command=lambda bound, _: ddl.DropSource(source_name=bound.target.name),
        properties=lambda bound: {DELETE_TOPIC: "true"} if bound.delete_topic else NO_PROPERTIES,
    ),
)
