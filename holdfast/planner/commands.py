"""From statements to commands, the records of the command topic."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.catalog.commands import Command, CommandAction, CommandId, CommandType, hold_properties
from holdfast.catalog.objects import NO_PROPERTIES, Hold
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import PlanError
from holdfast.names import HoldId, StoreId
from holdfast.planner.plan import plan
from holdfast.runtime.plan.codec import encode
from holdfast.sql.bind.ddl import ddl_kind
from holdfast.sql.bind.ddl_kind import BoundDdl, BoundPlan
from holdfast.sql.bind.hold import BoundCreateHold
from holdfast.sql.bind.query_control import BoundQueryControl
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse


def commands_for(
    bound: BoundDdl,
    *,
    text: str,
    number: int,
    properties: Mapping[str, str] = NO_PROPERTIES,
    store_id: StoreId | None = None,
) -> tuple[Command, ...]:
    """The commands of a statement, for the command topic; `number` makes the ids of created objects unique.

    One command, or one for each query that a TERMINATE ends. `properties` are those that change results.
    """
    kind = ddl_kind(bound)
    command = Command(id=kind.id(bound), statement=text, properties=kind.properties(bound), store_id=store_id)
    match bound:
        case BoundPlan():
            encoded = encode(plan(bound, text=text, number=number))
            return (replace(command, plan=encoded, properties={**properties, **command.properties}),)
        case BoundQueryControl(queries=queries):
            return tuple(replace(command, id=replace(command.id, entity=query.id)) for query in queries)
        case BoundCreateHold():
            return (replace(command, properties=hold_properties(hold_of(bound, text=text, number=number))),)
        case _:
            return (command,)


def as_one(commands: Sequence[Command], text: str) -> Command:
    """One record of the command topic for all commands of a statement, so that they are applied atomically."""
    return commands[0] if len(commands) == 1 else transaction(commands, text, commands[0].store_id)


def transaction(commands: Sequence[Command], text: str, store_id: StoreId | None) -> Command:
    """A command that applies others in order, all or none."""
    id_ = CommandId(CommandType.TRANSACTION, commands[0].id.entity, CommandAction.EXECUTE)
    parts = tuple(replace(command, store_id=None) for command in commands)
    return Command(id=id_, statement=text, parts=parts, store_id=store_id)


def hold_of(bound: BoundCreateHold, *, text: str, number: int) -> Hold:
    """The hold that a statement creates."""
    on = tuple(table.name for table in bound.on)
    return Hold(id=HoldId(f"h{number}"), name=bound.name, on=on, max_lag_ms=bound.max_lag_ms, statement=text)


def replan(catalog: Catalog, command: Command) -> bytes:
    """The encoded plan of a command that was written without one; passed to `holdfast.catalog.fold.apply`."""
    parsed = parse(command.statement, catalog.types)
    if len(parsed) != 1:
        raise PlanError("the command has no plan, and its text is not a single statement")
    bound = bind(parsed[0].statement, catalog, command.properties)
    if not isinstance(bound, BoundPlan):
        raise PlanError("the command has no plan, and its statement does not produce one")
    return encode(plan(bound, text=parsed[0].text, number=command.offset))
