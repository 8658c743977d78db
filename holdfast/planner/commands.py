"""From statements to commands, the records of the command topic."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from holdfast.catalog.commands import (
    DELETE_TOPIC,
    HOLD_NAME,
    RETAIN_MS,
    Command,
    CommandAction,
    CommandId,
    CommandType,
    hold_properties,
    topic_properties,
)
from holdfast.catalog.objects import NO_PROPERTIES, Hold
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import PlanError
from holdfast.names import HoldId, StoreId
from holdfast.planner.plan import Plannable, plan
from holdfast.runtime.plan.codec import encode
from holdfast.sql.bind import bind
from holdfast.sql.bound import (
    BoundAlter,
    BoundCreateAs,
    BoundCreateFunction,
    BoundCreateSource,
    BoundCreateType,
    BoundCreateView,
    BoundDrop,
    BoundDropFunction,
    BoundDropType,
    BoundDropView,
    BoundInsertSelect,
    BoundPause,
    BoundResume,
    BoundTerminate,
)
from holdfast.sql.bound_hold import BoundCreateHold, BoundDropHold, BoundRenameHold
from holdfast.sql.bound_index import BoundAlterIndex, BoundCreateIndex, BoundDropIndex
from holdfast.sql.parse import parse

OfQueries = BoundTerminate | BoundPause | BoundResume
"""Statements that become a command without a plan for each of their queries."""
OfHolds = BoundCreateHold | BoundRenameHold | BoundDropHold
"""Statements about holds: commands without a plan. ADVANCE is none, it only changes a time in the store."""
TYPES: Mapping[type[OfQueries], CommandType] = {
    BoundTerminate: CommandType.TERMINATE,
    BoundPause: CommandType.PAUSE,
    BoundResume: CommandType.RESUME,
}


def commands_for(
    bound: Plannable | OfQueries | OfHolds,
    *,
    text: str,
    number: int,
    properties: Mapping[str, str] = NO_PROPERTIES,
    store_id: StoreId | None = None,
) -> tuple[Command, ...]:
    """What is written to the command topic for a statement; `number` makes its query id unique.

    One command, or one for each query that a TERMINATE ends. `properties` are those that change results.
    """
    if isinstance(bound, OfQueries):
        ids = [CommandId(TYPES[type(bound)], query.id, CommandAction.EXECUTE) for query in bound.queries]
        return tuple(Command(id=id_, statement=text, store_id=store_id) for id_ in ids)
    if isinstance(bound, OfHolds):
        return (_hold_command(bound, text, number, store_id),)
    encoded = encode(plan(bound, text=text, number=number))
    id_, extra = _id(bound), _kept(bound)
    return (Command(id=id_, statement=text, plan=encoded, properties={**properties, **extra}, store_id=store_id),)


def as_one(commands: Sequence[Command], text: str) -> Command:
    """One record of the command topic for all that a statement says: it is done whole or not at all."""
    return commands[0] if len(commands) == 1 else transaction(commands, text, commands[0].store_id)


def transaction(commands: Sequence[Command], text: str, store_id: StoreId | None) -> Command:
    """Commands that are applied in their order, all or none."""
    id_ = CommandId(CommandType.TRANSACTION, commands[0].id.entity, CommandAction.EXECUTE)
    parts = tuple(replace(command, store_id=None) for command in commands)
    return Command(id=id_, statement=text, parts=parts, store_id=store_id)


def hold_of(bound: BoundCreateHold, *, text: str, number: int) -> Hold:
    """The hold that a statement makes."""
    on = tuple(table.name for table in bound.on)
    return Hold(id=HoldId(f"h{number}"), name=bound.name, on=on, max_lag_ms=bound.max_lag_ms, statement=text)


def _hold_command(bound: OfHolds, text: str, number: int, store_id: StoreId | None) -> Command:
    match bound:
        case BoundCreateHold():
            hold = hold_of(bound, text=text, number=number)
            action, properties = CommandAction.CREATE, hold_properties(hold)
        case BoundRenameHold(hold, name):
            action, properties = CommandAction.ALTER, {HOLD_NAME: str(name)}
        case BoundDropHold(hold):
            action, properties = CommandAction.DROP, {}
    id_ = CommandId(CommandType.HOLD, hold.name, action)
    return Command(id=id_, statement=text, properties=properties, store_id=store_id)


def _id(bound: Plannable) -> CommandId:
    match bound:
        case BoundCreateSource() | BoundCreateAs():
            return CommandId(_type(bound.target.kind.lower()), bound.target.name, CommandAction.CREATE)
        case BoundDrop():
            return CommandId(_type(bound.target.KIND), bound.target.name, CommandAction.DROP)
        case BoundInsertSelect():
            return CommandId(bound.target.KIND, bound.target.name, CommandAction.INSERT)
        case BoundAlter():
            return CommandId(_type(bound.target.KIND), bound.target.name, CommandAction.ALTER)
        case BoundCreateType():
            return CommandId(CommandType.TYPE, bound.name, CommandAction.CREATE)
        case BoundDropType():
            return CommandId(CommandType.TYPE, bound.name, CommandAction.DROP)
        case BoundCreateFunction():
            return CommandId(CommandType.FUNCTION, bound.function.name, CommandAction.CREATE)
        case BoundCreateView():
            return CommandId(CommandType.VIEW, bound.name, CommandAction.CREATE)
        case BoundDropView():
            return CommandId(CommandType.VIEW, bound.name, CommandAction.DROP)
        case BoundCreateIndex():
            return CommandId(CommandType.INDEX, bound.name, CommandAction.CREATE)
        case BoundAlterIndex():
            return CommandId(CommandType.INDEX, bound.index.name, CommandAction.ALTER)
        case BoundDropIndex():
            return CommandId(CommandType.INDEX, bound.index.name, CommandAction.DROP)
        case BoundDropFunction():
            return CommandId(CommandType.FUNCTION, bound.name, CommandAction.DROP)
        case _:
            assert_never(bound)


def _type(kind: str) -> CommandType:
    return CommandType(kind.replace(" ", "_"))


def _kept(bound: Plannable) -> Mapping[str, str]:
    """What a command says besides its plan."""
    match bound:
        case BoundCreateSource() | BoundCreateAs():
            retained = {} if bound.target.retain_ms is None else {RETAIN_MS: str(bound.target.retain_ms)}
            return {**topic_properties(bound.target.topic_settings), **retained}
        case BoundAlter(retains=True):
            return {RETAIN_MS: "" if bound.retain_ms is None else str(bound.retain_ms)}
        case BoundCreateIndex(retain_ms=int(kept)):
            return {RETAIN_MS: str(kept)}
        case BoundAlterIndex(retain_ms=kept):
            return {RETAIN_MS: "" if kept is None else str(kept)}
        case BoundDrop(delete_topic=True):
            return {DELETE_TOPIC: "true"}
        case _:
            return NO_PROPERTIES


def replan(catalog: Catalog, command: Command) -> bytes:
    """The encoded plan of a command that was written without one; given to `holdfast.catalog.commands.apply`."""
    parsed = parse(command.statement, catalog.types)
    if len(parsed) != 1:
        raise PlanError("the command has no plan, and its text is not one statement")
    bound = bind(parsed[0].statement, catalog, command.properties)
    if not isinstance(bound, Plannable):
        raise PlanError("the command has no plan, and its statement makes none")
    return encode(plan(bound, text=parsed[0].text, number=command.offset))
