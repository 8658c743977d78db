"""The responses of /ksql: one entity per statement, each with ksqlDB's `@type` and properties."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.catalog.commands import CommandAction, CommandId, CommandType
from holdfast.names import QueryId, quote
from holdfast.server.problems import Json
from holdfast.service.ddl import Done
from holdfast.sql.bind.assert_topic import BoundAssertTopic
from holdfast.sql.properties.session import TRANSACTION

QUERY_COMMANDS = (CommandType.TERMINATE, CommandType.PAUSE, CommandType.RESUME)
"""Commands whose entity is the id of a query, which is not quoted."""


def entity(kind: str, text: str, warnings: Sequence[str] = (), **more: Any) -> Json:
    return {"@type": kind, "statementText": text, "warnings": [{"message": warning} for warning in warnings], **more}


# ---- results of statements


def current_status(text: str, done: Done) -> Json:
    """The result of a DDL statement, with its notices as warnings; one without effect has a warning that says why."""
    warnings = [done.message] if done.command is None else done.notices
    return status(text, done.command, done.message, done.sequence, done.query, warnings)


def status(
    text: str,
    command: CommandId | None,
    message: str,
    sequence: int = -1,
    query: QueryId | None = None,
    warnings: Sequence[str] = (),
) -> Json:
    return entity(
        "currentStatus",
        text,
        warnings,
        commandId=command_id(command),
        commandStatus={"status": "SUCCESS", "message": message, "queryId": query},
        commandSequenceNumber=sequence,
    )


def command_id(command: CommandId | None) -> str:
    """`type/name/action` as ksqlDB's clients can parse it; they do not know the action `insert`."""
    if command is None:
        return "topic/none/execute"
    entity = command.entity if command.type in QUERY_COMMANDS else quote(command.entity)
    action = CommandAction.CREATE if command.action == CommandAction.INSERT else command.action
    return f"{command.type}/{entity}/{action}"


def transaction(text: str, id_: str, state: str, changed: Sequence[Done] = ()) -> Json:
    """A transaction: while it is open, a client sends its id as a property of each request.

    `changed` has the changes of its COMMIT, which are one record of the command topic.
    """
    more: Json = {"transactionId": id_, "state": state, "property": TRANSACTION}
    if changed:
        more["changes"] = [
            {"commandId": command_id(done.command), "message": done.message, "queryId": done.query} for done in changed
        ]
        more["commandSequenceNumber"] = max(done.sequence for done in changed)
    return entity("transaction", text, **more)


def queued(text: str, command: CommandId | None) -> Json:
    """A statement that runs on COMMIT."""
    response = status(text, command, "Queued until COMMIT.")
    response["commandStatus"]["status"] = "QUEUED"
    return response


def asserted_topic(text: str, asserted: BoundAssertTopic) -> Json:
    return entity("assert_topic", text, topicName=asserted.topic, exists=asserted.exists)


def properties(text: str, session: Mapping[str, str]) -> Json:
    """The session's properties; also the response to SET and UNSET, so that a client can send them again."""
    found = [{"name": name, "scope": "KSQL", "value": value} for name, value in sorted(session.items())]
    return entity("properties", text, properties=found, overwrittenProperties=sorted(session), defaultProperties=[])


def variables(text: str, defined: Mapping[str, str]) -> Json:
    """The session's variables; also the response to DEFINE and UNDEFINE, so that a client can send them again."""
    found = [{"name": name, "value": value} for name, value in sorted(defined.items())]
    return entity("variables", text, variables=found)
