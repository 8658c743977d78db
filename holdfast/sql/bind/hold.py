"""CREATE, ALTER and DROP HOLD."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.catalog.commands import (
    HOLD_NAME,
    CommandAction,
    CommandId,
    CommandType,
)
from holdfast.catalog.objects import Hold, Holdable, Stream
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import BadTime, BindError, WrongObjectKind
from holdfast.names import ObjectName
from holdfast.runtime.expressions.tree import StringLiteral
from holdfast.sql.bind.ddl_kind import BoundDdl, DdlKind, Privilege, TransactionRule
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.literals.duration import EXAMPLES, duration_ms
from holdfast.sql.literals.moment import Moment, bind_moment
from holdfast.sql.syntax import statements as sql

MAX_LAG_MS = 3 * 3_600_000
"""Default MAX LAG of a hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateHold(BoundDdl):
    """A hold to create: `at` a time, or at the least time at which all of its objects can be read."""

    name: ObjectName
    on: tuple[Holdable, ...]
    at: Moment | None
    max_lag_ms: int


@dataclass(frozen=True, slots=True)
class BoundAdvanceHold:
    """A hold to move `to` a time, or to the read frontier that its objects would have without it."""

    hold: Hold
    to: Moment | None


@dataclass(frozen=True, slots=True)
class BoundRenameHold(BoundDdl):
    hold: Hold
    name: ObjectName


@dataclass(frozen=True, slots=True)
class BoundDropHold(BoundDdl):
    hold: Hold


def bind_create_hold(statement: sql.CreateHold, catalog: Catalog) -> BoundCreateHold:
    if statement.name is None:
        raise BindError(
            "a hold needs a name",
            hint="Write CREATE HOLD name ON …; the name is optional only in the transaction that creates its object.",
            position=statement.position,
        )
    name = ObjectName(statement.name.text)
    catalog.check_free(name, position=statement.name.position)
    return BoundCreateHold(
        name=name,
        on=_objects(statement.on, catalog),
        at=bind_moment(statement.at) if statement.at is not None else None,
        max_lag_ms=_max_lag(statement.max_lag),
    )


def bind_advance_hold(statement: sql.AdvanceHold, catalog: Catalog) -> BoundAdvanceHold:
    hold = catalog.hold(statement.name.text, position=statement.name.position)
    return BoundAdvanceHold(hold, bind_moment(statement.to) if statement.to is not None else None)


def bind_rename_hold(statement: sql.RenameHold, catalog: Catalog) -> BoundRenameHold:
    hold = catalog.hold(statement.name.text, position=statement.name.position)
    catalog.check_free(statement.to.text, position=statement.to.position)
    return BoundRenameHold(hold, ObjectName(statement.to.text))


def bind_drop_hold(statement: sql.DropHold, catalog: Catalog) -> BoundDropHold | BoundNothing:
    if statement.if_exists and statement.name.text not in catalog.holds:
        return BoundNothing(f'hold "{statement.name.text}" does not exist')
    return BoundDropHold(catalog.hold(statement.name.text, position=statement.name.position))


def _objects(names: Sequence[sql.Identifier], catalog: Catalog) -> tuple[Holdable, ...]:
    found: list[Holdable] = []
    for name in names:
        index = catalog.indexes.get(ObjectName(name.text))
        named = index or catalog.object(name.text, kind="table or index", position=name.position)
        if isinstance(named, Stream):
            raise WrongObjectKind(
                f'a hold cannot be on "{name.text}", which is a stream',
                detail="A stream has no history to hold.",
                hint="Create the hold on a table derived from it.",
                position=name.position,
            )
        if named in found:
            raise BindError(f'"{name.text}" is listed twice', position=name.position)
        found.append(named)
    return tuple(found)


def _max_lag(text: StringLiteral | None) -> int:
    if text is None:
        return MAX_LAG_MS
    lag_ms = duration_ms(text.value)
    if lag_ms is None:
        raise BadTime(f"'{text.value}' is not a valid duration", hint=EXAMPLES, position=text.position)
    if lag_ms <= 0:
        raise BadTime("MAX LAG must be greater than zero", hint=EXAMPLES, position=text.position)
    return lag_ms


DDL = (
    DdlKind(
        statement=sql.CreateHold,
        bound=BoundCreateHold,
        bind=lambda statement, catalog, _: bind_create_hold(statement, catalog),
        id=lambda bound: CommandId(CommandType.HOLD, bound.name, CommandAction.CREATE),
        message=lambda bound: f"Hold {bound.name} created.",
        privileges=(Privilege.CREATE, Privilege.SELECT, Privilege.USAGE),
        transaction=TransactionRule.HOLDS,
    ),
    DdlKind(
        statement=sql.RenameHold,
        bound=BoundRenameHold,
        bind=lambda statement, catalog, _: bind_rename_hold(statement, catalog),
        id=lambda bound: CommandId(CommandType.HOLD, bound.hold.name, CommandAction.ALTER),
        message=lambda bound: f"Hold {bound.hold.name} is now {bound.name}.",
        privileges=(Privilege.OWNER,),
        transaction=TransactionRule.CHANGES_HOLDS,
        properties=lambda bound: {HOLD_NAME: str(bound.name)},
    ),
    DdlKind(
        statement=sql.DropHold,
        bound=BoundDropHold,
        bind=lambda statement, catalog, _: bind_drop_hold(statement, catalog),
        id=lambda bound: CommandId(CommandType.HOLD, bound.hold.name, CommandAction.DROP),
        message=lambda bound: f"Hold {bound.hold.name} dropped.",
        privileges=(Privilege.OWNER,),
        transaction=TransactionRule.CHANGES_HOLDS,
    ),
)
