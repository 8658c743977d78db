"""CREATE FUNCTION and DROP FUNCTION, and which version of a function a call means."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from holdfast.catalog.snapshot import Catalog
from holdfast.errors import BindError, DuplicateObject, NotSupported, UnknownObject
from holdfast.runtime.expressions.tree import Call, Lambda
from holdfast.runtime.functions.registry import functions
from holdfast.runtime.functions.user import PYTHON, UserFunction, check_source, declare
from holdfast.sql import statements as sql
from holdfast.sql.bound import BoundCreateFunction, BoundDropFunction, BoundNothing
from holdfast.types import Column

T = TypeVar("T")


def bind_create_function(statement: sql.CreateFunction, catalog: Catalog) -> BoundCreateFunction | BoundNothing:
    name, position = statement.name.text.upper(), statement.name.position
    _check_name(statement)
    if name in catalog.functions and not statement.or_replace:
        if statement.if_not_exists:
            return BoundNothing(f'function "{name}" already exists')
        hint = "Write CREATE OR REPLACE FUNCTION for a new version, or drop it first."
        raise DuplicateObject(f'function "{name}" already exists', hint=hint, position=position)
    if statement.language.text.upper() != PYTHON:
        raise NotSupported(
            f"a function cannot be written in {statement.language.text}",
            hint="Write it in Python: LANGUAGE PYTHON.",
            position=statement.language.position,
        )
    parameters = tuple(_parameters(statement))
    aggregate = check_source(name, parameters, statement.source, statement.source_position)
    function = UserFunction(name, parameters, statement.returns, statement.source, aggregate)
    declare(function)
    return BoundCreateFunction(function=function)


def bind_drop_function(statement: sql.DropFunction, catalog: Catalog) -> BoundDropFunction | BoundNothing:
    name = statement.name.text.upper()
    if name in catalog.functions:
        return BoundDropFunction(name=name)
    if statement.if_exists:
        return BoundNothing(f'function "{name}" does not exist')
    if name in functions():
        raise NotSupported(f"{name} is built in and cannot be dropped", position=statement.name.position)
    raise UnknownObject(name, kind="function", known=sorted(catalog.functions), position=statement.name.position)


def versioned(statement: T, catalog: Catalog) -> T:
    """The statement with every call of a user's function under the name of the version that it means now."""
    return _versioned(statement, catalog, inside=False) if catalog.functions else statement


def _versioned(node: Any, catalog: Catalog, *, inside: bool) -> Any:
    if isinstance(node, tuple):
        changed = tuple(_versioned(item, catalog, inside=inside) for item in node)
        return changed if any(a is not b for a, b in zip(changed, node, strict=True)) else node
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changes: dict[str, Any] = {}
    if isinstance(node, Call) and (found := catalog.functions.get(node.name)) is not None:
        if inside:
            raise NotSupported(
                f"function {node.name} cannot be called inside a lambda",
                detail="A user's function is computed for many rows at once, not for the elements of one.",
                hint="EXPLODE the array, and call it on the rows.",
                position=node.position,
            )
        changes["name"] = found.versioned
    inside = inside or isinstance(node, Lambda)
    for part in fields(node):
        before = getattr(node, part.name)
        after = _versioned(before, catalog, inside=inside)
        if after is not before:
            changes[part.name] = after
    return replace(node, **changes) if changes else node


def _check_name(statement: sql.CreateFunction) -> None:
    name, position = statement.name.text, statement.name.position
    if name.upper() in functions():
        raise DuplicateObject(f"{name.upper()} is built in", hint="Give the function another name.", position=position)
    if not name.isidentifier() or not name.isascii():
        raise BindError(
            f'"{name}" cannot be the name of a function',
            hint="A Python function has its name: letters, digits and underscores.",
            position=position,
        )


def _parameters(statement: sql.CreateFunction) -> Iterator[Column]:
    if not statement.arguments:
        raise NotSupported(
            "a function needs at least one argument",
            detail="It gets columns, and gives as many values as they have.",
            position=statement.name.position,
        )
    seen: set[str] = set()
    for argument in statement.arguments:
        if argument.name in seen:
            raise BindError(f'the argument "{argument.name}" is there twice', position=argument.position)
        seen.add(argument.name)
        yield Column(argument.name, argument.type)
