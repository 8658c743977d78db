"""From statements to commands, the records of the command topic."""

from collections.abc import Mapping

from holdfast.catalog.commands import (
    DELETE_TOPIC,
    Command,
    CommandAction,
    CommandId,
    CommandType,
    topic_properties,
)
from holdfast.catalog.objects import NO_PROPERTIES
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import PlanError
from holdfast.names import StoreId
from holdfast.planner.plan import Plannable, plan
from holdfast.runtime.plan.codec import encode
from holdfast.sql.bind import bind
from holdfast.sql.bound import BoundDrop, BoundTerminate
from holdfast.sql.parse import parse


def commands_for(
    bound: Plannable | BoundTerminate,
    *,
    text: str,
    number: int,
    properties: Mapping[str, str] = NO_PROPERTIES,
    store_id: StoreId | None = None,
) -> tuple[Command, ...]:
    """What is written to the command topic for a statement; `number` makes its query id unique.

    One command, or one for each query that a TERMINATE ends. `properties` are those that change results.
    """
    if isinstance(bound, BoundTerminate):
        ids = [CommandId(CommandType.TERMINATE, query.id, CommandAction.EXECUTE) for query in bound.queries]
        return tuple(Command(id=id_, statement=text, store_id=store_id) for id_ in ids)
    encoded = encode(plan(bound, text=text, number=number))
    if isinstance(bound, BoundDrop):
        id_ = CommandId(bound.target.KIND, bound.target.name, CommandAction.DROP)
        extra = {DELETE_TOPIC: "true"} if bound.delete_topic else {}
    else:
        id_ = CommandId(bound.target.kind.lower(), bound.target.name, CommandAction.CREATE)
        extra = topic_properties(bound.target.topic_settings)
    return (Command(id=id_, statement=text, plan=encoded, properties={**properties, **extra}, store_id=store_id),)


def replan(catalog: Catalog, command: Command) -> bytes:
    """The encoded plan of a command that was written without one; given to `holdfast.catalog.commands.apply`."""
    parsed = parse(command.statement)
    if len(parsed) != 1:
        raise PlanError("the command has no plan, and its text is not one statement")
    bound = bind(parsed[0].statement, catalog, command.properties)
    if not isinstance(bound, Plannable):
        raise PlanError("the command has no plan, and its statement makes none")
    return encode(plan(bound, text=parsed[0].text, number=command.offset))
