"""CREATE FUNCTION and DROP FUNCTION, and the version of a function that a call refers to."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from holdfast.catalog.commands import (
    CommandAction,
    CommandId,
    CommandType,
)
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import BindError, DuplicateObject, NotSupported, UnknownObject
from holdfast.runtime.expressions.tree import Call, Lambda
from holdfast.runtime.functions.registry import functions
from holdfast.runtime.functions.user import PYTHON, UserFunction, check_source, declare
from holdfast.runtime.plan import ddl
from holdfast.runtime.plan.sources import SchemaText
from holdfast.sql.bind.ddl_kind import BoundPlan, DdlKind, Privilege
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.syntax import statements as sql
from holdfast.types import Column, Schema

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateFunction(BoundPlan):
    """A new version of a user-defined function, which becomes the current one."""

    function: UserFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundDropFunction(BoundPlan):
    """A user-defined function to drop; running queries keep the version that they were planned with."""

    name: str


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
            f"functions cannot be written in {statement.language.text}",
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
    """The statement with every call to a user-defined function changed to its current version's name."""
    return _versioned(statement, catalog, in_lambda=False) if catalog.functions else statement


def _versioned(node: Any, catalog: Catalog, *, in_lambda: bool) -> Any:
    if isinstance(node, tuple):
        changed = tuple(_versioned(item, catalog, in_lambda=in_lambda) for item in node)
        return changed if any(a is not b for a, b in zip(changed, node, strict=True)) else node
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changes: dict[str, Any] = {}
    if isinstance(node, Call) and (found := catalog.functions.get(node.name)) is not None:
        if in_lambda:
            raise NotSupported(
                f"function {node.name} cannot be called inside a lambda",
                detail="A user-defined function takes whole columns, not the elements of one row.",
                hint="EXPLODE the array and call the function on the resulting rows.",
                position=node.position,
            )
        changes["name"] = found.versioned
    in_lambda = in_lambda or isinstance(node, Lambda)
    for field in fields(node):
        before = getattr(node, field.name)
        after = _versioned(before, catalog, in_lambda=in_lambda)
        if after is not before:
            changes[field.name] = after
    return replace(node, **changes) if changes else node


def _check_name(statement: sql.CreateFunction) -> None:
    name, position = statement.name.text, statement.name.position
    if name.upper() in functions():
        raise DuplicateObject(
            f"{name.upper()} is a built-in function", hint="Give the function another name.", position=position
        )
    if not name.isidentifier() or not name.isascii():
        raise BindError(
            f'"{name}" cannot be the name of a function',
            hint="It is the name of a Python function: use letters, digits and underscores.",
            position=position,
        )


def _parameters(statement: sql.CreateFunction) -> Iterator[Column]:
    if not statement.arguments:
        raise NotSupported(
            "a function needs at least one argument",
            detail="It takes columns and returns one value for each row.",
            position=statement.name.position,
        )
    seen: set[str] = set()
    for argument in statement.arguments:
        if argument.name in seen:
            raise BindError(f'the argument "{argument.name}" is declared twice', position=argument.position)
        seen.add(argument.name)
        yield Column(argument.name, argument.type)


def _command(function: UserFunction) -> ddl.CreateFunction:
    return ddl.CreateFunction(
        function_name=function.name,
        kind=ddl.FunctionKind.AGGREGATE if function.aggregate else ddl.FunctionKind.SCALAR,
        arguments=SchemaText(str(Schema(function.parameters))),
        returns=ddl.TypeText(str(function.returns)),
        language=PYTHON,
        body=function.source,
    )


DDL = (
    DdlKind(
        statement=sql.CreateFunction,
        bound=BoundCreateFunction,
        bind=lambda statement, catalog, _: bind_create_function(statement, catalog),
        id=lambda bound: CommandId(CommandType.FUNCTION, bound.function.name, CommandAction.CREATE),
        message=lambda bound: f"Function {bound.function.name} created, version {bound.function.digest}.",
        privileges=(Privilege.CREATE,),
        command=lambda bound, _: _command(bound.function),
    ),
    DdlKind(
        statement=sql.DropFunction,
        bound=BoundDropFunction,
        bind=lambda statement, catalog, _: bind_drop_function(statement, catalog),
        id=lambda bound: CommandId(CommandType.FUNCTION, bound.name, CommandAction.DROP),
        message=lambda bound: f"Function {bound.name} dropped.",
        privileges=(Privilege.OWNER,),
        command=lambda bound, _: ddl.DropFunction(function_name=bound.name),
    ),
)
