"""CREATE TYPE and DROP TYPE."""

from dataclasses import dataclass

from holdfast.catalog.commands import (
    CommandAction,
    CommandId,
    CommandType,
)
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import BindError, DuplicateObject, UnknownObject
from holdfast.runtime.expressions.transform import BUILT_IN
from holdfast.runtime.plan import ddl
from holdfast.sql.bind.ddl_kind import BoundPlan, DdlKind, Privilege
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.syntax import statements as sql
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateType(BoundPlan):
    """A named type to create."""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundDropType(BoundPlan):
    """The name of a type to drop; objects that use it keep the type."""

    name: str


def bind_create_type(statement: sql.CreateType, catalog: Catalog) -> BoundCreateType | BoundNothing:
    name = statement.name.text
    if name.upper() in BUILT_IN:
        raise BindError(
            f'a type cannot be named "{name}"',
            detail=f"{name.upper()} is a built-in type.",
            hint=f"Give it another name, for instance {name.upper()}_1.",
            position=statement.name.position,
        )
    if name in catalog.types:
        if statement.if_not_exists:
            return BoundNothing(f'type "{name}" already exists')
        raise DuplicateObject(
            f'type "{name}" already exists',
            hint="Drop it first, or write CREATE TYPE IF NOT EXISTS.",
            position=statement.name.position,
        )
    return BoundCreateType(name=name, type=statement.type)


def bind_drop_type(statement: sql.DropType, catalog: Catalog) -> BoundDropType | BoundNothing:
    name = statement.name.text
    if name in catalog.types:
        return BoundDropType(name=name)
    if statement.if_exists:
        return BoundNothing(f'type "{name}" does not exist')
    raise UnknownObject(name, kind="type", known=sorted(catalog.types), position=statement.name.position)


DDL = (
    DdlKind(
        statement=sql.CreateType,
        bound=BoundCreateType,
        bind=lambda statement, catalog, _: bind_create_type(statement, catalog),
        id=lambda bound: CommandId(CommandType.TYPE, bound.name, CommandAction.CREATE),
        message=lambda bound: f"Type {bound.name} created.",
        privileges=(Privilege.CREATE,),
        command=lambda bound, _: ddl.RegisterType(type=ddl.TypeText(str(bound.type)), type_name=bound.name),
    ),
    DdlKind(
        statement=sql.DropType,
        bound=BoundDropType,
        bind=lambda statement, catalog, _: bind_drop_type(statement, catalog),
        id=lambda bound: CommandId(CommandType.TYPE, bound.name, CommandAction.DROP),
        message=lambda bound: f"Type {bound.name} dropped.",
        privileges=(Privilege.OWNER,),
        command=lambda bound, _: ddl.DropType(type_name=bound.name),
    ),
)
