"""CREATE TYPE and DROP TYPE."""

from holdfast.catalog.snapshot import Catalog
from holdfast.errors import BindError, DuplicateObject, UnknownObject
from holdfast.runtime.expressions.transform import BUILT_IN
from holdfast.sql import statements as sql
from holdfast.sql.bound import BoundCreateType, BoundDropType, BoundNothing


def bind_create_type(statement: sql.CreateType, catalog: Catalog) -> BoundCreateType | BoundNothing:
    name = statement.name.text
    if name.upper() in BUILT_IN:
        raise BindError(
            f'a type cannot be named "{name}"',
            detail=f"{name.upper()} is a type already, and means the same everywhere.",
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
